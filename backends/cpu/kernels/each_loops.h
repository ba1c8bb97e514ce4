// The loops of plan/ops/each.def over the Vec of the including level. Exponentials and roots are those of the
// C library, one lane after another; activations and caps are those of vector_loops.h.
#pragma once

#include "vector_loops.h"

#include "each.h"

namespace redline::cpu {
namespace {

// A Vec that a number can stand for, so that the table's statements read as they are.
struct Lanes {
    Vec v;

    Lanes(Vec given) : v(given) {}
    Lanes(float given) : v(Vec::set1(given)) {}
    friend Lanes operator+(Lanes a, Lanes b) { return a.v + b.v; }
    friend Lanes operator-(Lanes a, Lanes b) { return a.v - b.v; }
    friend Lanes operator*(Lanes a, Lanes b) { return a.v * b.v; }
    friend Lanes operator/(Lanes a, Lanes b) { return a.v / b.v; }
    friend Lanes operator-(Lanes a) { return Vec::set1(-0.0f) - a.v; }
};

template <typename F>
inline Lanes by_lane(Lanes a, F f) {
    float lanes[kLanes];
    a.v.store(lanes);
    for (float& lane : lanes) lane = f(lane);
    return Vec::load(lanes);
}
inline Lanes exp_of(Lanes a) {
    return by_lane(a, [](float x) { return __builtin_expf(x); });
}
inline Lanes root_of(Lanes a) {
    return by_lane(a, [](float x) { return __builtin_sqrtf(x); });
}
inline Lanes size_of(Lanes a) {
    return Vec::abs(a.v);
}
inline Lanes fused(Lanes a, Lanes b, Lanes c) {
    return Vec::fma(a.v, b.v, c.v);
}
inline Lanes where_less(Lanes a, Lanes b, Lanes yes, Lanes no) {
    return Vec::where_less(a.v, b.v, yes.v, no.v);
}
inline Lanes capped(Lanes a, Lanes cap) {
    return cap.v * tanh(a.v / cap.v);
}
inline Lanes act_times(int act, Lanes a, Lanes b) {
    if (act == int(Act::silu)) return silu(a.v) * b.v;
    if (act == int(Act::gelu_tanh)) return gelu_tanh(a.v) * b.v;
    return swiglu_clamped(a.v, b.v);
}

// Calls f(load) for the vectors of y and stores what it gives; load(from) are the same elements of another
// array. The last, partial vectors go through copies.
template <typename F>
inline void each_vector(size_t n, float* y, F f) {
    size_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
        f([i](const float* from) { return Lanes(Vec::load(from + i)); }).v.store(y + i);
    if (i == n) return;
    const size_t rest = n - i;
    float last[kLanes];
    f([i, rest](const float* from) {
        float some[kLanes] = {};
        for (size_t j = 0; j < rest; ++j) some[j] = from[i + j];
        return Lanes(Vec::load(some));
    }).v.store(last);
    for (size_t j = 0; j < rest; ++j) y[i + j] = last[j];
}

#define V Lanes
#define EACH_VALUE(i) run.values[i]
#define EACH_Y load(run.y)
#define EACH_X load(run.x)
#define EACH_Z load(run.z)
#define EACH_COLUMN load(run.column)
#define EACH(name, operands, values, holds, statements)                                           \
    inline void each_##name(const EachRun run) {                                                  \
        values each_vector(run.n, run.y, [&](auto load) -> Lanes { READ_##operands statements }); \
    }
#include "plan/ops/each.def"

#define EACH(name, operands, values, holds, statements) each_##name,
constexpr EachLoop kEachLoops[] = {
#include "plan/ops/each.def"
};

}  // namespace
}  // namespace redline::cpu
