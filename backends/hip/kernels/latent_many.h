// Attention to latents on matrix units: what latent.h does in f32, for caches of halfs or less. A tile of
// keys lies in shared memory for all of a block's queries: along its elements for scores, and then, where
// matrix units want it, turned round in the same place as values. Waves share the scores by tiles of
// keys and parts of the width, whose sums meet in shared memory; of the weighted values each wave has a part
// of the rank. Queries become halfs, each times a power of two. Sums are in f32.
#pragma once

#include "kernels/attention_many.h"
#include "kernels/latent.h"

namespace redline::hip {

constexpr uint32_t kLatentWidth = 576, kLatentRank = 512;  // at most
constexpr uint32_t kLatentKeys = args::kLatentTileKeys;    // of a tile
constexpr uint32_t kLatentKeyTiles = kLatentKeys / kMatrixSize, kLatentParts = 4;

struct LatentTileShape {
    static constexpr uint32_t kEights = kLatentWidth / 8;
    static constexpr uint32_t kStride = kLatentWidth + 8;  // of a key: padded, see ManyShape
    static constexpr uint32_t kTurnedStride = kLatentKeys + 8;
    static constexpr uint32_t kSteps = kLatentWidth / kMatrixSize / kLatentParts;      // of a part
    static constexpr uint32_t kRankTiles = kLatentRank / kMatrixSize / kLatentWaves;   // of a wave
    static constexpr uint32_t kUnits = kLatentKeyTiles * kLatentParts;                 // of scores
    static constexpr uint32_t kPairs = kLatentKeys / 2 * kEights;                      // of eights
    static constexpr uint32_t kEach = (kPairs + kLatentThreads - 1) / kLatentThreads;  // of a thread
    static constexpr uint32_t kHeldParts = kTilesInPlace ? kLatentParts : 1;
    static_assert(kUnits % kLatentWaves == 0 || kLatentWaves == 1);
    static_assert(kLatentWaves % kLatentParts == 0 || kLatentWaves == 1);
    static_assert(args::kLatentTileBytes >= kLatentKeys * kStride * 2 &&
                  args::kLatentTileBytes >= kLatentRank * kTurnedStride * 2);
};

template <uint32_t kQueries>
struct LatentManyShared {
    // Scores of a tile, of each part of the width; rows are padded so that columns lie in different banks.
    static constexpr uint32_t kScoreStride = kLatentKeys + 1, kWeightStride = kLatentKeys + 8;
    float scores[kLatentParts * kQueries * kScoreStride];
    alignas(16) uint16_t weights[kQueries * kWeightStride];
    float tops[kQueries], totals[kQueries], corrections[kQueries], scales[kQueries];
    uint32_t ends[kQueries];  // of the keys that a query sees
    alignas(16) uint16_t queries[kTilesInPlace ? kQueries * LatentTileShape::kStride : 8];
};

// What a wave keeps: its part of the queries, and sums of its part of the rank.
template <uint32_t kQueries>
struct LatentManyState {
    static constexpr uint32_t kTiles = kQueries / kMatrixSize;
    MatrixTile queries[kTiles][LatentTileShape::kHeldParts * LatentTileShape::kSteps];
    MatrixSums sums[kTiles][LatentTileShape::kRankTiles];
};

// Number n of the pairs that a thread carries of a tile, each of two eights: of neighbouring keys where
// values are turned round, else such that neighbouring threads read neighbouring eights.
struct LatentPair {
    uint32_t key, eight;    // of the first
    uint32_t key2, eight2;  // of the second
    bool real;
};
RL_DEVICE LatentPair latent_pair(uint32_t n) {
    using S = LatentTileShape;
    constexpr bool kFull = S::kPairs == S::kEach * kLatentThreads;
    const uint32_t i = n * kLatentThreads + thread_index();
    const bool real = kFull || i < S::kPairs;
    if constexpr (kLoadsAcross) {
        const uint32_t j = lesser(i, S::kPairs - 1), second = j + S::kPairs;
        return {j / S::kEights, j % S::kEights, second / S::kEights, second % S::kEights, real};
    } else {
        constexpr uint32_t kKeyPairs = kLatentKeys / 2;
        const uint32_t key = i / 2 % kKeyPairs * 2,
                       eight = lesser(i % 2 + i / (2 * kKeyPairs) * 2, S::kEights - 1);
        return {key, eight, key + 1, eight, real};
    }
}

template <typename C>
struct LatentAhead {
    typename C::Eight first[LatentTileShape::kEach], second[LatentTileShape::kEach];
};

// Without branches, so that loads overlap: see fetch_tile().
template <typename C>
RL_DEVICE void fetch_latents(const HeadRows& latents, uint32_t base, uint32_t to, LatentAhead<C>& ahead) {
    RL_UNROLL
    for (uint32_t n = 0; n < LatentTileShape::kEach; ++n) {
        const LatentPair p = latent_pair(n);
        ahead.first[n] =
            C::eight(latents, lesser(base + p.key, to - 1), lesser(p.eight * 8, latents.dims - 8));
        ahead.second[n] =
            C::eight(latents, lesser(base + p.key2, to - 1), lesser(p.eight2 * 8, latents.dims - 8));
    }
}

// Elements beyond a key's are zero: those of the queries are, too, but other elements may be infinite.
template <typename C>
RL_DEVICE void store_latents(const LatentAhead<C>& ahead, uint32_t dims, uint16_t* tile) {
    using S = LatentTileShape;
    RL_UNROLL
    for (uint32_t n = 0; n < S::kEach; ++n) {
        const LatentPair p = latent_pair(n);
        if (!p.real) continue;
        *reinterpret_cast<Words4*>(tile + p.key * S::kStride + p.eight * 8) =
            p.eight * 8 < dims ? halves(ahead.first[n]) : Words4{};
        *reinterpret_cast<Words4*>(tile + p.key2 * S::kStride + p.eight2 * 8) =
            p.eight2 * 8 < dims ? halves(ahead.second[n]) : Words4{};
    }
}

// As values: two keys' elements are one word.
template <typename C>
RL_DEVICE void store_turned_latents(const LatentAhead<C>& ahead, uint16_t* tile) {
    using S = LatentTileShape;
    RL_UNROLL
    for (uint32_t n = 0; n < S::kEach; ++n) {
        const LatentPair p = latent_pair(n);
        if (!p.real || p.eight >= kLatentRank / 8) continue;
        const Words4 first = halves(ahead.first[n]), second = halves(ahead.second[n]);
        uint16_t* to = tile + p.eight * 8 * S::kTurnedStride + p.key;
        RL_UNROLL
        for (uint32_t e = 0; e < 8; ++e)
            *reinterpret_cast<uint32_t*>(to + e * S::kTurnedStride) =
                pick_bytes(e % 2 == 0 ? 0x05040100u : 0x07060302u, first.d[e / 2], second.d[e / 2]);
    }
}

// The part of the width that a wave's unit of scores is of.
RL_DEVICE uint32_t latent_part(uint32_t unit) {
    return unit % kLatentParts;
}

// All queries go through shared memory into the waves' tiles.
template <uint32_t kQueries>
RL_DEVICE void take_latent_queries(const args::LatentArgs& l, const Queries& which, uint32_t rows,
                                   uint32_t position, uint16_t* tile, LatentManyShared<kQueries>& shared,
                                   LatentManyState<kQueries>& state) {
    using S = LatentTileShape;
    const args::AttentionArgs& a = l.heads;
    const uint32_t width = l.latents.head_dim;
    uint16_t* halfs = kTilesInPlace ? shared.queries : tile;
    constexpr uint32_t kAtOnce = 2;  // loads on their way
    RL_UNROLL_BY(1)
    for (uint32_t i = wave_index() * kAtOnce; i < kQueries; i += kLatentWaves * kAtOnce) {
        QueryPart<kLatentWidth> parts[kAtOnce];
        RL_UNROLL
        for (uint32_t n = 0; n < kAtOnce; ++n) {
            const uint32_t row = lesser(which.row(i + n), rows - 1);
            load_query(a.q + (size_t(row) * a.heads + which.head(i + n)) * width, width, parts[n]);
        }
        RL_UNROLL
        for (uint32_t n = 0; n < kAtOnce; ++n) {
            const float down = halve_query(parts[n], halfs + (i + n) * S::kStride);
            if (lane_index() != 0) continue;
            shared.scales[i + n] = down * a.scale;
            shared.tops[i + n] = -kInfinity;
            shared.totals[i + n] = 0.0f;
            shared.ends[i + n] = which.row(i + n) < rows ? position + which.row(i + n) + 1 : 0;
        }
    }
    sync_block();
    const uint32_t own = kTilesInPlace ? 0 : latent_part(wave_index()) * S::kSteps;
    RL_UNROLL
    for (uint32_t t = 0; t < state.kTiles; ++t) {
        RL_UNROLL
        for (uint32_t k = 0; k < S::kHeldParts * S::kSteps; ++k)
            state.queries[t][k] =
                load_tile(halfs + t * kMatrixSize * S::kStride + (own + k) * kMatrixSize, S::kStride);
        RL_UNROLL
        for (uint32_t n = 0; n < S::kRankTiles; ++n) state.sums[t][n] = {};
    }
}

template <uint32_t kQueries>
RL_DEVICE void score_latents(const LatentManyState<kQueries>& state, const uint16_t* keys,
                             LatentManyShared<kQueries>& shared) {
    using S = LatentTileShape;
    RL_UNROLL
    for (uint32_t turn = 0; turn < (S::kUnits + kLatentWaves - 1) / kLatentWaves; ++turn) {
        const uint32_t unit = wave_index() + turn * kLatentWaves, part = latent_part(unit),
                       first_key = unit / kLatentParts * kMatrixSize,
                       held = kTilesInPlace ? part * S::kSteps : 0;
        MatrixSums sums[LatentManyState<kQueries>::kTiles];
        RL_UNROLL
        for (uint32_t t = 0; t < state.kTiles; ++t) sums[t] = {};
        RL_UNROLL
        for (uint32_t k = 0; k < S::kSteps; ++k) {
            const MatrixTile key =
                load_tile(keys + first_key * S::kStride + (part * S::kSteps + k) * kMatrixSize, S::kStride);
            RL_UNROLL
            for (uint32_t t = 0; t < state.kTiles; ++t) {
                if constexpr (kLinesAreRows)
                    multiply_add(state.queries[t][held + k], key, sums[t]);
                else
                    multiply_add(key, state.queries[t][held + k], sums[t]);
                settle(sums[t]);
            }
        }
        RL_UNROLL
        for (uint32_t t = 0; t < state.kTiles; ++t) RL_UNROLL
        for (uint32_t i = 0; i < kSumsPerLane; ++i) {
            const uint32_t query = t * kMatrixSize + line_number(line_of(i));
            shared.scores[(part * kQueries + query) * shared.kScoreStride + first_key + place_in_line(i)] =
                sums[t].d[i];
        }
    }
}

// Turns the tile's scores into weights under the running maximum, as halfs.
template <uint32_t kQueries>
RL_DEVICE void weigh_latents(uint32_t base, uint32_t to, LatentManyShared<kQueries>& shared) {
    constexpr uint32_t kOwn = kQueries / kLatentWaves, kPerLane = (kLatentKeys + kWave - 1) / kWave;
    float scores[kOwn][kPerLane], tops[kOwn], before[kOwn], sums[kOwn];
    RL_UNROLL
    for (uint32_t q = 0; q < kOwn; ++q) {
        const uint32_t i = wave_index() + q * kLatentWaves, end = lesser(to, shared.ends[i]);
        const float scale = shared.scales[i];
        before[q] = shared.tops[i];
        tops[q] = -kInfinity;
        RL_UNROLL
        for (uint32_t n = 0; n < kPerLane; ++n) {
            const uint32_t t = lane_index() + n * kWave;
            float score = 0.0f;
            RL_UNROLL
            for (uint32_t p = 0; p < kLatentParts; ++p)
                score += shared.scores[(p * kQueries + i) * shared.kScoreStride + lesser(t, kLatentKeys - 1)];
            scores[q][n] = t < kLatentKeys && base + t < end ? score * scale : -kInfinity;
            tops[q] = larger(scores[q][n], tops[q]);
        }
    }
    RL_UNROLL
    for (uint32_t q = 0; q < kOwn; ++q) {
        const uint32_t i = wave_index() + q * kLatentWaves;
        tops[q] = larger(wave_max(tops[q]), before[q]);
        sums[q] = 0.0f;
        RL_UNROLL
        for (uint32_t n = 0; n < kPerLane; ++n) {
            const uint32_t t = lane_index() + n * kWave;
            const float weight = exp_below(scores[q][n], tops[q]);
            sums[q] += weight;
            if (t < kLatentKeys) shared.weights[i * shared.kWeightStride + t] = half_bits(weight);
        }
        sums[q] = wave_sum(sums[q]);
    }
    sync_wave();  // all lanes have read the maximum
    if (lane_index() != 0) return;
    RL_UNROLL
    for (uint32_t q = 0; q < kOwn; ++q) {
        const uint32_t i = wave_index() + q * kLatentWaves;
        const float correction = exp_below(before[q], tops[q]);
        shared.corrections[i] = correction;
        shared.tops[i] = tops[q];
        shared.totals[i] = fused(shared.totals[i], correction, sums[q]);
    }
}

template <uint32_t kQueries>
RL_DEVICE void add_weighted_latents(const uint16_t* values, const LatentManyShared<kQueries>& shared,
                                    LatentManyState<kQueries>& state) {
    using S = LatentTileShape;
    const uint32_t first = wave_index() * S::kRankTiles;
    MatrixTile weights[LatentManyState<kQueries>::kTiles][kLatentKeyTiles];
    RL_UNROLL
    for (uint32_t t = 0; t < state.kTiles; ++t) {
        RL_UNROLL
        for (uint32_t j = 0; j < kLatentKeyTiles; ++j)
            weights[t][j] =
                load_tile(shared.weights + t * kMatrixSize * shared.kWeightStride + j * kMatrixSize,
                          shared.kWeightStride);
        float corrections[kLines];
        RL_UNROLL
        for (uint32_t l = 0; l < kLines; ++l)
            corrections[l] = shared.corrections[t * kMatrixSize + line_number(l)];
        RL_UNROLL
        for (uint32_t n = 0; n < S::kRankTiles; ++n) RL_UNROLL
        for (uint32_t i = 0; i < kSumsPerLane; ++i)
            state.sums[t][n].d[i] = state.sums[t][n].d[i] * corrections[line_of(i)];
    }
    RL_UNROLL
    for (uint32_t n = 0; n < S::kRankTiles; ++n) RL_UNROLL
    for (uint32_t j = 0; j < kLatentKeyTiles; ++j) {
        if constexpr (kLoadsAcross) {
            const MatrixTile value = load_tile_across(
                values + j * kMatrixSize * S::kStride + (first + n) * kMatrixSize, S::kStride);
            RL_UNROLL
            for (uint32_t t = 0; t < state.kTiles; ++t) multiply_add(weights[t][j], value, state.sums[t][n]);
        } else {
            const MatrixTile value = load_tile(
                values + (first + n) * kMatrixSize * S::kTurnedStride + j * kMatrixSize, S::kTurnedStride);
            RL_UNROLL
            for (uint32_t t = 0; t < state.kTiles; ++t) {
                multiply_add(value, weights[t][j], state.sums[t][n]);
                settle(state.sums[t][n]);
            }
        }
    }
}

template <typename C, uint32_t kQueries>
RL_DEVICE void latent_many(const args::LatentArgs& l) {
    RL_SHARED LatentManyShared<kQueries> shared;
    RL_SHARED_POOL(pool);  // at first queries, then tiles of keys
    auto* tile = reinterpret_cast<uint16_t*>(pool);
    const args::AttentionArgs& a = l.heads;
    const Queries which = block_queries(a, kQueries);
    const auto [rows, position] = block_rows(a, which);
    if (which.row(0) >= rows) return;
    const KeyRange keys = latent_keys(a, which, kQueries, rows, position, kLatentKeys);
    if (block_index().x >= keys.used) return;
    const HeadRows latents = C::head(l.latents, Side::keys, 0);
    const KeyRows in_cache = key_rows(l.latents, which.first_row, keys.from, keys.to);
    LatentAhead<C> ahead;
    const auto fetch = [&](uint32_t base) {
        const uint32_t before = in_cache.before(base);
        fetch_latents<C>(latents, base - before, keys.to - before, ahead);
    };
    fetch(keys.from);
    LatentManyState<kQueries> state;
    take_latent_queries(l, which, rows, position, tile, shared, state);
    for (uint32_t base = keys.from; base < keys.to; base += kLatentKeys) {
        // After the last tile there is none: the ring's next round may not begin before the end.
        const uint32_t next = base + kLatentKeys < keys.to ? base + kLatentKeys : base;
        sync_block();  // queries are read, and the tile before is done
        store_latents<C>(ahead, latents.dims, tile);
        sync_block();
        if constexpr (kLoadsAcross) fetch(next);
        score_latents(state, tile, shared);
        sync_block();
        if constexpr (!kLoadsAcross) {
            store_turned_latents<C>(ahead, tile);
            fetch(next);
        }
        weigh_latents(base, keys.to, shared);
        sync_block();
        add_weighted_latents(tile, shared, state);
    }
    RL_UNROLL
    for (uint32_t t = 0; t < state.kTiles; ++t)
        leave_sums<false>(a, which, rows, keys.used, t * kMatrixSize,
                          wave_index() * LatentTileShape::kRankTiles * kMatrixSize, state.sums[t],
                          [&](uint32_t line) {
                              const uint32_t i = t * kMatrixSize + line_number(line);
                              return SoftmaxStats{shared.tops[i], shared.totals[i]};
                          });
}

}  // namespace redline::hip
