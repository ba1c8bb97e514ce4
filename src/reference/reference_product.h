// The reference of the product of a row of weights and a row of activations, with the bound on its error.
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

// A random number up to `most` in either direction. It draws one random number: a distribution of doubles
// draws two, which took half of the time of tests that round at random.
inline double within(double most, std::minstd_rand& random) {
    constexpr double kMiddle = (double(std::minstd_rand::min()) + double(std::minstd_rand::max())) / 2;
    return most * ((double(random()) - kMiddle) / (double(std::minstd_rand::max()) - kMiddle));
}

// The rounding errors of one operand's elements, queried in order.
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
    // When all elements of a group are near whole multiples of a step of 127 levels, their largest distance
    // from those: any kernel must round to these levels, whatever factor a norm before has applied to all of
    // them.
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

// The parts of a product that depend on the activations alone, computed once for all rows of weights.
class ProductRow {
public:
    // `random`: rounds operands and sums at random, as far as kernels may, and bounds no errors; null: bounds
    // errors.
    ProductRow(const Precision& precision, const Bounded* x, size_t cols, std::minstd_rand* random);
    Bounded dot(const float* w);

private:
    Bounded rounded_dot(const float* w);

    const Precision precision_;
    const Bounded* const x_;
    const size_t cols_;
    std::minstd_rand* const random_;
    std::vector<double> values_, sizes_, magnitudes_;
    std::vector<double> largest_;  // including all errors
    std::vector<double> errors_;   // for each unit of a weight's size, including the operand's rounding
    std::vector<double> squares_;  // of the likely errors
};

}  // namespace redline
