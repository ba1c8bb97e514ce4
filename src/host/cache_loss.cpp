#include "host/cache_loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace redline {

namespace {

// Qwen2.5-Coder-1.5B has biases up to 354: with keys in q5_1 its perplexity is 930 in place of 5.2, in q4_0
// 5611, and in q8_0 5.2 (tools/bench/2026-11-30-cache-types.md). Most of its layers have less than 12.
constexpr float kLargeBias = 32.0f;

float largest_bias(const Gguf& gguf) {
    float largest = 0.0f;
    std::vector<float> bias;
    for (const GgufTensor& tensor : gguf.tensors()) {
        if (!tensor.tensor.name.ends_with(".attn_k.bias") || tensor.bytes % sizeof(float) != 0) continue;
        if (tensor.dims.size() != 1 || tensor.bytes != tensor.dims[0] * sizeof(float)) continue;
        bias.resize(tensor.dims[0]);
        if (!gguf.read(tensor, 0, std::as_writable_bytes(std::span(bias)))) continue;
        for (const float each : bias)
            if (std::isfinite(each)) largest = std::max(largest, std::abs(each));
    }
    return largest;
}

}  // namespace

std::string key_loss(const Gguf& gguf, CacheTypes cache) {
    if (cache_code(cache.keys).bits >= 8) return {};
    const float bias = largest_bias(gguf);
    if (bias < kLargeBias) return {};
    return fmt::format(
        "this model adds up to {:.0f} to its keys, of which {} keeps too little: its texts may "
        "make no sense; -ctk q8_0 keeps enough, and values may stay {}",
        bias, cache_type_name(cache.keys), cache_type_name(cache.values));
}

}  // namespace redline
