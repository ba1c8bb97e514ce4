// Scores of blocks over the Vec of the including level: a lane is a key, and a vector of keys is read once
// for several heads.
#pragma once

#include "block_keys.h"

namespace redline::cpu {
namespace {

constexpr size_t kKeyVectors = kScoredKeys / size_t(Vec::kLanes);
constexpr size_t kHeadsAtOnce = kKeyVectors >= 4 ? 2 : 8 / kKeyVectors;  // with eight sums

inline void widen_halves(const uint16_t* halves, size_t n, float* to) {
    for (size_t i = 0; i < n; i += size_t(Vec::kLanes)) Vec::load_half(halves + i).store(to + i);
}

template <size_t kHeads>
inline void score_heads(const KeyScores& work, size_t first, Vec (&sums)[kKeyVectors]) {
    Vec products[kHeads][kKeyVectors];
    for (auto& of_head : products)
        for (Vec& product : of_head) product = Vec::set1(0.0f);
    const float* const q = work.q + first * work.dims;
    for (size_t e = 0; e < work.dims; ++e) {
        Vec keys[kKeyVectors];
        for (size_t k = 0; k < kKeyVectors; ++k)
            keys[k] = Vec::load(work.keys + e * kScoredKeys + k * size_t(Vec::kLanes));
        for (size_t h = 0; h < kHeads; ++h) {
            const Vec element = Vec::set1(q[h * work.dims + e]);
            for (size_t k = 0; k < kKeyVectors; ++k)
                products[h][k] = Vec::fma(element, keys[k], products[h][k]);
        }
    }
    const Vec zero = Vec::set1(0.0f);
    for (size_t h = 0; h < kHeads; ++h) {
        const Vec weight = Vec::set1(work.weights ? work.weights[first + h] : 1.0f);
        for (size_t k = 0; k < kKeyVectors; ++k) {
            const Vec product = products[h][k];
            // Lets NaN through.
            sums[k] = Vec::fma(weight, Vec::where_less(product, zero, zero, product), sums[k]);
        }
    }
}

inline void score_keys(const KeyScores& work) {
    Vec sums[kKeyVectors];
    for (Vec& sum : sums) sum = Vec::set1(0.0f);
    size_t head = 0;
    for (; head + kHeadsAtOnce <= work.heads; head += kHeadsAtOnce)
        score_heads<kHeadsAtOnce>(work, head, sums);
    for (; head < work.heads; ++head) score_heads<1>(work, head, sums);
    for (size_t k = 0; k < kKeyVectors; ++k) sums[k].store(work.y + k * size_t(Vec::kLanes));
}

}  // namespace
}  // namespace redline::cpu
