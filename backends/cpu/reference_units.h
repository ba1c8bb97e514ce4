// Units of the reference's error bounds.
#pragma once

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

}  // namespace redline
