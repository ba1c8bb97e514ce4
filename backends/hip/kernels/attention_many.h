// Causal attention of many rows, on matrix units. A block takes kManyQueries queries, whose waves own tiles
// of 16 of them: their scores with a tile of keys, the running maximum, and the sums of weighted values. Keys
// and values become halfs in shared memory; queries too, each times a power of two. Sums are in f32.
#pragma once

#include "kernels/attention_parts.h"
#include "kernels/cache.h"
#include "kernels/matrix.h"

namespace redline::hip {

constexpr uint32_t kManyThreads = kWave == 1 ? 1 : 4 * kWave;
constexpr uint32_t kManyWaves = kManyThreads / kWave;
constexpr uint32_t kManyQueries = 64, kManyKeys = 32;
constexpr uint32_t kManySplits = 16;                                      // at most
constexpr uint32_t kManyLeastKeys = 256;                                  // of a split
constexpr uint32_t kManyTiles = kManyQueries / kMatrixSize / kManyWaves;  // of queries, of a wave
constexpr uint32_t kKeyTiles = kManyKeys / kMatrixSize;

RL_DEVICE Words4 halves(const Words4& from) {
    return from;
}
template <typename Eight>
RL_DEVICE Words4 halves(const Eight& from) {
    float values[8];
    unpack(from, values);
    const float d = factor(from);
    Words4 out;
    RL_UNROLL
    for (uint32_t i = 0; i < 4; ++i) out.d[i] = half_pair(values[i * 2] * d, values[i * 2 + 1] * d);
    return out;
}

// Rows are padded by 16 bytes, so that columns lie in different banks. Values lie as keys do, or turned
// round.
template <uint32_t kDims>
struct ManyShape {
    static constexpr uint32_t kSteps = kDims / kMatrixSize, kEights = kDims / 8;
    static constexpr uint32_t kStride = kDims + 8, kTurnedStride = kManyKeys + 8;
    static constexpr uint32_t kKeyHalfs = kManyKeys * kStride;
    static constexpr uint32_t kValueHalfs = kLoadsAcross ? kKeyHalfs : kDims * kTurnedStride;
    static constexpr uint32_t kQueryHalfs = kManyQueries * kStride;
    static constexpr uint32_t kQueriesAt = kTilesInPlace ? kKeyHalfs + kValueHalfs : 0;
    static constexpr uint32_t kHalfs =
        kTilesInPlace ? kQueriesAt + kQueryHalfs
                      : (kKeyHalfs + kValueHalfs > kQueryHalfs ? kKeyHalfs + kValueHalfs : kQueryHalfs);
    // Eights of a tile that one thread carries: two of neighbouring keys where values are turned round.
    static constexpr uint32_t kEach = (kManyKeys * kEights / 2 + kManyThreads - 1) / kManyThreads * 2;
};

template <uint32_t kDims>
struct ManyShared {
    union {
        alignas(16) uint16_t halfs[ManyShape<kDims>::kHalfs];  // keys, values; at first queries
        SoftmaxParts<kManyQueries, kManySplits> parts;         // at the end
    };
    float scales[kManyQueries];
    uint16_t room[kTilesInPlace ? 256 : 1];
    uint32_t last;
};

// What a lane keeps of a tile of queries: per line, which is a query, the running maximum in powers of two,
// its share of the total, what scores are multiplied with, and the keys that are seen.
template <uint32_t kDims>
struct ManyState {
    MatrixTile queries[ManyShape<kDims>::kSteps];
    MatrixSums sums[ManyShape<kDims>::kSteps];
    float tops[kLines], totals[kLines], scales[kLines];
    Seen seen[kLines];
};

// Of a query, over the keys so far.
struct SoftmaxStats {
    float top, total;
};

constexpr float kLog2OfE = 1.44269504f, kLnOf2 = 0.693147181f;

// Element `n` of what a thread carries of a tile: which key, and which eight dimensions.
struct Carried {
    uint32_t key, eight;
    bool real;
};
template <uint32_t kDims, bool kTurned>
RL_DEVICE Carried carried(uint32_t n) {
    constexpr uint32_t kEights = ManyShape<kDims>::kEights, kPairs = kManyKeys / 2;
    constexpr bool kFull = kManyKeys * kEights == ManyShape<kDims>::kEach * kManyThreads;
    if constexpr (kTurned) {
        const uint32_t i = n / 2 * kManyThreads + thread_index();
        return {i / 2 % kPairs * 2 + n % 2, i % 2 + i / (2 * kPairs) * 2, kFull || i < kPairs * kEights};
    } else {
        const uint32_t i = n * kManyThreads + thread_index();
        return {i / kEights, i % kEights, kFull || i < kManyKeys * kEights};
    }
}

// Loads have no branches, so that they overlap: beyond the range and the head they are of the last key and
// dimensions, whose weights are zero, or whose sums are not used.
template <typename C, uint32_t kDims, bool kTurned, typename Rows>
RL_DEVICE void fetch_tile(const Rows& head, uint32_t base, uint32_t to,
                          typename C::Eight (&ahead)[ManyShape<kDims>::kEach]) {
    if constexpr (kMixed<C>) {
        C::choose(head,
                  [&](auto type) { fetch_tile<decltype(type), kDims, kTurned>(head, base, to, ahead); });
    } else {
        RL_UNROLL
        for (uint32_t n = 0; n < ManyShape<kDims>::kEach; ++n) {
            const Carried c = carried<kDims, kTurned>(n);
            ahead[n] = C::eight(head, lesser(base + c.key, to - 1), lesser(c.eight * 8, head.dims - 8));
        }
    }
}

template <typename C, uint32_t kDims>
RL_DEVICE void store_tile(const typename C::Eight (&ahead)[ManyShape<kDims>::kEach], uint16_t* tile) {
    RL_UNROLL
    for (uint32_t n = 0; n < ManyShape<kDims>::kEach; ++n) {
        const Carried c = carried<kDims, false>(n);
        if (c.real)
            *reinterpret_cast<Words4*>(tile + c.key * ManyShape<kDims>::kStride + c.eight * 8) =
                halves(ahead[n]);
    }
}

// Two keys' values of a dimension are one word.
template <typename C, uint32_t kDims>
RL_DEVICE void store_turned(const typename C::Eight (&ahead)[ManyShape<kDims>::kEach], uint16_t* tile) {
    RL_UNROLL
    for (uint32_t n = 0; n < ManyShape<kDims>::kEach; n += 2) {
        const Carried c = carried<kDims, true>(n);
        if (!c.real) continue;
        const Words4 first = halves(ahead[n]), second = halves(ahead[n + 1]);
        uint16_t* to = tile + c.eight * 8 * ManyShape<kDims>::kTurnedStride + c.key;
        RL_UNROLL
        for (uint32_t e = 0; e < 8; ++e)
            *reinterpret_cast<uint32_t*>(to + e * ManyShape<kDims>::kTurnedStride) =
                pick_bytes(e % 2 == 0 ? 0x05040100u : 0x07060302u, first.d[e / 2], second.d[e / 2]);
    }
}

// Four elements of a query in each part of a wave.
template <uint32_t kDims>
struct QueryPart {
    static constexpr uint32_t kFours = (kDims / 4 + kWave - 1) / kWave;
    Float4 four[kFours];
    RL_DEVICE static uint32_t dimension(uint32_t n) { return (n * kWave + lane_index()) * 4; }
};
template <uint32_t kDims>
RL_DEVICE void load_query(const float* q, uint32_t dims, QueryPart<kDims>& part) {
    RL_UNROLL
    for (uint32_t n = 0; n < part.kFours; ++n) {
        const uint32_t d = part.dimension(n);
        const Float4 four = load<Float4>(q + lesser(d, dims - 4), 0);
        RL_UNROLL
        for (uint32_t e = 0; e < 4; ++e) part.four[n].d[e] = d < dims ? four.d[e] : 0.0f;
    }
}
// Becomes halfs, times a power of two that brings the largest element to about 2^4. Returns what undoes it.
template <uint32_t kDims>
RL_DEVICE float halve_query(const QueryPart<kDims>& part, uint16_t* to) {
    float most = 0.0f;
    RL_UNROLL
    for (uint32_t n = 0; n < part.kFours; ++n) RL_UNROLL
    for (uint32_t e = 0; e < 4; ++e) most = larger(__builtin_fabsf(part.four[n].d[e]), most);
    const uint32_t bits = __builtin_bit_cast(uint32_t, wave_max(most)) >> 23;
    const uint32_t exponent = bits < 40 ? 40 : lesser(bits, 215);
    const float up = bits_float((258 - exponent) << 23);
    RL_UNROLL
    for (uint32_t n = 0; n < part.kFours; ++n) {
        const float* x = part.four[n].d;
        if (part.dimension(n) < kDims)
            *reinterpret_cast<Words2*>(to + part.dimension(n)) = {half_pair(x[0] * up, x[1] * up),
                                                                  half_pair(x[2] * up, x[3] * up)};
    }
    return bits_float((exponent - 4) << 23);
}

// The wave's queries go through shared memory into tiles.
template <uint32_t kDims>
RL_DEVICE void take_queries(const args::AttentionArgs& a, const Queries& which, uint32_t rows,
                            uint32_t position, ManyState<kDims> (&states)[kManyTiles],
                            ManyShared<kDims>& shared) {
    using S = ManyShape<kDims>;
    constexpr uint32_t kAtOnce = 8;  // loads on their way
    const uint32_t dims = a.cache.head_dim, first = wave_index() * kManyTiles * kMatrixSize;
    uint16_t* halfs = shared.halfs + S::kQueriesAt;
    for (uint32_t i = first; i < first + kManyTiles * kMatrixSize; i += kAtOnce) {
        QueryPart<kDims> parts[kAtOnce];
        RL_UNROLL
        for (uint32_t n = 0; n < kAtOnce; ++n) {
            const uint32_t row = lesser(which.row(i + n), rows - 1);
            load_query(a.q + (size_t(row) * a.heads + which.head(i + n)) * dims, dims, parts[n]);
        }
        RL_UNROLL
        for (uint32_t n = 0; n < kAtOnce; ++n) {
            const float down = halve_query(parts[n], halfs + (i + n) * S::kStride);
            shared.scales[i + n] = down * a.scale * (a.softcap > 0.0f ? 1.0f : kLog2OfE);
        }
    }
    sync_wave();
    RL_UNROLL
    for (uint32_t t = 0; t < kManyTiles; ++t) {
        const uint32_t tile = first + t * kMatrixSize;
        RL_UNROLL
        for (uint32_t k = 0; k < S::kSteps; ++k) {
            states[t].queries[k] = load_tile(halfs + tile * S::kStride + k * kMatrixSize, S::kStride);
            states[t].sums[k] = {};
        }
        RL_UNROLL
        for (uint32_t l = 0; l < kLines; ++l) {
            const uint32_t i = tile + line_number(l);
            states[t].seen[l] = keys_seen(a, which.row(i), rows, position);
            states[t].scales[l] = shared.scales[i];
            states[t].tops[l] = -kInfinity;
            states[t].totals[l] = 0.0f;
        }
    }
}

template <uint32_t kDims>
RL_DEVICE void score_keys(const ManyState<kDims>& state, const uint16_t* keys,
                          MatrixSums (&scores)[kKeyTiles]) {
    using S = ManyShape<kDims>;
    RL_UNROLL
    for (uint32_t j = 0; j < kKeyTiles; ++j) scores[j] = {};
    RL_UNROLL
    for (uint32_t k = 0; k < S::kSteps; ++k) RL_UNROLL
    for (uint32_t j = 0; j < kKeyTiles; ++j) {
        const MatrixTile key = load_tile(keys + j * kMatrixSize * S::kStride + k * kMatrixSize, S::kStride);
        if constexpr (kLinesAreRows)
            multiply_add(state.queries[k], key, scores[j]);
        else
            multiply_add(key, state.queries[k], scores[j]);
        settle(scores[j]);
    }
}

// Scores become powers of two, and those of keys that a query does not see minus infinity.
template <uint32_t kDims>
RL_DEVICE void mask_scores(const args::AttentionArgs& a, const ManyState<kDims>& state, uint32_t base,
                           uint32_t to, MatrixSums (&scores)[kKeyTiles]) {
    bool whole = base + kManyKeys <= to;
    RL_UNROLL
    for (uint32_t l = 0; l < kLines; ++l)
        whole = whole && base >= state.seen[l].begin && base + kManyKeys <= state.seen[l].end;
    RL_UNROLL
    for (uint32_t j = 0; j < kKeyTiles; ++j) RL_UNROLL
    for (uint32_t i = 0; i < kSumsPerLane; ++i) scores[j].d[i] = scores[j].d[i] * state.scales[line_of(i)];
    if (a.softcap > 0.0f) {
        RL_UNROLL
        for (uint32_t j = 0; j < kKeyTiles; ++j) RL_UNROLL
        for (uint32_t i = 0; i < kSumsPerLane; ++i) {
            scores[j].d[i] = capped(scores[j].d[i], a.softcap) * kLog2OfE;
            keep_order();
        }
    }
    if (whole) return;
    RL_UNROLL
    for (uint32_t j = 0; j < kKeyTiles; ++j) RL_UNROLL
    for (uint32_t i = 0; i < kSumsPerLane; ++i) {
        const uint32_t key = base + j * kMatrixSize + place_in_line(i);
        const Seen& seen = state.seen[line_of(i)];
        if (key >= to || key < seen.begin || key >= seen.end) scores[j].d[i] = -kInfinity;
    }
}

// Scores become weights under the running maximum, to which the sums so far are brought.
template <uint32_t kDims>
RL_DEVICE void weigh_scores(ManyState<kDims>& state, MatrixSums (&scores)[kKeyTiles]) {
    float most[kLines], corrections[kLines];
    RL_UNROLL
    for (uint32_t l = 0; l < kLines; ++l) most[l] = -kInfinity;
    RL_UNROLL
    for (uint32_t j = 0; j < kKeyTiles; ++j) RL_UNROLL
    for (uint32_t i = 0; i < kSumsPerLane; ++i) most[line_of(i)] = larger(scores[j].d[i], most[line_of(i)]);
    RL_UNROLL
    for (uint32_t l = 0; l < kLines; ++l) {
        const float now =
            larger(fold_line(most[l], [](float x, float y) { return larger(x, y); }), state.tops[l]);
        // Nothing seen yet: infinity minus infinity must not become NaN, a NaN score must stay one.
        most[l] = now == -kInfinity ? 0.0f : now;
        corrections[l] = exp2_of(state.tops[l] - most[l]);
        state.tops[l] = now;
        state.totals[l] *= corrections[l];
    }
    RL_UNROLL
    for (uint32_t j = 0; j < kKeyTiles; ++j) RL_UNROLL
    for (uint32_t i = 0; i < kSumsPerLane; ++i) {
        const float weight = exp2_of(scores[j].d[i] - most[line_of(i)]);
        state.totals[line_of(i)] += weight;
        scores[j].d[i] = weight;
    }
    RL_UNROLL
    for (uint32_t n = 0; n < ManyShape<kDims>::kSteps; ++n) RL_UNROLL
    for (uint32_t i = 0; i < kSumsPerLane; ++i)
        state.sums[n].d[i] = state.sums[n].d[i] * corrections[line_of(i)];
}

template <uint32_t kDims>
RL_DEVICE void add_weighted(const MatrixSums (&weights)[kKeyTiles], const uint16_t* values, uint16_t* room,
                            ManyState<kDims>& state) {
    using S = ManyShape<kDims>;
    RL_UNROLL
    for (uint32_t j = 0; j < kKeyTiles; ++j) {
        const MatrixTile chances = tile_of_sums(weights[j], room);
        RL_UNROLL
        for (uint32_t n = 0; n < S::kSteps; ++n) {
            if constexpr (kLoadsAcross) {
                const MatrixTile value =
                    load_tile_across(values + j * kMatrixSize * S::kStride + n * kMatrixSize, S::kStride);
                multiply_add(chances, value, state.sums[n]);
            } else {
                const MatrixTile value = load_tile(
                    values + n * kMatrixSize * S::kTurnedStride + j * kMatrixSize, S::kTurnedStride);
                multiply_add(value, chances, state.sums[n]);
                if (n % 2 == 1) settle(state.sums[n - 1]), settle(state.sums[n]);
            }
        }
    }
}

// Keys of the next tile are on their way while values of this one are used, and values while scores are made.
template <typename C, uint32_t kDims>
RL_DEVICE void attend_tiles(const args::AttentionArgs& a, const Queries& which, const KeyRange& range,
                            ManyState<kDims> (&states)[kManyTiles], ManyShared<kDims>& shared) {
    const auto all_keys = C::head(a.cache, Side::keys, which.kv_head),
               all_values = C::head(a.cache, Side::values, which.kv_head);
    const KeyRows in_cache = key_rows(a.cache, which.first_row, range.from, range.to);
    uint16_t *keys = shared.halfs, *values = keys + ManyShape<kDims>::kKeyHalfs;
    typename C::Eight ahead[ManyShape<kDims>::kEach];
    MatrixSums scores[kManyTiles][kKeyTiles];
    uint32_t before = in_cache.before(range.from);
    fetch_tile<C, kDims, false>(all_keys, range.from - before, range.to - before, ahead);
    sync_block();  // queries are read
    store_tile<C, kDims>(ahead, keys);
    sync_block();
    for (uint32_t base = range.from; base < range.to; base += kManyKeys) {
        fetch_tile<C, kDims, !kLoadsAcross>(all_values, base - before, range.to - before, ahead);
        RL_UNROLL
        for (uint32_t t = 0; t < kManyTiles; ++t) score_keys<kDims>(states[t], keys, scores[t]);
        if constexpr (kLoadsAcross)
            store_tile<C, kDims>(ahead, values);
        else
            store_turned<C, kDims>(ahead, values);
        sync_block();
        // After the last tile there is none: the ring's next round may not begin before `to`.
        const uint32_t next = base + kManyKeys < range.to ? base + kManyKeys : base;
        before = in_cache.before(next);
        fetch_tile<C, kDims, false>(all_keys, next - before, range.to - before, ahead);
        RL_UNROLL
        for (uint32_t t = 0; t < kManyTiles; ++t) {
            mask_scores<kDims>(a, states[t], base, range.to, scores[t]);
            weigh_scores<kDims>(states[t], scores[t]);
            add_weighted<kDims>(scores[t], values, shared.room, states[t]);
        }
        store_tile<C, kDims>(ahead, keys);
        sync_block();
    }
}

// With one split the sums of a tile of queries are the result; else they go to `partials`. They are of
// dimensions from first_dim on; stats_of(line): the maximum and the total of a line's query. kSinks: heads
// may have sinks.
template <bool kSinks, uint32_t kCount, typename Stats>
RL_DEVICE void leave_sums(const args::AttentionArgs& a, const Queries& which, uint32_t rows, uint32_t used,
                          uint32_t first_query, uint32_t first_dim, const MatrixSums (&sums)[kCount],
                          Stats stats_of) {
    const uint32_t dims = a.cache.head_dim;
    float* to[kLines];
    float factors[kLines];
    RL_UNROLL
    for (uint32_t l = 0; l < kLines; ++l) {
        const uint32_t i = first_query + line_number(l), row = which.row(i), head = which.head(i);
        const size_t query = size_t(row) * a.heads + head;
        const auto [top, total] = stats_of(l);
        to[l] = nullptr;
        const float whole = kSinks ? result_factor(a, head, top, total) : 1.0f / total;
        factors[l] = used == 1 ? whole : 1.0f;
        if (row >= rows) continue;
        to[l] = used == 1 ? a.y + query * dims : partial_values(a, query, block_index().x);
        if (used == 1 || first_dim > 0) continue;
        float* stats = partial_stats(a, query, block_index().x);
        stats[0] = top;
        stats[1] = total;
    }
    RL_UNROLL
    for (uint32_t n = 0; n < kCount; ++n) {
        const uint32_t d = first_dim + n * kMatrixSize;
        if (d >= dims) break;
        RL_UNROLL
        for (uint32_t i = 0; i < kSumsPerLane; ++i)
            if (float* out = to[line_of(i)]) out[d + place_in_line(i)] = sums[n].d[i] * factors[line_of(i)];
    }
}

// What a block works at, and its sequence's rows: all of the step, or a tile.
struct ManyBlock {
    Queries which;
    StepRows step;
};
RL_DEVICE ManyBlock many_block(const args::AttentionArgs& a) {
    // Those with most keys first: the last blocks to start are the shortest.
    const uint32_t group = a.heads / a.cache.kv_heads, y = a.groups - 1 - block_index().y,
                   kv_head = block_index().z;
    if (!a.tiles) return {{group, y * kManyQueries, kv_head, a.first_row}, step_rows(a.step)};
    const uint32_t tile = a.first_row + y / a.row_groups;
    if (tile >= a.step->tile_count) return {{group, 0, kv_head, 0}, {0, 0}};
    const auto [first, end] = a.tiles[tile];
    return {{group, y % a.row_groups * kManyQueries, kv_head, first},
            {end, a.cache.places[first].position - first}};
}

template <typename C, uint32_t kDims>
RL_DEVICE void attention_many(const args::AttentionArgs& a) {
    RL_SHARED ManyShared<kDims> shared;
    const ManyBlock block = many_block(a);
    const Queries& which = block.which;
    const auto [rows, position] = block.step;
    if (which.row(0) >= rows) return;
    const KeyRange range = block_keys(a, which, kManyQueries, rows, position, kManyLeastKeys, kManyKeys);
    if (block_index().x >= range.used) return;
    ManyState<kDims> states[kManyTiles];
    take_queries<kDims>(a, which, rows, position, states, shared);
    attend_tiles<C, kDims>(a, which, range, states, shared);
    RL_UNROLL
    for (uint32_t t = 0; t < kManyTiles; ++t)
        leave_sums<true>(a, which, rows, range.used, (wave_index() * kManyTiles + t) * kMatrixSize, 0,
                         states[t].sums, [&](uint32_t l) {
                             return SoftmaxStats{
                                 states[t].tops[l] * kLnOf2,
                                 fold_line(states[t].totals[l], [](float x, float y) { return x + y; })};
                         });
    if (range.used == 1 || !is_last_split(a, range.used, shared.last)) return;
    merge_splits<kDims, kManyThreads>(a, which, rows, range.used, shared.parts, nullptr, nullptr);
}

}  // namespace redline::hip
