// Formats whose codes the file keeps as entries of a code book, or in an order that costs kernels much: their
// blocks are taken apart while packing, into levels, signs and scales that a few vector operations decode.
#pragma once

#include <cstddef>
#include <cstdint>

namespace redline::cpu {

struct Repacking {
    uint32_t gguf_id;
    uint32_t bytes;  // of a packed block
    void (*pack)(const std::byte* block, std::byte* packed);
    // All elements of a packed block, bit for bit as Format::decode gives those of the file's.
    void (*decode)(const std::byte* packed, float* out);
};
constexpr size_t kMostRepackedBytes = 144;

// Null for a format whose blocks keep the file's bytes.
const Repacking* find_repacking(uint32_t gguf_id);

}  // namespace redline::cpu
