// What the encoders share: rounding to levels and the fit of one scale.
#pragma once

#include "base/half.h"

#include <algorithm>
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

// In what follows `count` is 16 or 32.

// Squared error of x against scale * q, with the best levels for the scale.
inline float scale_error(const float* x, int count, float scale, int lowest, int highest) {
    const float inverse = scale != 0.0f ? 1.0f / scale : 0.0f;
    return sum_of(count, [&](int i) {
        const float difference = scale * float(level(x[i] * inverse, lowest, highest)) - x[i];
        return difference * difference;
    });
}

// The scale of levels lowest..highest (|lowest| = highest + 1) with the least squared error that a search
// finds: around the one that puts the extreme value on the lowest level, each improved by the exact fit for
// its levels.
inline float fit_scale(const float* x, int count, int lowest, int highest) {
    const float peak = extreme(x, count);
    if (peak == 0.0f) return 0.0f;
    float best = 0.0f;
    float best_gain = 0.0f;
    for (int step = -9; step <= 9; ++step) {
        const float inverse = (float(lowest) + 0.1f * float(step)) / peak;
        float q[32];
        for (int i = 0; i < count; ++i) q[i] = float(level(x[i] * inverse, lowest, highest));
        const float xq = sum_of(count, [&](int i) { return x[i] * q[i]; });
        const float qq = sum_of(count, [&](int i) { return q[i] * q[i]; });
        // With the fitted scale xq / qq the error is |x|^2 - xq^2 / qq.
        if (qq > 0.0f && xq * xq > best_gain * qq) {
            best_gain = xq * xq / qq;
            best = xq / qq;
        }
    }
    return best;
}

}  // namespace redline::quantize
