// How activation rows are prepared for the products. Plain loops, which the compiler turns into vectors of
// the level that this is compiled for.
#pragma once

#include "linear_common.h"

namespace redline::cpu {
namespace {

// Whole cache lines, and an odd number of them, so that the rows of a tile do not fall into the same sets of
// the cache.
RL_ALWAYS_INLINE inline size_t odd_lines(size_t bytes) {
    return ((bytes + 63) / 64 | 1) * 64;
}

[[maybe_unused]] size_t f32_bytes(size_t cols) {
    return odd_lines(cols * sizeof(float));
}

[[maybe_unused]] void prepare_f32(const float* x, size_t cols, std::byte* set, size_t row, size_t) {
    __builtin_memcpy(set + row * f32_bytes(cols), x, cols * sizeof(float));
}

[[maybe_unused]] size_t int8_bytes(size_t cols) {
    return odd_lines((cols + 31) / 32 * sizeof(Int8Block));
}

RL_ALWAYS_INLINE inline void quantize(const float* x, Int8Block& out) {
    constexpr uint32_t kInfinity = 0x7F800000u;
    constexpr float kSmallest =
        0x1p-110f;  // below, 127 / largest or the scale's product with a weight's is lost
    uint32_t largest_bits = 0;
    for (int i = 0; i < 32; ++i) {
        const uint32_t bits = __builtin_bit_cast(uint32_t, x[i]) & 0x7FFFFFFFu;
        largest_bits = largest_bits > bits ? largest_bits : bits;
    }
    const float largest = __builtin_bit_cast(float, largest_bits);
    const bool finite = largest_bits < kInfinity;
    const float inverse = finite && largest >= kSmallest ? 127.0f / largest : 0.0f;
    const float scale = finite ? (inverse > 0.0f ? largest / 127.0f : 0.0f) : __builtin_nanf("");
    // Adding 1.5 * 2^23 rounds to the nearest even integer, which then is the low bits.
    constexpr float kRound = 12582912.0f;
    int32_t q[32];
    for (int i = 0; i < 32; ++i)
        q[i] = __builtin_bit_cast(int32_t, x[i] * inverse + kRound) - __builtin_bit_cast(int32_t, kRound);
    if (!finite)
        for (int i = 0; i < 32; ++i) q[i] = 0;
    int32_t sum[2] = {0, 0};
    for (int i = 0; i < 16; ++i) sum[0] += q[i];
    for (int i = 16; i < 32; ++i) sum[1] += q[i];
    for (int i = 0; i < 32; ++i) out.q[i] = int8_t(q[i]);
    out.scale = scale;
    out.sum = scale * float(sum[0] + sum[1]);
    out.neg32 = -128 * (sum[0] + sum[1]);
    for (int h = 0; h < 2; ++h) {
        out.neg16[h] = -128 * sum[h];
        out.sum16[h] = scale * float(sum[h]);
    }
    out.unused = 0;
}

[[maybe_unused]] void prepare_int8(const float* x, size_t cols, std::byte* set, size_t row, size_t) {
    auto* block = reinterpret_cast<Int8Block*>(set + row * int8_bytes(cols));
    for (; cols >= 32; cols -= 32, x += 32) quantize(x, *block++);
}

}  // namespace
}  // namespace redline::cpu
