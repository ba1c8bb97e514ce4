// The vector kernels over the Vec of the including level.
#pragma once

#include "vec_math.h"

#include "kernels.h"

namespace redline::cpu {
namespace {

constexpr size_t kLanes = Vec::kLanes;

// Calls f(Vec) for the vectors of x and stores what it gives to y; the last, partial one goes through a copy.
// Up to three inputs of the same length.
template <typename F>
inline void map(const float* a, const float* b, size_t n, float* y, F f) {
    size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) f(Vec::load(a + i), Vec::load(b + i)).store(y + i);
    if (i == n) return;
    float rest_a[kLanes] = {};
    float rest_b[kLanes] = {};
    for (size_t j = 0; i + j < n; ++j) {
        rest_a[j] = a[i + j];
        rest_b[j] = b[i + j];
    }
    f(Vec::load(rest_a), Vec::load(rest_b)).store(rest_a);
    for (size_t j = 0; i + j < n; ++j) y[i + j] = rest_a[j];
}

// Sums of 256 squares are taken in floats, spread over lanes and four chains; those sums are added in
// doubles.
inline double sum_of_squares(const float* x, size_t n) {
    constexpr size_t kRun = 256;
    double total = 0.0;
    size_t i = 0;
    for (; i + kRun <= n; i += kRun) {
        Vec sums[4] = {Vec::set1(0.0f), Vec::set1(0.0f), Vec::set1(0.0f), Vec::set1(0.0f)};
        for (size_t j = 0; j < kRun; j += 4 * kLanes)
#pragma GCC unroll 4
            for (size_t k = 0; k < 4; ++k) {
                const Vec v = Vec::load(x + i + j + k * kLanes);
                sums[k] = Vec::fma(v, v, sums[k]);
            }
        total += static_cast<double>(((sums[0] + sums[1]) + (sums[2] + sums[3])).sum());
    }
    for (; i < n; ++i) total += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    return total;
}

inline void rms_norm(const float* x, const float* gain, float eps, size_t n, float* y) {
    const double mean = sum_of_squares(x, n) / static_cast<double>(n);
    const Vec scale = Vec::set1(static_cast<float>(1.0 / __builtin_sqrt(mean + static_cast<double>(eps))));
    if (gain != nullptr)
        map(x, gain, n, y, [scale](Vec v, Vec g) { return v * scale * g; });
    else
        map(x, x, n, y, [scale](Vec v, Vec) { return v * scale; });
}

inline Vec sigmoid_times(Vec x, Vec argument) {
    const Vec one = Vec::set1(1.0f);
    return x / (one + exp(Vec::set1(0.0f) - argument));
}

inline Vec silu(Vec x) {
    return sigmoid_times(x, x);
}

// x/2 * (1 + tanh(u)) = x / (1 + e^-2u) with u = sqrt(2 / pi) * (x + 0.044715 x^3).
inline Vec gelu_tanh(Vec x) {
    const Vec cubic = Vec::fma(x * x, Vec::set1(0.044715f), Vec::set1(1.0f));
    return sigmoid_times(x, x * cubic * Vec::set1(1.595769122f));
}

// With the limit first NaN passes.
inline Vec swiglu_clamped(Vec g, Vec u) {
    const Vec limit = Vec::set1(7.0f), one = Vec::set1(1.0f);
    const Vec low = Vec::min(limit, g);
    const Vec factor = Vec::max(Vec::set1(-7.0f), Vec::min(limit, u)) + one;
    return sigmoid_times(low, low * Vec::set1(1.702f)) * factor;
}

inline void act_mul(Act act, const float* gate, const float* up, size_t n, float* y) {
    if (act == Act::silu)
        map(gate, up, n, y, [](Vec g, Vec u) { return silu(g) * u; });
    else if (act == Act::gelu_tanh)
        map(gate, up, n, y, [](Vec g, Vec u) { return gelu_tanh(g) * u; });
    else
        map(gate, up, n, y, [](Vec g, Vec u) { return swiglu_clamped(g, u); });
}

inline void add(float* y, const float* x, size_t n) {
    map(y, x, n, y, [](Vec a, Vec b) { return a + b; });
}

inline void add_scaled(float* y, const float* x, float s, size_t n) {
    const Vec factor = Vec::set1(s);
    map(y, x, n, y, [factor](Vec a, Vec b) { return Vec::fma(b, factor, a); });
}

inline void rotate(float& a, float& b, float cosine, float sine) {
    const float x = a;
    a = x * cosine - b * sine;
    b = x * sine + b * cosine;
}

inline void rope(float* head, const float* cosines, const float* sines, size_t pairs, bool half_split) {
    size_t i = 0;
    for (; i + kLanes <= pairs; i += kLanes) {
        const Vec c = Vec::load(cosines + i);
        const Vec s = Vec::load(sines + i);
        Vec a = Vec::set1(0.0f);
        Vec b = a;
        if (half_split) {
            a = Vec::load(head + i);
            b = Vec::load(head + pairs + i);
        } else {
            Vec::load_pairs(head + 2 * i, a, b);
        }
        const Vec x = a * c - b * s;
        const Vec y = a * s + b * c;
        if (half_split) {
            x.store(head + i);
            y.store(head + pairs + i);
        } else {
            Vec::store_pairs(head + 2 * i, x, y);
        }
    }
    for (; i < pairs; ++i) {
        const size_t first = half_split ? i : 2 * i;
        rotate(head[first], head[half_split ? first + pairs : first + 1], cosines[i], sines[i]);
    }
}

}  // namespace
}  // namespace redline::cpu
