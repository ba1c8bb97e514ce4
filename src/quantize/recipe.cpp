#include "quantize/recipe.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace redline {

namespace {

constexpr Recipe kRecipes[] = {
    {"Q4_0", "4.5 bits: plain blocks of 32; the output in Q6_K", 2, "Q4_0", "Q6_K", ""},
    {"Q4_K", "4.5 bits: all in Q4_K but the output in Q6_K", 14, "Q4_K", "Q6_K", ""},
    {"Q4_K_M", "about 4.8 bits: as Q4_K, with half of attn_v and ffn_down in Q6_K", 15, "Q4_K", "Q6_K",
     "Q6_K"},
    {"Q6_K", "6.6 bits: all in Q6_K", 18, "Q6_K", "Q6_K", ""},
    {"Q8_0", "8.5 bits: all in Q8_0", 7, "Q8_0", "Q8_0", ""},
};

// N of "blk.N.": past all layers when there is none.
uint64_t layer_of(std::string_view name) {
    uint64_t layer = UINT64_MAX;
    if (name.starts_with("blk.")) std::from_chars(name.data() + 4, name.data() + name.size(), layer);
    return layer;
}

bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != text.npos;
}

}  // namespace

std::span<const Recipe> recipes() {
    return kRecipes;
}

const Recipe* find_recipe(std::string_view name) {
    const auto same = [](char a, char b) { return std::toupper(uint8_t(a)) == std::toupper(uint8_t(b)); };
    for (const Recipe& recipe : kRecipes)
        if (std::equal(name.begin(), name.end(), recipe.name.begin(), recipe.name.end(), same))
            return &recipe;
    return nullptr;
}

bool gets_more_bits(uint64_t layer, uint64_t layers) {
    const uint64_t eighth = layers / 8;
    return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
}

bool is_quantized(const GgufTensor& tensor) {
    const std::string& name = tensor.tensor.name;
    if (tensor.dims.size() < 2 || tensor.tensor.shape.rows * tensor.tensor.shape.count < 2) return false;
    // Small, and what they are off goes far: gains, routers, embeddings of positions, and convolutions, whose
    // rows are a few taps.
    constexpr std::string_view kKept[] = {"norm", "ffn_gate_inp", "ssm_conv1d", "shortconv.conv",
                                          "position_embd"};
    return name.ends_with(".weight") &&
           std::none_of(std::begin(kKept), std::end(kKept), [&](auto part) { return contains(name, part); });
}

std::string_view format_for(const Recipe& recipe, const GgufTensor& tensor, uint64_t layers, bool tied) {
    const std::string& name = tensor.tensor.name;
    const uint64_t layer = layer_of(name);
    const bool output = name == "output.weight" || (tied && name == "token_embd.weight");
    const bool sensitive =
        contains(name, "attn_v.") || contains(name, "attn_qkv.") || contains(name, "ffn_down");
    std::string_view format = output ? recipe.output : recipe.base;
    if (!recipe.better.empty() && sensitive && layer < layers && gets_more_bits(layer, layers))
        format = recipe.better;
    const auto divides = [&](std::string_view wanted) {
        return tensor.tensor.shape.cols % find_format(wanted)->block == 0;
    };
    return divides(format) ? format : divides("Q8_0") ? "Q8_0" : "F16";
}

}  // namespace redline
