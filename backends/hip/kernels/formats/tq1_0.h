// Planes: four fractions of 256 with five digits to the base 3 each (4 bytes per unit), four fractions of 32
// with three digits, their lower 16 bits (2), the other four (half a byte), per 256 elements the scale (2).
// Digit n of fraction j belongs to element 4n + j, and of the latter to 20 + 4n + j.
#pragma once

#include "kernels/unit.h"

namespace redline::hip {

struct tq1_0 : Quantized<false, 1, false> {
    static constexpr args::Planes kPlanes = {{32, 16, 4, 2}};
    // One digit of each of four fractions of 256 after the other.
    template <uint32_t kFirst, uint32_t kEnd>
    RL_DEVICE static void put_digits(uint32_t fractions, uint32_t (&words)[8]) {
        uint32_t even = fractions & 0x00FF00FFu, odd = (fractions >> 8) & 0x00FF00FFu;
        RL_UNROLL
        for (uint32_t k = kFirst; k < kEnd; ++k) {
            even *= 3;
            odd *= 3;
            words[k] = ((even >> 8) & 0x00030003u) | (odd & 0x03000300u);
            even &= 0x00FF00FFu;
            odd &= 0x00FF00FFu;
        }
    }
    RL_DEVICE static void codes(const Matrix& w, size_t unit, uint32_t (&words)[8]) {
        const uint32_t top = (uint32_t(w.data[w.units * 6 + unit / 2]) >> (unit % 2 * 4)) & 15u;
        const uint32_t few = load<uint16_t>(w.data, w.units * 2 + unit) | top << 16;
        put_digits<0, 5>(load<uint32_t>(w.data, unit), words);
        put_digits<5, 8>(((few << 3) & 0xF8u) | ((few << 6) & 0xF800u) | ((few << 9) & 0xF80000u) |
                             ((few << 12) & 0xF8000000u),
                         words);
    }
    RL_DEVICE static UnitScales scales(const Matrix& w, size_t unit) {
        return pair_scales(half_value(load<uint16_t>(w.data, w.units * 3 + w.units / 4 + unit / 8)), 0.0f);
    }
};

}  // namespace redline::hip
