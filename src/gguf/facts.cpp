#include "gguf/facts.h"

#include <algorithm>
#include <iterator>
#include <map>

namespace redline {

namespace {

struct FileType {
    std::string_view name;
    std::string_view base;  // the format of most of its matrices
};

// Names by the number in general.file_type; numbers without a name were withdrawn.
constexpr FileType kFileTypes[] = {{"F32", "F32"},
                                   {"F16", "F16"},
                                   {"Q4_0", "Q4_0"},
                                   {"Q4_1", "Q4_1"},
                                   {},
                                   {},
                                   {},
                                   {"Q8_0", "Q8_0"},
                                   {"Q5_0", "Q5_0"},
                                   {"Q5_1", "Q5_1"},
                                   {"Q2_K", "Q2_K"},
                                   {"Q3_K_S", "Q3_K"},
                                   {"Q3_K_M", "Q3_K"},
                                   {"Q3_K_L", "Q3_K"},
                                   {"Q4_K_S", "Q4_K"},
                                   {"Q4_K_M", "Q4_K"},
                                   {"Q5_K_S", "Q5_K"},
                                   {"Q5_K_M", "Q5_K"},
                                   {"Q6_K", "Q6_K"},
                                   {"IQ2_XXS", "IQ2_XXS"},
                                   {"IQ2_XS", "IQ2_XS"},
                                   {"Q2_K_S", "Q2_K"},
                                   {"IQ3_XS", "IQ3_S"},
                                   {"IQ3_XXS", "IQ3_XXS"},
                                   {"IQ1_S", "IQ1_S"},
                                   {"IQ4_NL", "IQ4_NL"},
                                   {"IQ3_S", "IQ3_S"},
                                   {"IQ3_M", "IQ3_S"},
                                   {"IQ2_S", "IQ2_XS"},
                                   {"IQ2_M", "IQ2_S"},
                                   {"IQ4_XS", "IQ4_XS"},
                                   {"IQ1_M", "IQ1_M"},
                                   {"BF16", "BF16"},
                                   {},
                                   {},
                                   {},
                                   {"TQ1_0", "TQ1_0"},
                                   {"TQ2_0", "TQ2_0"},
                                   {"MXFP4_MOE", "MXFP4"},
                                   {"NVFP4", "NVFP4"},
                                   {"Q1_0", "Q1_0"},
                                   {"Q2_0", "Q2_0"}};

// llama.cpp's substitute for matrices whose rows are no multiple of 256.
std::string_view substitute(std::string_view base) {
    if (base == "Q4_K") return "Q5_0";
    if (base == "Q5_K") return "Q5_1";
    if (base == "Q6_K") return "Q8_0";
    if (base.starts_with("TQ")) return "Q4_0";
    return base.starts_with("IQ") || base.ends_with("_K") ? "IQ4_NL" : base;
}

bool is_matrix(const GgufTensor& tensor) {
    return tensor.tensor.shape.rows * tensor.tensor.shape.count > 1;
}

const FileType* stated(const Gguf& gguf) {
    const Result<uint64_t> number = gguf.metadata().integer("general.file_type", std::size(kFileTypes));
    if (!number || number.value() >= std::size(kFileTypes)) return nullptr;
    const FileType& type = kFileTypes[number.value()];
    return type.name.empty() ? nullptr : &type;
}

}  // namespace

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

std::string stated_file_type(const Gguf& gguf) {
    const FileType* type = stated(gguf);
    return type ? std::string(type->name) : "";
}

std::string file_type_contradiction(const Gguf& gguf) {
    // No mix has a mean so much smaller than the format of most matrices.
    constexpr double kLeastShare = 0.75;
    const FileType* type = stated(gguf);
    if (!type) return "";
    bool has_base = false;
    uint64_t bytes = 0, elements = 0;
    double base_bits = 0.0;
    for (const GgufTensor& tensor : gguf.tensors()) {
        const auto known = find_type(tensor.type);
        if (!is_matrix(tensor) || !known) continue;
        bytes += tensor.bytes;
        elements += elements_of(tensor);
        // A mix may be pure: IQ2_S, which mostly has IQ2_XS, may have IQ2_S only.
        for (const std::string_view fits : {type->base, type->name, substitute(type->base)})
            has_base = has_base || known->name == fits;
        if (known->name == type->base) base_bits = 8.0 * known->block_bytes / known->block;
    }
    if (elements == 0) return "";
    if (!has_base) return fmt::format("no matrix has {}", type->base);
    const double bits = 8.0 * double(bytes) / double(elements);
    if (bits >= kLeastShare * base_bits) return "";
    return fmt::format("the matrices have {:.1f} bits per weight, {} has {:.1f}", bits, type->base,
                       base_bits);
}

std::string file_type(const Gguf& gguf) {
    const std::string stated = stated_file_type(gguf);
    if (!stated.empty() && file_type_contradiction(gguf).empty()) return stated;
    const std::vector<FormatShare> shares = format_shares(gguf);
    return shares.empty() ? "no tensors" : shares.front().format;
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
