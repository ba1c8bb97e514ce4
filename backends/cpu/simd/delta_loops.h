// The delta rule and the state space over the Vec of the including level: passes over the state along its
// rows.
#pragma once

#include "recurrent.h"

namespace redline::cpu {
namespace {

// A single value, for those that no vector of the level is left for.
struct OneLane {
    static constexpr size_t kLanes = 1;
    float v;
    static OneLane set1(float x) { return {x}; }
    static OneLane load(const float* p) { return {*p}; }
    void store(float* p) const { *p = v; }
    friend OneLane operator-(OneLane a, OneLane b) { return {a.v - b.v}; }
    friend OneLane operator*(OneLane a, OneLane b) { return {a.v * b.v}; }
    static OneLane fma(OneLane a, OneLane b, OneLane c) { return {a.v * b.v + c.v}; }
};

// kColumns vectors of values from `first` on: what they change by, then the change and what comes of it.
template <typename Lanes, size_t kColumns>
inline void delta_columns(const DeltaToken& t, size_t first) {
    constexpr size_t kStep = size_t(Lanes::kLanes);
    const Lanes decay = Lanes::set1(t.decay);
    Lanes seen[kColumns], y[kColumns], change[kColumns];
    for (size_t c = 0; c < kColumns; ++c) seen[c] = y[c] = Lanes::set1(0.0f);
    for (size_t i = 0; i < t.keys; ++i) {
        const Lanes k = Lanes::set1(t.k[i]);
        const float* row = t.state + i * t.values + first;
        for (size_t c = 0; c < kColumns; ++c)
            seen[c] = Lanes::fma(k, Lanes::load(row + c * kStep) * decay, seen[c]);
    }
    for (size_t c = 0; c < kColumns; ++c)
        change[c] = (Lanes::load(t.v + first + c * kStep) - seen[c]) * Lanes::set1(t.beta);
    for (size_t i = 0; i < t.keys; ++i) {
        const Lanes k = Lanes::set1(t.k[i]), q = Lanes::set1(t.q[i]);
        float* row = t.state + i * t.values + first;
        for (size_t c = 0; c < kColumns; ++c) {
            const Lanes next = Lanes::fma(k, change[c], Lanes::load(row + c * kStep) * decay);
            next.store(row + c * kStep);
            y[c] = Lanes::fma(q, next, y[c]);
        }
    }
    for (size_t c = 0; c < kColumns; ++c) y[c].store(t.y + first + c * kStep);
}

inline void delta(const DeltaToken& t) {
    constexpr size_t kStep = size_t(Vec::kLanes);
    size_t first = 0;
    for (; first + 4 * kStep <= t.values; first += 4 * kStep) delta_columns<Vec, 4>(t, first);
    for (; first + kStep <= t.values; first += kStep) delta_columns<Vec, 1>(t, first);
    for (; first < t.values; ++first) delta_columns<OneLane, 1>(t, first);
}

inline void scan(const ScanToken& t) {
    constexpr size_t kStep = size_t(Vec::kLanes);
    const Vec decay = Vec::set1(t.decay);
    for (size_t p = 0; p < t.inputs; ++p) {
        float* row = t.state + p * t.width;
        const Vec put = Vec::set1(t.step * t.x[p]);
        Vec sum = Vec::set1(0.0f);
        size_t i = 0;
        for (; i + kStep <= t.width; i += kStep) {
            const Vec next = Vec::fma(put, Vec::load(t.in + i), Vec::load(row + i) * decay);
            next.store(row + i);
            sum = Vec::fma(next, Vec::load(t.out + i), sum);
        }
        float y = sum.sum();
        for (; i < t.width; ++i) {
            row[i] = row[i] * t.decay + t.step * t.x[p] * t.in[i];
            y += row[i] * t.out[i];
        }
        t.y[p] = y + t.through * t.x[p];
    }
}

}  // namespace
}  // namespace redline::cpu
