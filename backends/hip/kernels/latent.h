// Causal attention of all heads on the same rows of latents, and what stores them: a key is a whole row, its
// value the first elements of it. A block reads the cache for all of its queries (row, head), once for scores
// and once for values, while it is at hand; each load serves several products. In f32.
#pragma once

#include "kernels/attention_few.h"
#include "kernels/latent_merge.h"

namespace redline::hip {

constexpr uint32_t kLatentThreads = kTileThreads;
constexpr uint32_t kLatentWaves = kLatentThreads / kWave;
// Scores come in cells of so many keys and queries, whose rows kSlices lanes share.
constexpr uint32_t kCellKeys = 4, kCellQueries = 4, kCellScores = kCellKeys * kCellQueries;
constexpr uint32_t kSlices = less_of(8, kWave);
constexpr uint32_t kScoreCells = 32;  // of a tile

// How a block of kQueries queries shares work; kRank is the most that a latent has. Of the sums a thread has
// units of eight elements of kOwnQueries queries, over every kTurns-th key.
template <uint32_t kQueries, uint32_t kRank>
struct LatentShape {
    static constexpr uint32_t kKeyCells = kScoreCells * kCellQueries / kQueries;
    static constexpr uint32_t kKeys = kKeyCells * kCellKeys;  // of a tile
    static constexpr uint32_t kEights = kRank / 8;
    static constexpr uint32_t kOwnQueries = less_of(kQueries, 8);
    static constexpr uint32_t kUnits = kEights * (kQueries / kOwnQueries);
    static constexpr uint32_t kTurns = more_of(kLatentThreads / kUnits, 1);
    static constexpr uint32_t kOwn = (kUnits + kLatentThreads - 1) / kLatentThreads;
    static constexpr uint32_t kLoads = less_of(4, kKeys / kTurns);  // on their way
    static_assert(kKeys % (kTurns * kLoads) == 0 && kLatentThreads % kTurns == 0);
};

template <uint32_t kQueries, uint32_t kRank>
struct LatentShared {
    alignas(16) float weights[LatentShape<kQueries, kRank>::kKeys * kQueries];  // of a tile: by key
    float tops[kQueries], totals[kQueries], corrections[kQueries];
};

// Rows of any width, element by element. Unlike any_size's, elements beyond a row are no zeros but its last.
template <typename C>
struct any_width {
    using Eight = FloatEight;
    static constexpr bool kWhole = false;
    RL_DEVICE static HeadRows head(const Cache& c, Side side, uint32_t head) {
        return C::head(c, side, head);
    }
    RL_DEVICE static Eight eight(const HeadRows& h, uint32_t key, uint32_t i) {
        Eight out;
        RL_UNROLL
        for (uint32_t e = 0; e < 8; ++e) out.d[e] = C::value(h, key, lesser(i + e, h.dims - 1));
        return out;
    }
};
// Elements d .. d + 7 of a row; beyond its end others of it.
template <typename C>
RL_DEVICE typename C::Eight latent_eight(const HeadRows& latents, uint32_t row, uint32_t d) {
    return C::eight(latents, row, C::kWhole ? lesser(d, latents.dims - 8) : d);
}

// A tile of keys [first, to), and what has to be taken from its tokens to get their rows.
struct LatentTile {
    HeadRows latents;
    uint32_t first, to, before;
    RL_DEVICE uint32_t dims() const { return latents.dims; }
    RL_DEVICE uint32_t row(uint32_t t) const { return lesser(first + t, to - 1) - before; }
    template <typename C>
    RL_DEVICE typename C::Eight eight(uint32_t row, uint32_t d) const {
        return latent_eight<C>(latents, row, d);
    }
};

// Queries lie in shared memory, zeros behind each.
RL_DEVICE uint32_t query_stride(uint32_t width) {
    return (width + args::kLatentStep - 1) / args::kLatentStep * args::kLatentStep;
}

template <uint32_t kQueries>
RL_DEVICE void load_latent_queries(const args::LatentArgs& l, const Queries& which, uint32_t rows,
                                   float* queries) {
    const args::AttentionArgs& a = l.heads;
    const uint32_t width = l.latents.head_dim, stride = query_stride(width);
    for (uint32_t t = thread_index(); t < kQueries * stride; t += kLatentThreads) {
        const uint32_t i = t / stride, d = t % stride, row = which.row(i);
        const bool real = row < rows && d < width;
        queries[t] = real ? a.q[(size_t(row) * a.heads + which.head(i)) * width + d] : 0.0f;
    }
}

// Products of the tile's keys with all queries. Elements beyond a key are some others, times zero.
template <typename C, uint32_t kQueries, uint32_t kRank, typename Tile>
RL_DEVICE void score_tile(const Tile& tile, const float* queries, float scale, float* scores_of_tile) {
    using S = LatentShape<kQueries, kRank>;
    const uint32_t stride = query_stride(tile.dims()), slice = thread_index() % kSlices;
    for (uint32_t cell = thread_index() / kSlices; cell < kScoreCells; cell += kLatentThreads / kSlices) {
        const uint32_t first_key = cell % S::kKeyCells * kCellKeys,
                       first_query = cell / S::kKeyCells * kCellQueries;
        uint32_t rows[kCellKeys];
        RL_UNROLL
        for (uint32_t j = 0; j < kCellKeys; ++j) rows[j] = tile.row(first_key + j);
        float scores[kCellScores] = {};
        RL_UNROLL_BY(1)
        for (uint32_t d = slice * 8; d < stride; d += kSlices * 8) {
            typename C::Eight keys[kCellKeys];
            RL_UNROLL
            for (uint32_t j = 0; j < kCellKeys; ++j) keys[j] = tile.template eight<C>(rows[j], d);
            RL_UNROLL
            for (uint32_t j = 0; j < kCellKeys; ++j) {
                float k[8];
                unpack(keys[j], k);
                RL_UNROLL
                for (uint32_t i = 0; i < kCellQueries; ++i) {
                    const auto* q = reinterpret_cast<const Float4*>(queries + (first_query + i) * stride + d);
                    const Float4 low = q[0], high = q[1];
                    float dot = k[0] * low.d[0];
                    RL_UNROLL
                    for (uint32_t e = 1; e < 8; ++e)
                        dot = fused(k[e], e < 4 ? low.d[e % 4] : high.d[e % 4], dot);
                    scores[j * kCellQueries + i] = fused(dot, factor(keys[j]), scores[j * kCellQueries + i]);
                }
            }
        }
        spread_sums<kCellScores, 1, kSlices>(scores);
        const uint32_t own = first_sum<kCellScores, 1, kSlices>();
        RL_UNROLL
        for (uint32_t n = 0; n < kCellScores / kSlices; ++n) {
            const uint32_t j = (own + n) / kCellQueries, i = (own + n) % kCellQueries;
            scores_of_tile[(first_key + j) * kQueries + first_query + i] = scores[n] * scale;
        }
    }
}

// Turns the tile's scores into weights under the running maximum; end_of(i): where what query i sees ends.
template <uint32_t kQueries, uint32_t kRank, typename Tile, typename End>
RL_DEVICE void weigh_tile(const Tile& tile, End end_of, LatentShared<kQueries, kRank>& shared) {
    constexpr uint32_t kKeys = LatentShape<kQueries, kRank>::kKeys;
    for (uint32_t i = wave_index(); i < kQueries; i += kLatentWaves) {
        const uint32_t end = lesser(tile.to, end_of(i));
        float top = -kInfinity;
        for (uint32_t t = lane_index(); t < kKeys; t += kWave) {
            float& score = shared.weights[t * kQueries + i];
            if (tile.first + t >= end) score = -kInfinity;
            top = larger(score, top);
        }
        const float before = shared.tops[i], now = larger(wave_max(top), before);
        float sum = 0.0f;
        for (uint32_t t = lane_index(); t < kKeys; t += kWave) {
            float& weight = shared.weights[t * kQueries + i];
            weight = exp_below(weight, now);
            sum += weight;
        }
        sum = wave_sum(sum);
        sync_wave();  // all lanes have read the maximum
        if (lane_index() != 0) continue;
        const float correction = exp_below(before, now);
        shared.corrections[i] = correction;
        shared.tops[i] = now;
        shared.totals[i] = fused(shared.totals[i], correction, sum);
    }
}

// Sums of a thread's units, by element, of its queries.
template <uint32_t kQueries, uint32_t kRank>
struct LatentSums {
    using Shape = LatentShape<kQueries, kRank>;
    float d[Shape::kOwn][Shape::kOwnQueries][8];
    RL_DEVICE static uint32_t unit(uint32_t c) { return thread_index() % Shape::kUnits + c * kLatentThreads; }
    RL_DEVICE static uint32_t element(uint32_t c) { return unit(c) % Shape::kEights * 8; }
    RL_DEVICE static uint32_t query(uint32_t c) { return unit(c) / Shape::kEights * Shape::kOwnQueries; }
};

template <typename C, uint32_t kQueries, uint32_t kRank, typename Tile>
RL_DEVICE void add_latents(const Tile& tile, const LatentShared<kQueries, kRank>& shared,
                           LatentSums<kQueries, kRank>& sums) {
    using S = LatentShape<kQueries, kRank>;
    const uint32_t turn = thread_index() / S::kUnits, count = lesser(S::kKeys, tile.to - tile.first);
    RL_UNROLL
    for (uint32_t c = 0; c < S::kOwn; ++c) {
        const uint32_t d = sums.element(c), query = sums.query(c);
        RL_UNROLL
        for (uint32_t i = 0; i < S::kOwnQueries; ++i) RL_UNROLL
        for (uint32_t e = 0; e < 8; ++e) sums.d[c][i][e] *= shared.corrections[query + i];
        RL_UNROLL_BY(1)
        for (uint32_t t = turn; t < count; t += S::kTurns * S::kLoads) {
            typename C::Eight values[S::kLoads];
            RL_UNROLL
            for (uint32_t n = 0; n < S::kLoads; ++n)
                values[n] = tile.template eight<C>(tile.row(t + n * S::kTurns), d);
            RL_UNROLL
            for (uint32_t n = 0; n < S::kLoads; ++n) {
                float v[8];
                unpack(values[n], v);
                const float* weights = shared.weights + (t + n * S::kTurns) * kQueries + query;
                RL_UNROLL
                for (uint32_t i = 0; i < S::kOwnQueries; ++i) {
                    const float weight = weights[i] * factor(values[n]);
                    RL_UNROLL
                    for (uint32_t e = 0; e < 8; ++e) sums.d[c][i][e] = fused(weight, v[e], sums.d[c][i][e]);
                }
            }
        }
    }
}

// The turns' sums come together in `results`, in which a query has kRank elements; with one split they are
// the result, else they go to `partials`.
template <uint32_t kQueries, uint32_t kRank>
RL_DEVICE void leave_latents(const args::AttentionArgs& a, const Queries& which, uint32_t rows, uint32_t used,
                             const LatentShared<kQueries, kRank>& shared,
                             const LatentSums<kQueries, kRank>& sums, float* results) {
    using S = LatentShape<kQueries, kRank>;
    for (uint32_t turn = 0; turn < S::kTurns; ++turn) {
        sync_block();
        if (thread_index() / S::kUnits != turn) continue;
        RL_UNROLL
        for (uint32_t c = 0; c < S::kOwn; ++c) RL_UNROLL
        for (uint32_t i = 0; i < S::kOwnQueries; ++i) {
            float* to = results + (sums.query(c) + i) * kRank + sums.element(c);
            RL_UNROLL
            for (uint32_t e = 0; e < 8; ++e) to[e] = turn == 0 ? sums.d[c][i][e] : to[e] + sums.d[c][i][e];
        }
    }
    sync_block();
    const uint32_t rank = a.cache.head_dim;
    for (uint32_t t = thread_index(); t < kQueries * rank; t += kLatentThreads) {
        const uint32_t i = t / rank, d = t % rank, row = which.row(i), head = which.head(i);
        if (row >= rows) continue;
        const size_t query = size_t(row) * a.heads + head;
        const float sum = results[i * kRank + d], top = shared.tops[i], total = shared.totals[i];
        if (used == 1) {
            a.y[query * rank + d] = sum * result_factor(a, head, top, total);
            continue;
        }
        partial_values(a, query, block_index().x)[d] = sum;
        if (d > 0) continue;
        float* stats = partial_stats(a, query, block_index().x);
        stats[0] = top;
        stats[1] = total;
    }
}

template <typename C, uint32_t kQueries, uint32_t kRank>
RL_DEVICE void latent_attention(const args::LatentArgs& l) {
    using S = LatentShape<kQueries, kRank>;
    RL_SHARED LatentShared<kQueries, kRank> shared;
    RL_SHARED_POOL(pool);  // queries; in the end results
    auto* queries = reinterpret_cast<float*>(pool);
    // Nothing of what only other attention has.
    args::AttentionArgs a = l.heads;
    a.sinks = nullptr;
    a.window = 0;
    const Queries which = block_queries(a, kQueries);
    const auto [rows, position] = block_rows(a, which);
    if (which.row(0) >= rows) return;
    const KeyRange keys = latent_keys(a, which, kQueries, rows, position, S::kKeys);
    if (block_index().x >= keys.used) return;
    load_latent_queries<kQueries>(l, which, rows, queries);
    for (uint32_t i = thread_index(); i < kQueries; i += kLatentThreads) {
        shared.tops[i] = -kInfinity;
        shared.totals[i] = 0.0f;
    }
    LatentSums<kQueries, kRank> sums = {};
    const HeadRows latents = C::head(l.latents, Side::keys, 0);
    const KeyRows in_cache = key_rows(l.latents, which.first_row, keys.from, keys.to);
    for (uint32_t first = keys.from; first < keys.to; first += S::kKeys) {
        const LatentTile tile = {latents, first, keys.to, in_cache.before(first)};
        sync_block();  // queries are there, and the tile before is done
        score_tile<C, kQueries, kRank>(tile, queries, a.scale, shared.weights);
        sync_block();
        weigh_tile(
            tile, [&](uint32_t i) { return keys_seen(a, which.row(i), rows, position).end; }, shared);
        sync_block();
        add_latents<C>(tile, shared, sums);
    }
    leave_latents(a, which, rows, keys.used, shared, sums, queries);
}

// cache[row of the token] = latent, then key; of a block its last token's alone. A block per row.
template <typename C>
RL_DEVICE void latent_store(const args::LatentStoreArgs& a) {
    const Cache& c = a.cache;
    const uint32_t rest = c.head_dim - a.rank, end = a.step->rows;
    for (uint32_t row = block_index().x; row < end; row += grid_blocks()) {
        const float *latent = a.latent + size_t(row) * a.rank, *key = a.key + size_t(row) * rest;
        const uint32_t token = c.places ? c.places[row].position : a.step->position + row;
        if ((token + 1) % a.ratio != 0) continue;
        const size_t at = place_in_cache(c, 0, a.step->position, row) / a.ratio;
        RL_FEW_TURNS
        for (uint32_t i = thread_index() * C::kGroup; i < c.head_dim; i += kThreads * C::kGroup)
            C::store(c, Side::keys, at, i,
                     [&](uint32_t e) { return e < a.rank ? latent[e] : key[e - a.rank]; });
    }
}

}  // namespace redline::hip
