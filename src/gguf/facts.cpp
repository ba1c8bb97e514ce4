#include "gguf/facts.h"

#include <algorithm>
#include <map>

namespace redline {

static uint64_t elements_of(const GgufTensor& tensor) {
    uint64_t product = 1;
    for (const uint64_t dim : tensor.dims) product *= dim;
    return product;
}

std::vector<FormatShare> format_shares(const Gguf& gguf) {
    std::map<uint32_t, FormatShare> by_type;
    for (const GgufTensor& tensor : gguf.tensors()) {
        FormatShare& share = by_type[tensor.type];
        if (share.tensors++ == 0) {
            const auto known = find_type(tensor.type);
            share.format = known ? std::string(known->name) : describe_type(tensor.type);
        }
        share.bytes += tensor.bytes;
        share.elements += elements_of(tensor);
    }
    std::vector<FormatShare> shares;
    for (auto& [type, share] : by_type) shares.push_back(std::move(share));
    std::stable_sort(shares.begin(), shares.end(),
                     [](const FormatShare& a, const FormatShare& b) { return a.bytes > b.bytes; });
    return shares;
}

uint64_t parameter_count(const Gguf& gguf) {
    uint64_t sum = 0;
    for (const GgufTensor& tensor : gguf.tensors()) sum += elements_of(tensor);
    return sum;
}

std::string short_count(uint64_t parameters) {
    const double millions = double(parameters) * 1e-6;
    return millions < 1000.0 ? fmt::format("{:.2f} M", millions) : fmt::format("{:.2f} B", millions * 1e-3);
}

}  // namespace redline
