// Codes of 32 elements, and fields of few bits, in the order in which kernels take them out of words; blocks
// of a file one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace redline {

// Codes of 32 elements into 16 bytes: byte i holds element i below and i + 16 above.
inline void put_nibbles(const uint8_t* codes, std::byte* out) {
    for (int i = 0; i < 16; ++i) out[i] = std::byte((codes[i] & 15) | (codes[i + 16] & 15) << 4);
}

// Bit v of byte j belongs to element 4v + j.
inline void put_bits(const uint8_t* bits, std::byte* out) {
    uint8_t bytes[4] = {};
    for (int e = 0; e < 32; ++e) bytes[e % 4] = uint8_t(bytes[e % 4] | (bits[e] & 1) << (e / 4));
    std::memcpy(out, bytes, 4);
}

// Bits 2v, 2v + 1 of byte j of word w belong to element 16w + 4v + j.
inline void put_pairs(const uint8_t* pairs, std::byte* out) {
    uint8_t bytes[8] = {};
    for (int e = 0; e < 32; ++e) {
        uint8_t& byte = bytes[e / 16 * 4 + e % 4];
        byte = uint8_t(byte | (pairs[e] & 3) << (e % 16 / 4 * 2));
    }
    std::memcpy(out, bytes, 8);
}

// Calls put(block, i); blocks of the file need not be aligned.
template <typename F, typename Put>
void for_blocks(const std::byte* file, uint64_t blocks, Put put) {
    typename F::Block block;
    for (uint64_t i = 0; i < blocks; ++i) {
        std::memcpy(&block, file + i * sizeof(block), sizeof(block));
        put(block, i);
    }
}

}  // namespace redline
