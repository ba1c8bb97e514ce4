// Units of the reference's error bounds.
#pragma once

#include "reference/reference.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace redline {

// Half a unit in the last place of binary32, as a relative error. Sums of n terms in any sensible order stay
// within a few sqrt(n) of it; kernels sum in short chains, so this holds for adversarial data too.
constexpr double kUnit = 0x1p-24;
inline double sum_unit(size_t n) {
    return (4.0 * std::sqrt(double(n)) + 8.0) * kUnit;
}

constexpr double kTiny = 1e-30;

inline Bounded product(const Bounded& a, const Bounded& b) {
    const double v = a.value * b.value;
    return {
        v,
        std::abs(a.value) * b.error + a.error * (std::abs(b.value) + b.error) + kUnit * std::abs(v) + kTiny,
        a.magnitude * b.magnitude};
}

// The slope is at most a quarter, and at most the value, which is at most one. Exponentials have an error of
// a few units for each unit of their argument.
inline Bounded sigmoid(const Bounded& x) {
    const double v = 1.0 / (1.0 + std::exp(-x.value));
    const double off = std::min(0.25 * x.error, v * std::expm1(x.error));
    return {v, off + (8 + std::min(std::abs(x.value), 100.0)) * kUnit * v + kTiny, v};
}

// The slope of silu is 1.1 at most, and its size is at most its argument's.
inline Bounded silu(const Bounded& x) {
    const double v = x.value / (1.0 + std::exp(-x.value));
    return {v, 1.13 * x.error + 8 * kUnit * std::abs(x.value) + kTiny, x.magnitude};
}

// The rounding error of c * tanh(x / c), whose slope is at most one. When tanh is computed from exponentials,
// as on GPUs, its error is relative to one, not to the result.
inline double softcap_error(double x, double c) {
    return kUnit * (16 * std::abs(x) + 4 * c);
}

inline Bounded plus(const Bounded& a, const Bounded& b) {
    const double v = a.value + b.value, unit = kUnit * (std::abs(v) + a.error + b.error);
    const bool known = a.spread >= 0.0 || b.spread >= 0.0;
    return {v, a.error + b.error + unit, a.magnitude + b.magnitude,
            known ? std::hypot(a.likely(), b.likely()) + unit : -1.0};
}

}  // namespace redline
