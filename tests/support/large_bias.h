// A copy of the tiny Qwen2 with a large bias of keys in its second layer, and heads that quantized caches
// take.
#pragma once

#include "support/models.h"

namespace redline::test {

// Layers from `first` on have it; the model has two. Two heads of 32, one of keys, in place of four of 16 and
// two: tensors have the same shapes.
inline void save_large_bias(const std::string& path, float bias, uint32_t first = 1) {
    const Gguf gguf = must(Gguf::open(golden("models/qwen2.gguf")));
    const auto key = [](const std::string& name) {
        return name.find("head_count") == name.npos ? name : std::string();
    };
    save_renamed(
        gguf, key, [](const std::string& name) { return name; },
        {{"qwen2.attention.head_count", metadata_u32(2)}, {"qwen2.attention.head_count_kv", metadata_u32(1)}},
        path);
    const Gguf saved = must(Gguf::open(path));
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    for (uint32_t layer = first; layer < 2; ++layer) {
        const GgufTensor* const keys = saved.find(fmt::format("blk.{}.attn_k.bias", layer));
        REQUIRE(keys);
        file.seekp(std::streamoff(keys->offset));
        file.write(reinterpret_cast<const char*>(&bias), sizeof bias);
    }
}

}  // namespace redline::test
