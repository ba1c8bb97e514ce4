// Codes of 4 and 5 bits of a cache, to and from bytes. All loops are of fixed length and without branches, so
// that the compiler makes vectors of them.
#pragma once

#include "kv_layout.h"

#include <cstring>

namespace redline::cpu {
namespace {

constexpr uint32_t kHalfGroup = kGroup / 2;  // codes of a group that are in the lower halves of its bytes
constexpr uint32_t kHighBytes = kGroup / 8;

// The levels of iq4_nl, in steps of its scale.
constexpr int8_t kLevels[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

// Code to element, in steps of the scale. Of types with a minimum codes count from there.
inline void signed_codes(CacheType type, int8_t* codes, size_t count) {
    const bool by_levels = type == CacheType::iq4_nl;
    const int8_t zero = type == CacheType::q4_0 ? 8 : type == CacheType::q5_0 ? 16 : 0;
    for (size_t i = 0; i < count; ++i) codes[i] = by_levels ? kLevels[codes[i]] : int8_t(codes[i] - zero);
}

// A token's elements of a group, in steps of the scale, from its bytes.
inline void unpack_group(CacheType type, const std::byte* codes, const std::byte* highs, int8_t* out) {
    const auto* from = reinterpret_cast<const uint8_t*>(codes);
    for (size_t i = 0; i < kHalfGroup; ++i) {
        out[i] = int8_t(from[i] & 15);
        out[kHalfGroup + i] = int8_t(from[i] >> 4);
    }
    if (cache_code(type).highs) {
        const auto* bits = reinterpret_cast<const uint8_t*>(highs);
        for (size_t i = 0; i < kGroup; ++i)
            out[i] = int8_t(out[i] | ((bits[i / 8] & (1u << i % 8)) != 0 ? 16 : 0));
    }
    signed_codes(type, out, kGroup);
}

// The bytes of a group of one token.
struct PackedGroup {
    uint8_t codes[kHalfGroup];
    uint8_t highs[kHighBytes];
    uint16_t scales[2];
};

inline void pack_codes(const uint8_t (&codes)[kGroup], PackedGroup& out) {
    for (uint32_t i = 0; i < kHalfGroup; ++i)
        out.codes[i] = uint8_t((codes[i] & 15u) | (codes[i + kHalfGroup] & 15u) << 4);
    for (uint32_t byte = 0; byte < kHighBytes; ++byte) {
        uint32_t bits = 0;
        for (uint32_t i = 0; i < 8; ++i) bits |= uint32_t(codes[byte * 8 + i] >> 4) << i;
        out.highs[byte] = uint8_t(bits);
    }
}

inline void widen_bfloats(const uint16_t* from, size_t count, float* to) {
    for (size_t i = 0; i < count; ++i) to[i] = __builtin_bit_cast(float, uint32_t(from[i]) << 16);
}

// Rounds to nearest, ties to even; NaN is made quiet.
inline uint16_t to_bfloat(float x) {
    const auto bits = __builtin_bit_cast(uint32_t, x);
    return uint16_t((bits & 0x7FFFFFFFu) > 0x7F800000u ? bits >> 16 | 0x40u
                                                       : (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

// The level next to x, the lower one of two.
inline uint8_t nearest_level(float x) {
    uint32_t code = 0;
    for (uint32_t i = 1; i < 16; ++i)
        code += x > (float(kLevels[i - 1]) + float(kLevels[i])) * 0.5f ? 1u : 0u;
    return uint8_t(code);
}

}  // namespace
}  // namespace redline::cpu
