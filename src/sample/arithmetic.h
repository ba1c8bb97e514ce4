// The arithmetic that must give the same bits on every machine: an exponential and a uniform number.
// (std::exp rounds differently from one libm to the next; std distributions are not specified at all.)
#pragma once

#include <bit>
#include <cstdint>
#include <random>

namespace redline {

// 2^(i/16)
inline constexpr double kSixteenths[16] = {
    0x1.0000000000000p+0, 0x1.0b5586cf9890fp+0, 0x1.172b83c7d517bp+0, 0x1.2387a6e756238p+0,
    0x1.306fe0a31b715p+0, 0x1.3dea64c123422p+0, 0x1.4bfdad5362a27p+0, 0x1.5ab07dd485429p+0,
    0x1.6a09e667f3bcdp+0, 0x1.7a11473eb0187p+0, 0x1.8ace5422aa0dbp+0, 0x1.9c49182a3f090p+0,
    0x1.ae89f995ad3adp+0, 0x1.c199bdd85529cp+0, 0x1.d5818dcfba487p+0, 0x1.ea4afa2a490dap+0};

// e^x for x <= 0, relative error below 1e-12; below -700 it stays at e^-700.
inline double exp_nonpositive(double x) {
    x = x < -700.0 ? -700.0 : x;
    // x = n ln2 / 16 + r. Adding 1.5 * 2^52 rounds to the integer n, which is then in the low bits of the
    // sum.
    constexpr double kRound = 0x1.8p52;
    const double shifted = x * 0x1.71547652b82fep4 + kRound;
    const double n = shifted - kRound;
    // ln2 / 16 in two parts: n * high is exact.
    const double r = (x - n * 0x1.62e42feep-5) - n * 0x1.a39ef35793c76p-37;
    const double series = 1.0 + r * (1.0 + r * (1.0 / 2 + r * (1.0 / 6 + r * (1.0 / 24 + r * (1.0 / 120)))));
    const uint64_t bits = std::bit_cast<uint64_t>(shifted);
    const uint64_t scale = ((bits >> 4) + 1023) << 52;
    return series * (kSixteenths[bits & 15] * std::bit_cast<double>(scale));
}

// u in [0, 1) from 64 random bits, low half first.
inline double uniform(std::mt19937& generator) {
    const uint64_t low = generator();
    const uint64_t high = generator();
    return double(((high << 32) | low) >> 11) * 0x1p-53;
}

}  // namespace redline
