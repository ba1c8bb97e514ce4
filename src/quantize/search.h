// What the encoders share: rounding to levels and the fit of one scale.
#pragma once

#include "base/half.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace redline::quantize {

// The nearest whole number; ties go to even. Exact for |x| < 2^22, and much faster than std::lrint without
// its instruction.
inline int nearest(float x) {
    const uint32_t bits = float_to_bits(x + 12582912.0f);
    return int(bits & 0x007FFFFFu) - 0x00400000;
}

inline int level(float x, int lowest, int highest) {
    return std::clamp(nearest(std::clamp(x, float(lowest) - 1.0f, float(highest) + 1.0f)), lowest, highest);
}

// The value of greatest magnitude, with its sign.
inline float extreme(const float* x, int count) {
    float found = 0.0f;
    for (int i = 0; i < count; ++i)
        if (std::fabs(x[i]) > std::fabs(found)) found = x[i];
    return found;
}

// Squared error of x against scale * q, with the best levels for the scale.
inline float scale_error(const float* x, int count, float scale, int lowest, int highest) {
    const float inverse = scale != 0.0f ? 1.0f / scale : 0.0f;
    float sum = 0.0f;
    for (int i = 0; i < count; ++i) {
        const float difference = scale * float(level(x[i] * inverse, lowest, highest)) - x[i];
        sum += difference * difference;
    }
    return sum;
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
        float xq = 0.0f;
        float qq = 0.0f;
        for (int i = 0; i < count; ++i) {
            const float q = float(level(x[i] * inverse, lowest, highest));
            xq += x[i] * q;
            qq += q * q;
        }
        // With the fitted scale xq / qq the error is |x|^2 - xq^2 / qq.
        if (qq > 0.0f && xq * xq > best_gain * qq) {
            best_gain = xq * xq / qq;
            best = xq / qq;
        }
    }
    return best;
}

}  // namespace redline::quantize
