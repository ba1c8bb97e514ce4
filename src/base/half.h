// IEEE binary16 and bfloat16 <-> binary32, bit exact and portable, subnormals included.
#pragma once

#include <bit>
#include <cstdint>

#if defined(__HIPCC__) || defined(__CUDACC__)
#define RL_HD __host__ __device__
#else
#define RL_HD
#endif

namespace redline {

RL_HD inline float bits_to_float(uint32_t bits) {
    return __builtin_bit_cast(float, bits);
}
RL_HD inline uint32_t float_to_bits(float value) {
    return __builtin_bit_cast(uint32_t, value);
}

RL_HD inline float half_to_float(uint16_t half) {
    const uint32_t sign = uint32_t(half & 0x8000u) << 16;
    const uint32_t exponent = (half >> 10) & 0x1Fu;
    const uint32_t mantissa = half & 0x3FFu;
    if (exponent == 31) return bits_to_float(sign | 0x7F800000u | (mantissa << 13));
    if (exponent != 0) return bits_to_float(sign | ((exponent + 112) << 23) | (mantissa << 13));
    // Subnormal: mantissa * 2^-24 is exact in binary32.
    const float magnitude = float(mantissa) * 0x1p-24f;
    return bits_to_float(sign | float_to_bits(magnitude));
}

// Rounds to nearest, ties to even; overflow becomes infinity; NaN stays NaN.
RL_HD inline uint16_t float_to_half(float value) {
    const uint32_t bits = float_to_bits(value);
    const uint16_t sign = uint16_t((bits >> 16) & 0x8000u);
    const uint32_t magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u) return uint16_t(sign | 0x7E00u);
    if (magnitude >= 0x477FF000u) return uint16_t(sign | 0x7C00u);
    if (magnitude < 0x38800000u) {
        // Below the smallest normal half: adding 0.5 aligns the mantissa so that the sum's low bits are the
        // answer.
        const float aligned = bits_to_float(magnitude) + 0.5f;
        return uint16_t(sign | uint16_t(float_to_bits(aligned) - 0x3F000000u));
    }
    const uint32_t odd = (magnitude >> 13) & 1u;
    return uint16_t(sign | uint16_t((magnitude - 0x38000000u + 0xFFFu + odd) >> 13));
}

RL_HD inline float bfloat_to_float(uint16_t value) {
    return bits_to_float(uint32_t(value) << 16);
}

// Rounds to nearest, ties to even; NaN is made quiet.
RL_HD inline uint16_t float_to_bfloat(float value) {
    const uint32_t bits = float_to_bits(value);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return uint16_t((bits >> 16) | 0x40u);
    return uint16_t((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace redline
