// Half precision against its definition in exact double arithmetic, not against another conversion.
#include "base/half.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace redline {

// The value of a finite binary16 or bfloat16, by the definition of the format.
static double exact_value(uint32_t bits, int mantissa_bits, int exponent_bits) {
    const int exponent = int(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
    const int mantissa = int(bits) & ((1 << mantissa_bits) - 1);
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const bool negative = (bits >> (mantissa_bits + exponent_bits)) & 1;
    const double magnitude =
        exponent == 0 ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                      : std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
    return negative ? -magnitude : magnitude;
}

static bool is_nan_half(uint32_t bits) {
    return (bits & 0x7FFF) > 0x7C00;
}

TEST_CASE("half: every one of the 65536 bit patterns has its exact value") {
    int wrong = 0;
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
        const float value = half_to_float(uint16_t(bits));
        const bool negative = bits & 0x8000;
        if (is_nan_half(bits)) {
            wrong += !std::isnan(value);
        } else if ((bits & 0x7FFF) == 0x7C00) {
            wrong += !std::isinf(value) || std::signbit(value) != negative;
        } else {
            wrong += double(value) != exact_value(bits, 10, 5) || std::signbit(value) != negative;
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("half: every bit pattern but NaN survives the way to float and back, NaN stays NaN") {
    int wrong = 0;
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
        const uint16_t back = float_to_half(half_to_float(uint16_t(bits)));
        wrong += is_nan_half(bits) ? !is_nan_half(back) || ((back ^ bits) & 0x8000) : back != bits;
    }
    CHECK(wrong == 0);
}

// Rounding is monotonic, so it is right everywhere if it is right on both sides of every midpoint.
TEST_CASE("half: between any two neighbours, floats round to the nearer and midpoints to the even one") {
    int wrong = 0;
    for (uint32_t low = 0; low < 0x7C00; ++low) {
        // The step past the largest finite half is where infinity begins.
        const double above = low == 0x7BFF ? 65536.0 : exact_value(low + 1, 10, 5);
        const float midpoint = float((exact_value(low, 10, 5) + above) / 2);
        const uint16_t even = uint16_t(low + (low & 1));
        for (const uint16_t sign : {uint16_t(0), uint16_t(0x8000)}) {
            const float s = sign ? -1.0f : 1.0f;
            wrong += float_to_half(s * midpoint) != (even | sign);
            wrong += float_to_half(s * std::nextafter(midpoint, 0.0f)) != (low | sign);
            wrong += float_to_half(s * std::nextafter(midpoint, std::numeric_limits<float>::infinity())) !=
                     ((low + 1) | sign);
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("half: what is out of range becomes infinity or a signed zero") {
    CHECK(float_to_half(1e9f) == 0x7C00);
    CHECK(float_to_half(-std::numeric_limits<float>::max()) == 0xFC00);
    CHECK(float_to_half(std::numeric_limits<float>::infinity()) == 0x7C00);
    CHECK(float_to_half(std::numeric_limits<float>::denorm_min()) == 0x0000);
    CHECK(float_to_half(-1e-30f) == 0x8000);
    CHECK(is_nan_half(float_to_half(bits_to_float(0x7F800001))));
}

TEST_CASE("half: floats all over the range are within half a step of their half") {
    int wrong = 0;
    // A prime stride visits about 1.4 million of the positive floats that a half can hold.
    for (uint64_t bits = 0; bits < 0x477FF000; bits += 853) {
        const double value = bits_to_float(uint32_t(bits));
        const uint32_t half = float_to_half(float(value));
        const double error = std::fabs(exact_value(half, 10, 5) - value);
        const double step = std::ldexp(1.0, std::max(int(half >> 10), 1) - 25);
        wrong += !(error <= step / 2);
    }
    CHECK(wrong == 0);
}

TEST_CASE("bfloat: every bit pattern is exact and survives the way to float and back, NaN stays NaN") {
    int wrong = 0;
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
        const float value = bfloat_to_float(uint16_t(bits));
        const uint16_t back = float_to_bfloat(value);
        if ((bits & 0x7FFF) > 0x7F80) {
            wrong += !std::isnan(value) || (back & 0x7FFF) <= 0x7F80;
        } else {
            wrong += back != bits;
            if ((bits & 0x7FFF) < 0x7F80) wrong += double(value) != exact_value(bits, 7, 8);
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("bfloat: between any two neighbours, floats round to the nearer and midpoints to the even one") {
    int wrong = 0;
    for (uint32_t low = 0; low < 0x7F80; ++low) {
        const uint32_t midpoint = (low << 16) + 0x8000;  // in bits: the next float is the next number
        const uint16_t even = uint16_t(low + (low & 1));
        for (const uint32_t sign : {0u, 0x8000u}) {
            wrong += float_to_bfloat(bits_to_float(midpoint | sign << 16)) != (even | sign);
            wrong += float_to_bfloat(bits_to_float((midpoint - 1) | sign << 16)) != (low | sign);
            wrong += float_to_bfloat(bits_to_float((midpoint + 1) | sign << 16)) != ((low + 1) | sign);
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("bfloat: a NaN whose payload is cut off stays a NaN") {
    CHECK((float_to_bfloat(bits_to_float(0x7F800001)) & 0x7FFF) > 0x7F80);
    CHECK((float_to_bfloat(bits_to_float(0xFFFFFFFF)) & 0x7FFF) > 0x7F80);
}

}  // namespace redline
