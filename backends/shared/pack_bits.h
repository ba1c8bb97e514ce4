// Codes of 32 elements, and fields of few bits, in the order in which kernels take them out of words; blocks
// of a file one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace redline {

// A word of the file, which need not be aligned; bytes in the machine's order, which is the file's.
template <typename Word>
Word load_word(const uint8_t* from) {
    Word word;
    std::memcpy(&word, from, sizeof(word));
    return word;
}

// The fields that 32 bytes have from bit `shift` on are those of 32 elements. Whole words are taken at once:
// packing is what weights wait for that flow through a device.

// Nibbles into 16 bytes: byte i holds element i below and i + 16 above.
inline void take_nibbles(const uint8_t* from, uint32_t shift, std::byte* out) {
    constexpr uint64_t kEach = 0x0F0F0F0F0F0F0F0F;
    for (uint32_t i = 0; i < 16; i += 8) {
        const uint64_t low = load_word<uint64_t>(from + i) >> shift & kEach,
                       high = load_word<uint64_t>(from + 16 + i) >> shift & kEach, both = low | high << 4;
        std::memcpy(out + i, &both, 8);
    }
}

// Single bits: bit v of byte j belongs to element 4v + j.
inline void take_bits(const uint8_t* from, uint32_t shift, std::byte* out) {
    uint32_t word = 0;
    for (uint32_t v = 0; v < 8; ++v) word |= (load_word<uint32_t>(from + 4 * v) >> shift & 0x01010101) << v;
    std::memcpy(out, &word, 4);
}

// Pairs of bits: bits 2v, 2v + 1 of byte j of word w belong to element 16w + 4v + j.
inline void take_pairs(const uint8_t* from, uint32_t shift, std::byte* out) {
    for (uint32_t w = 0; w < 2; ++w) {
        uint32_t word = 0;
        for (uint32_t v = 0; v < 4; ++v)
            word |= (load_word<uint32_t>(from + 16 * w + 4 * v) >> shift & 0x03030303) << (2 * v);
        std::memcpy(out + 4 * w, &word, 4);
    }
}

inline void put_nibbles(const uint8_t* codes, std::byte* out) {
    take_nibbles(codes, 0, out);
}
inline void put_bits(const uint8_t* bits, std::byte* out) {
    take_bits(bits, 0, out);
}
inline void put_pairs(const uint8_t* pairs, std::byte* out) {
    take_pairs(pairs, 0, out);
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
