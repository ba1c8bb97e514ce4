// Attention whose keys are split between work-groups, which leave partial results to be merged.
#pragma once

#include "backends/shared/products.h"
#include "plan/backend.h"

#include <algorithm>

namespace redline::gpu {

// Work-groups of `queries` each for the queries of `rows` rows, of which each has `of_row`. Of several
// sequences, a work-group has queries of one row.
inline uint32_t query_groups(uint32_t rows, uint32_t of_row, uint32_t queries, bool several) {
    if (several) return rows * query_groups(1, of_row, queries, false);
    return uint32_t((uint64_t(rows) * of_row + queries - 1) / queries);
}

// Splits by which `groups` work-groups become about `wanted`: as many as are needed for so many at least, or,
// with `at_most`, no more than that; none of fewer than `least` keys, and `most` at most.
inline uint32_t key_splits(uint64_t keys, uint64_t least, uint64_t groups, uint64_t wanted, uint64_t most,
                           bool at_most) {
    const uint64_t fill = at_most ? wanted / groups : (wanted + groups - 1) / groups;
    return uint32_t(std::max<uint64_t>(1, std::min({fill, most, (keys + least - 1) / least})));
}

// Bytes that splits leave: per row and head a sum of whole fours, the largest score and the sum of weights.
inline uint64_t partial_bytes(uint64_t rows, uint32_t heads, uint32_t splits, uint32_t head_dim) {
    const uint64_t whole_fours = (head_dim + 3) / 4 * 4;
    return aligned(rows * heads * splits * (whole_fours + 2) * 4);
}
// The same, where one split leaves nothing.
inline uint64_t split_bytes(uint64_t rows, uint32_t heads, uint32_t splits, uint32_t head_dim) {
    return splits > 1 ? partial_bytes(rows, heads, splits, head_dim) : 0;
}

// The most of bytes(rows) over the steps that a plan has: fewer rows may have more splits.
template <typename Bytes>
uint64_t most_of_steps(const Plan& plan, const Bytes& bytes) {
    uint64_t most = 0;
    for (uint32_t rows = 1;; rows = std::min(rows * 2, plan.max_rows)) {
        most = std::max<uint64_t>(most, bytes(rows));
        if (rows == plan.max_rows) return most;
    }
}
// Likewise of bytes(rows, several): whether of several sequences, where the plan has such steps.
template <typename Bytes>
uint64_t most_of_kinds(const Plan& plan, const Bytes& bytes) {
    return most_of_steps(plan, [&](uint32_t rows) {
        const uint64_t alone = bytes(rows, false);
        return plan.sizing.pages > 0 ? std::max<uint64_t>(alone, bytes(rows, true)) : alone;
    });
}

// The most keys that a row sees in a context.
inline uint64_t most_keys(const Attention& op, const Plan& plan) {
    return op.most_keys(plan, plan.sizing.context);
}

// Matrix units multiply halfs: queries, softmax weights, and what the cache has.
inline Precision attention_of_halfs(CacheTypes cache) {
    const auto cached = [](CacheType type) { return type == CacheType::f16 ? Rounding{} : kToHalf; };
    return {.weights = to_half(0),
            .activations = to_half(4),
            .keys = cached(cache.keys),
            .values = cached(cache.values)};
}

// Powers of two from `most` down to `least`.
inline std::vector<uint32_t> halves_of(uint32_t most, uint32_t least = 1) {
    std::vector<uint32_t> all;
    for (; most >= least; most /= 2) all.push_back(most);
    return all;
}

}  // namespace redline::gpu
