#include "cli/model_facts.h"

#include "memory/budget.h"
#include "plan/stored_weights.h"

#include <algorithm>
#include <map>

namespace redline::cli {

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

std::string model_type(const Gguf& gguf) {
    const Result<std::string> arch = gguf.metadata().text("general.architecture", "?");
    const std::vector<FormatShare> shares = format_shares(gguf);
    return fmt::format("{} {} {}", arch ? arch.value() : "?", short_count(parameter_count(gguf)),
                       shares.empty() ? "no tensors" : shares.front().format);
}

std::vector<std::string> describe_decoding(std::span<const WeightInfo> weights, const Backend& backend) {
    std::vector<std::string> lines;
    for (const DecodedFormat& d : decoded_formats(weights, backend))
        lines.push_back(fmt::format("{} tensor{} in {} {} decoded to F16 while loading: {} instead of {}",
                                    d.tensors, d.tensors == 1 ? "" : "s", d.format->name,
                                    d.tensors == 1 ? "is" : "are", format_bytes(d.stored_bytes),
                                    format_bytes(d.file_bytes)));
    return lines;
}

}  // namespace redline::cli
