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

// What of the tokens before, and of the state before them, each token of a chunk sees: with decays from one
// to the other, products that never grow.
struct DeltaReach {
    float begin[kDeltaChunk];               // of the state
    float keys[kDeltaChunk][kDeltaChunk];   // of an earlier change, by the key
    float reads[kDeltaChunk][kDeltaChunk];  // of a change up to its own, by the query
};

inline float delta_dot(const float* a, const float* b, size_t n) {
    constexpr size_t kStep = size_t(Vec::kLanes);
    Vec sum = Vec::set1(0.0f);
    size_t i = 0;
    for (; i + kStep <= n; i += kStep) sum = Vec::fma(Vec::load(a + i), Vec::load(b + i), sum);
    float all = sum.sum();
    for (; i < n; ++i) all += a[i] * b[i];
    return all;
}

inline DeltaReach delta_reach(const DeltaChunk& c) {
    DeltaReach reach;
    float left[kDeltaChunk], begin = 1.0f;
    for (size_t t = 0; t < kDeltaChunk; ++t) {
        reach.begin[t] = begin *= c.decay[t];
        for (size_t s = 0; s < t; ++s) {
            left[s] *= c.decay[t];
            reach.keys[t][s] = left[s] * delta_dot(c.k + t * c.keys, c.k + s * c.keys, c.keys);
        }
        left[t] = 1.0f;
        for (size_t s = 0; s <= t; ++s)
            reach.reads[t][s] = left[s] * delta_dot(c.q + t * c.keys, c.k + s * c.keys, c.keys);
    }
    for (size_t t = 0; t < kDeltaChunk; ++t)
        for (size_t i = 0; i < c.keys; ++i) c.last_k[t * c.keys + i] = left[t] * c.k[t * c.keys + i];
    return reach;
}

// Products of the state's values from `first` on with keys and queries of some tokens from `from` on.
template <typename Lanes, size_t kColumns, size_t kTokens>
inline void delta_products(const DeltaChunk& c, size_t first, size_t from,
                           Lanes (&seen)[kDeltaChunk][kColumns], Lanes (&read)[kDeltaChunk][kColumns]) {
    Lanes by_k[kTokens][kColumns], by_q[kTokens][kColumns];
    for (size_t t = 0; t < kTokens; ++t)
        for (size_t v = 0; v < kColumns; ++v) by_k[t][v] = by_q[t][v] = Lanes::set1(0.0f);
    for (size_t i = 0; i < c.keys; ++i) {
        Lanes row[kColumns];
        for (size_t v = 0; v < kColumns; ++v)
            row[v] = Lanes::load(c.state + i * c.values + first + v * size_t(Lanes::kLanes));
        for (size_t t = 0; t < kTokens; ++t) {
            const Lanes k = Lanes::set1(c.k[(from + t) * c.keys + i]);
            const Lanes q = Lanes::set1(c.q[(from + t) * c.keys + i]);
            for (size_t v = 0; v < kColumns; ++v) {
                by_k[t][v] = Lanes::fma(k, row[v], by_k[t][v]);
                by_q[t][v] = Lanes::fma(q, row[v], by_q[t][v]);
            }
        }
    }
    for (size_t t = 0; t < kTokens; ++t)
        for (size_t v = 0; v < kColumns; ++v) {
            seen[from + t][v] = by_k[t][v];
            read[from + t][v] = by_q[t][v];
        }
}

template <typename Lanes, size_t kColumns>
inline void delta_chunk_columns(const DeltaChunk& c, const DeltaReach& reach, size_t first) {
    constexpr size_t kStep = size_t(Lanes::kLanes);
    // Tokens whose sums, or changes, fit the registers: 32, or 16 where vectors are shorter.
    constexpr size_t kAtOnce = Vec::kLanes == 16 ? 4 : 2, kHeld = Vec::kLanes == 16 ? kDeltaChunk : 4;
    Lanes seen[kDeltaChunk][kColumns], read[kDeltaChunk][kColumns], change[kDeltaChunk][kColumns];
    for (size_t from = 0; from < kDeltaChunk; from += kAtOnce)
        delta_products<Lanes, kColumns, kAtOnce>(c, first, from, seen, read);
    for (size_t t = 0; t < kDeltaChunk; ++t)
        for (size_t v = 0; v < kColumns; ++v) {
            Lanes sum = seen[t][v] * Lanes::set1(reach.begin[t]);
            for (size_t s = 0; s < t; ++s) sum = Lanes::fma(Lanes::set1(reach.keys[t][s]), change[s][v], sum);
            change[t][v] =
                (Lanes::load(c.v + t * c.v_stride + first + v * kStep) - sum) * Lanes::set1(c.beta[t]);
            Lanes y = read[t][v] * Lanes::set1(reach.begin[t]);
            for (size_t s = 0; s <= t; ++s) y = Lanes::fma(Lanes::set1(reach.reads[t][s]), change[s][v], y);
            y.store(c.y + t * c.y_stride + first + v * kStep);
        }
    Lanes keep = Lanes::set1(reach.begin[kDeltaChunk - 1]);
    for (size_t from = 0; from < kDeltaChunk; from += kHeld, keep = Lanes::set1(1.0f))
        for (size_t i = 0; i < c.keys; ++i) {
            float* row = c.state + i * c.values + first;
            Lanes next[kColumns];
            for (size_t v = 0; v < kColumns; ++v) next[v] = Lanes::load(row + v * kStep) * keep;
            for (size_t t = from; t < from + kHeld; ++t)
                for (size_t v = 0; v < kColumns; ++v)
                    next[v] = Lanes::fma(Lanes::set1(c.last_k[t * c.keys + i]), change[t][v], next[v]);
            for (size_t v = 0; v < kColumns; ++v) next[v].store(row + v * kStep);
        }
}

inline void delta_chunk(const DeltaChunk& c) {
    constexpr size_t kStep = size_t(Vec::kLanes), kColumns = 2;
    const DeltaReach reach = delta_reach(c);
    size_t first = 0;
    for (; first + kColumns * kStep <= c.values; first += kColumns * kStep)
        delta_chunk_columns<Vec, kColumns>(c, reach, first);
    for (; first + kStep <= c.values; first += kStep) delta_chunk_columns<Vec, 1>(c, reach, first);
    for (; first < c.values; ++first) delta_chunk_columns<OneLane, 1>(c, reach, first);
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
