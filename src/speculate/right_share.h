// The share of a method's guessed tokens that were right lately.
#pragma once

#include <cmath>
#include <cstdint>

namespace redline {

// A first belief weighs as much as kBelief tokens, so that a few guesses that happen to be wrong
// do not end a method; older guesses fade away over about `window` tokens.
class RightShare {
public:
    static constexpr double kBelief = 5.0;

    explicit RightShare(double window = 24.0) : window_(window) {}
    double value() const { return right_ / tried_; }
    // So many tokens were compared with the text, and so many of them were right.
    void tell(uint64_t right, uint64_t tried) {
        const double keeps = std::pow(1.0 - 1.0 / window_, double(tried));
        right_ = right_ * keeps + double(right);
        tried_ = tried_ * keeps + double(tried);
    }
    void believe(double share) {
        right_ = share * kBelief;
        tried_ = kBelief;
    }

private:
    double window_;
    double right_ = 0.7 * kBelief, tried_ = kBelief;
};

}  // namespace redline
