// Shared parts of the encoders: levels, weighted sums, and the fits of one scale, or of a scale and a
// minimum, to a run of values. `w` is the weight of each value's squared error; it may be 0.
#pragma once

#include "base/half.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace redline::quantize {

// The nearest of the whole numbers lowest..highest; ties go to even. The addition leaves the number in the
// low bits: exact for |x| < 2^22, and unlike std::lrint it vectorises. NaN gives `lowest`.
inline int level(float x, int lowest, int highest) {
    const float above = x > float(lowest) ? x : float(lowest);
    const float within = above < float(highest) ? above : float(highest);
    return int(float_to_bits(within + 12582912.0f) & 0x007FFFFFu) - 0x00400000;
}

// The levels of a format with a scale and no minimum. A search puts the value of greatest magnitude near
// `kPeaks`, up to nine times `kStep` to either side.
template <int kLowest, int kHighest>
struct Whole {
    static constexpr std::array<float, 1> kPeaks = {float(kLowest)};
    static constexpr float kStep = 0.1f;
    static float nearest(float x) { return float(level(x, kLowest, kHighest)); }
    static int code(float x) { return level(x, kLowest, kHighest) - kLowest; }
};

// Levels from a table in rising order.
template <const auto& kLevels>
struct Listed {
    static float nearest(float x) {
        float y = kLevels[0];
        for (size_t i = 1; i < kLevels.size(); ++i)
            y = x > 0.5f * (kLevels[i - 1] + kLevels[i]) ? kLevels[i] : y;
        return y;
    }
    // The index of the nearest level in the table.
    static int code(float x) {
        int code = 0;
        for (size_t i = 1; i < kLevels.size(); ++i) code += x > 0.5f * (kLevels[i - 1] + kLevels[i]);
        return code;
    }
};

// The levels of IQ4_NL, which are finer below zero than above: the extreme value may go to either end.
inline constexpr std::array<float, 16> kCurvedLevels = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                        1,    13,   25,  38,  53,  69,  89,  113};
struct Curved : Listed<kCurvedLevels> {
    static constexpr std::array<float, 2> kPeaks = {-127.0f, 113.0f};
    static constexpr float kStep = 1.5f;
};

// Sums in a fixed order that the compiler can vectorise: eight at a time, term(i) for i below `count`, a
// multiple of 8.
template <typename Term>
float sum_of(int count, Term&& term) {
    float lanes[8] = {};
    for (int i = 0; i < count; i += 8)
        for (int lane = 0; lane < 8; ++lane) lanes[lane] += term(i + lane);
    float sum = 0.0f;
    for (const float lane : lanes) sum += lane;
    return sum;
}

// The value of greatest magnitude, with its sign.
inline float extreme(const float* x, int count) {
    float found = 0.0f;
    for (int i = 0; i < count; ++i)
        if (std::fabs(x[i]) > std::fabs(found)) found = x[i];
    return found;
}

inline float inverse_of(float scale) {
    return scale != 0.0f ? 1.0f / scale : 0.0f;
}

// Squared error of x against scale * q, with the best levels for the scale.
template <typename Levels, int kCount>
float scale_error(const float* x, const float* w, float scale) {
    const float inverse = inverse_of(scale);
    return sum_of(kCount, [&](int i) {
        const float difference = scale * Levels::nearest(x[i] * inverse) - x[i];
        return w[i] * difference * difference;
    });
}

// The least-squares scale for the levels that an inverse scale gives, and by how much it reduces the sum of w
// x^2.
struct ScaleFit {
    float scale = 0.0f;
    float gain = 0.0f;
};

template <typename Levels, int kCount>
ScaleFit refit_scale(const float* x, const float* w, float inverse) {
    float q[kCount];
    for (int i = 0; i < kCount; ++i) q[i] = Levels::nearest(x[i] * inverse);
    const float xq = sum_of(kCount, [&](int i) { return w[i] * x[i] * q[i]; });
    const float qq = sum_of(kCount, [&](int i) { return w[i] * q[i] * q[i]; });
    // With the fitted scale xq / qq the error is |x|^2 - xq^2 / qq.
    return qq > 0.0f ? ScaleFit{xq / qq, xq / qq * xq} : ScaleFit{};
}

// Searches for the scale with the least squared error: tries scales around those that put the extreme value
// on an outermost level, and improves each by the exact fit for its levels.
template <typename Levels, int kCount>
float fit_scale(const float* x, const float* w) {
    const float peak = extreme(x, kCount);
    if (peak == 0.0f) return 0.0f;
    ScaleFit best;
    const auto offer = [&](const ScaleFit& fit) {
        const bool better = fit.gain > best.gain;
        if (better) best = fit;
        return better;
    };
    for (const float outermost : Levels::kPeaks)
        for (int step = -9; step <= 9; ++step)
            offer(refit_scale<Levels, kCount>(x, w, (outermost + Levels::kStep * float(step)) / peak));
    if (best.scale == 0.0f) return 0.0f;
    for (int round = 0; round < 4 && offer(refit_scale<Levels, kCount>(x, w, 1.0f / best.scale)); ++round) {
    }
    return best.scale;
}

// x = scale * q - minimum with q in 0..most.
struct Affine {
    float scale = 0.0f;
    float minimum = 0.0f;

    float inverse() const { return inverse_of(scale); }
};

template <int kMost>
int affine_level(const Affine& a, float inverse, float x) {
    return level((x + a.minimum) * inverse, 0, kMost);
}

template <int kMost, int kCount>
float affine_error(const float* x, const float* w, const Affine& a) {
    const float inverse = a.inverse();
    return sum_of(kCount, [&](int i) {
        const float q = float(affine_level<kMost>(a, inverse, x[i]));
        const float difference = a.scale * q - a.minimum - x[i];
        return w[i] * difference * difference;
    });
}

// Some formats' minimum is never below 0, so that values above 0 use levels that begin at 0.
enum class Minimum : uint8_t { any, not_negative };

// The least-squares fit for the levels that `from` gives, within the format's signs.
template <int kMost, int kCount, Minimum kMinimum>
Affine refit_affine(const float* x, const float* w, const Affine& from) {
    const float inverse = from.inverse();
    float q[kCount];
    for (int i = 0; i < kCount; ++i) q[i] = float(affine_level<kMost>(from, inverse, x[i]));
    const float w1 = sum_of(kCount, [&](int i) { return w[i]; });
    const float q1 = sum_of(kCount, [&](int i) { return w[i] * q[i]; });
    const float q2 = sum_of(kCount, [&](int i) { return w[i] * q[i] * q[i]; });
    const float x1 = sum_of(kCount, [&](int i) { return w[i] * x[i]; });
    const float qx = sum_of(kCount, [&](int i) { return w[i] * q[i] * x[i]; });
    const float determinant = w1 * q2 - q1 * q1;
    if (determinant > 0.0f) {
        const Affine fit = {(w1 * qx - x1 * q1) / determinant, (q1 * qx - q2 * x1) / determinant};
        if (kMinimum == Minimum::any || fit.minimum >= 0.0f) return fit.scale > 0.0f ? fit : from;
    }
    return q2 > 0.0f && qx > 0.0f ? Affine{qx / q2, 0.0f} : from;
}

// Tries ranges slightly smaller and larger than that of the values, and improves each by the exact fit.
template <int kMost, int kCount, Minimum kMinimum>
Affine fit_affine(const float* x, const float* w) {
    const auto [low, high] = std::minmax_element(x, x + kCount);
    const float minimum = kMinimum == Minimum::any ? *low : std::min(*low, 0.0f);
    const float range = *high - minimum;
    if (range <= 0.0f) return {0.0f, -minimum};
    Affine best = {range / float(kMost), -minimum};
    float best_error = affine_error<kMost, kCount>(x, w, best);
    const auto offer = [&](const Affine& fit) {
        const float error = affine_error<kMost, kCount>(x, w, fit);
        const bool better = error < best_error;
        if (better) {
            best_error = error;
            best = fit;
        }
        return better;
    };
    const auto refit = [&](const Affine& from) { return refit_affine<kMost, kCount, kMinimum>(x, w, from); };
    for (int step = 0; step <= 20; ++step)
        offer(refit({range / (float(kMost - 1) + 0.1f * float(step)), -minimum}));
    for (int round = 0; round < 4 && offer(refit(best)); ++round) {
    }
    return best;
}

}  // namespace redline::quantize
