// The reference of a row of weights by a row of activations, with the bound on its error.
#pragma once

#include "reference/reference.h"

#include <algorithm>
#include <cmath>

namespace redline {

inline double size_of(double w) {
    return std::abs(w);
}
inline double size_of(const Bounded& x) {
    return std::abs(x.value) + x.error;
}
inline double value_of(double w) {
    return w;
}
inline double value_of(const Bounded& x) {
    return x.value;
}

// Up to `most` in either direction. One number drawn is enough: two, as a distribution of doubles takes, were
// half of the time of tests that round at random.
inline double within(double most, std::minstd_rand& random) {
    constexpr double kMiddle = (double(std::minstd_rand::min()) + double(std::minstd_rand::max())) / 2;
    return most * ((double(random()) - kMiddle) / (double(std::minstd_rand::max()) - kMiddle));
}

// How far the elements of one operand are off, asked for one after the other.
template <typename T>
class Rounded {
public:
    Rounded(const Rounding& rounding, const T* x, size_t count) : rounding_(rounding), x_(x), count_(count) {}
    double operator()(size_t i) {
        if (rounding_.block > 0.0 && i >= group_end_) {
            group_end_ = std::min(i + rounding_.group, count_);
            most_ = 0.0;
            for (size_t j = i; j < group_end_; ++j) most_ = std::max(most_, size_of(x_[j]));
            block_ = most_ > 0.0 ? block_error(i) : 0.0;
        }
        return rounding_.unit * size_of(x_[i]) + block_ * most_;
    }

private:
    // Of elements of which all are near a whole number of a step of 127 levels, how far they are from it at
    // most: a kernel cannot but round to that, whatever a norm before may have multiplied all of them by.
    double block_error(size_t first) const {
        constexpr double kNear = 1.0 / 16, kFloats = 0x1p-12;
        if (rounding_.block != to_int8(rounding_.group).block) return rounding_.block;
        double most = 0.0;
        for (size_t j = first; j < group_end_ && most < kNear; ++j) {
            const double value = value_of(x_[j]), level = value / most_ * 127,
                         error = (size_of(x_[j]) - std::abs(value)) / most_ * 127;
            most = std::max(most, std::abs(level - std::nearbyint(level)) + error);
        }
        return most < kNear ? (most + kFloats) / 127 : rounding_.block;
    }

    const Rounding rounding_;
    const T* x_;
    size_t count_, group_end_ = 0;
    double most_ = 0.0, block_ = 0.0;
};

// What of a product depends on the activations alone, computed once for all rows of weights.
class ProductRow {
public:
    // `random`: operands and sums are rounded by it, as far as kernels may, and no errors are bounded; or
    // null.
    ProductRow(const Precision& precision, const Bounded* x, size_t cols, std::minstd_rand* random);
    Bounded dot(const float* w);

private:
    Bounded rounded_dot(const float* w);

    const Precision precision_;
    const Bounded* const x_;
    const size_t cols_;
    std::minstd_rand* const random_;
    std::vector<double> values_, sizes_, magnitudes_;
    std::vector<double> largest_;  // with all errors
    std::vector<double> errors_;   // for each unit of a weight's size, its own rounding included
    std::vector<double> squares_;  // of what is likely of those
};

}  // namespace redline
