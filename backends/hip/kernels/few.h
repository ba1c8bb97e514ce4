// Products of 2 to 64 tokens with a matrix on matrix units, at the pace at which the weights are read. A
// block has some rows of the matrix, or of both matrices of a gated product, and all tokens; its waves share
// out the rows by 16, and the columns. A lane reads whole units of weights and makes factors of them in
// registers. What comes next is on its way meanwhile: in registers, or where a device copies by itself in
// shared memory, and there it begins to come while the launch before still runs.
//   Order of sums: a wave's columns by matrix units, then the waves in turn. Of up to 16 tokens it depends
//   neither on their number nor on what the others are, so a token's results are the same beside any others.
#pragma once

#include "kernels/few_hand.h"
#include "kernels/tile.h"

#ifdef RL_FACTORS

namespace redline::hip {

// A unit of each of a lane's rows, between being read and being decoded.
template <typename F, bool kFloats = F::kFloats>
struct FewUnits {
    UnitCodes<F> codes[kFactorRows];
    ScalePairs scales[kFactorRows];
    RL_DEVICE void read(uint32_t i, const Matrix& w, size_t unit) {
        codes[i].read(w, unit);
        if constexpr (requires { F::k_header(w, unit); })
            scales[i] = k_scale_pairs(F::k_header(w, unit), uint32_t(unit % 8));
        else
            scales[i] = pairs_of(F::scales(w, unit));
    }
    RL_DEVICE void clear(uint32_t i) { scales[i] = {}; }
    RL_DEVICE Words2 four(uint32_t i, uint32_t k) const { return unit_halfs<F>(codes[i], scales[i], k); }
};
template <typename F>
struct FewUnits<F, true> {
    EightAhead<F> eights[kFactorRows][4];
    RL_DEVICE void read(uint32_t i, const Matrix& w, size_t unit) {
        RL_UNROLL
        for (uint32_t p = 0; p < 4; ++p) eights[i][p].read(w.data, unit * 4 + p);
    }
    RL_DEVICE void clear(uint32_t i) {
        RL_UNROLL
        for (uint32_t p = 0; p < 4; ++p) eights[i][p].clear();
    }
    RL_DEVICE Words2 four(uint32_t i, uint32_t k) const {
        const Words4 eight = eights[i][k / 2].halfs();
        return {{eight.d[k % 2 * 2], eight.d[k % 2 * 2 + 1]}};
    }
};

// Factor f of those that four(i, k) has the fours of.
template <typename Four>
RL_DEVICE MatrixTile few_factor(uint32_t f, uint16_t* room, Four four) {
    Words2 fours[kFactorRows][kFactorFours];
    RL_UNROLL
    for (uint32_t i = 0; i < kFactorRows; ++i) RL_UNROLL
    for (uint32_t k = 0; k < kFactorFours; ++k) fours[i][k] = four(i, f * kFactorFours + k);
    return factor_of(fours, room);
}

// The activations of a lane's tokens, of 16, in its unit of a group.
template <uint32_t kTokens>
struct FewTokens {
    // A lane with two rows has one of eight tokens.
    static constexpr uint32_t kRows = kTokens == 8 && kFactorRows == 2 ? 1 : kFactorRows;
    Words4 eights[kRows][4];
    uint32_t at[kRows];  // where a group has them

    // Past the step's last token it is that one, whose bytes come anyway, where all are in one tile.
    RL_DEVICE void aim(uint32_t last) {
        RL_UNROLL
        for (uint32_t i = 0; i < kRows; ++i)
            at[i] = few_eight(factor_unit(), 0, kTokens <= 16 ? lesser(factor_row(i), last) : factor_row(i),
                              kTokens);
    }
    // Groups, and the eights of one, lie at fixed distances: see few_eight().
    RL_DEVICE void read(const void* halves, uint32_t group, uint32_t first) {
        constexpr uint32_t kEight = kTokens * kFactorUnits;
        const Words4* all = static_cast<const Words4*>(halves) + group * 4 * kEight;
        RL_UNROLL
        for (uint32_t i = 0; i < kRows; ++i) {
            const Words4* from = all + at[i];
            RL_UNROLL
            for (uint32_t p = 0; p < 4; ++p) eights[i][p] = from[p * kEight + first * kFactorUnits];
        }
    }
    RL_DEVICE Words2 four(uint32_t i, uint32_t k) const {
        if (i >= kRows) return {};
        const Words4& eight = eights[i][k / 2];
        return {{eight.d[k % 2 * 2], eight.d[k % 2 * 2 + 1]}};
    }
};

// Threads of a block, as args::few_threads() has it.
template <uint32_t kTokens>
constexpr uint32_t kFewThreads = kDotThreads == 512 ? args::few_threads(kTokens, 512) : kDotThreads;
template <uint32_t kTokens>
constexpr uint32_t kFewDense = kDotThreads == 512 ? args::few_dense(kTokens, 512) : 1;

// The shape of a block's work: tiles of 16 rows, of a gated product those of the two matrices in turn. Waves
// with different tiles read the same activations.
// A wave has several tiles where all of a multiprocessor's registers are for few waves.
template <uint32_t kTokens, bool kGated>
struct FewTile {
    static constexpr uint32_t kThreads = kFewThreads<kTokens>, kWaves = kThreads / kWave,
                              kRowTiles = args::few_row_tiles(kTokens, kGated);
    static constexpr uint32_t kOwn = args::few_own(kTokens, kGated, kWaves, kDotThreads / kWave),
                              kRowWaves = kRowTiles / kOwn, kColumnWaves = kWaves / kRowWaves;
    // Rows of a matrix that a block has, by 16.
    static constexpr uint32_t kAcross = kGated ? kRowTiles / 2 : kRowTiles;
    static constexpr uint32_t kTiles = kTokens < 16 ? 1 : kTokens / 16;
    static constexpr uint32_t kPerLane = kTokens == 8 ? kEightSums : kSumsPerLane;
    static constexpr uint32_t kSums = kTiles * kPerLane * kWave;  // of a tile of rows

    RL_DEVICE static uint32_t column_wave() { return wave_index() / kRowWaves; }
    // One of this wave's tiles of rows.
    RL_DEVICE static uint32_t row_tile(uint32_t n) { return wave_index() % kRowWaves * kOwn + n; }
};

// The 16 rows of a matrix that a wave multiplies.
struct FewPlace {
    Matrix w;
    uint32_t rows;
    uint32_t first_row;
    RL_DEVICE uint32_t row(uint32_t i) const { return lesser(first_row + i, rows - 1); }
};
template <uint32_t kTokens, bool kGated>
RL_DEVICE FewPlace few_place(const args::FewArgs& a, uint32_t tile, uint32_t n) {
    using T = FewTile<kTokens, kGated>;
    const uint32_t part = kGated ? 0 : part_of(a, tile), within = T::row_tile(n);
    const args::DotPart& of = part_at(a, kGated && within % 2 == 1 ? 1 : part);
    return {of.w, of.rows, ((tile - begin_of(a, part)) * T::kAcross + (kGated ? within / 2 : within)) * 16};
}

template <uint32_t kTokens, bool kGated, bool kFloats>
struct FewSums {
    using T = FewTile<kTokens, kGated>;
    // Activations are read ahead where registers are left: two rows of floats a lane take twice as many.
    static constexpr bool kCrowded = kFloats && kFactorRows == 2 && kTokens == 16;
    static constexpr bool kAhead = !kCrowded && (kTokens <= 16 || T::kOwn > 1);
    MatrixSums sums[T::kOwn][T::kTiles];
    FewTokens<kTokens> x;

    // The host wrote the step before the launch before began.
    RL_DEVICE explicit FewSums(const args::FewArgs& a) {
        x.aim(kTokens > 16 ? 0
                           : float_bits(load_early(reinterpret_cast<const float*>(
                                 a.of_outputs ? &a.step->outputs : &a.step->rows))) -
                                 1);
    }

    RL_DEVICE void clear() {
        RL_UNROLL
        for (uint32_t n = 0; n < T::kOwn; ++n) RL_UNROLL
        for (uint32_t j = 0; j < T::kTiles; ++j) sums[n][j] = {};
    }
    RL_DEVICE void begin(const void* halves, uint32_t group) {
        if (kAhead) x.read(halves, group, 0);
    }

    // Adds the products of a group of units, whose weights `read` has, with all tokens; `next` is multiplied
    // next.
    template <typename Units>
    RL_DEVICE void add(const void* halves, uint32_t group, uint32_t next, const Units (&read)[T::kOwn]) {
        [[maybe_unused]] uint16_t w_room[T::kOwn][kUnitFactors][kFactorRoom], x_room[kFactorRoom];
        MatrixTile w[T::kOwn][kUnitFactors];
        RL_UNROLL
        for (uint32_t n = 0; n < T::kOwn; ++n) RL_UNROLL
        for (uint32_t f = 0; f < kUnitFactors; ++f)
            w[n][f] = few_factor(f, w_room[n][f], [&](uint32_t i, uint32_t k) { return read[n].four(i, k); });
        RL_UNROLL
        for (uint32_t j = 0; j < T::kTiles; ++j) {
            if (!kAhead) x.read(halves, group, j * 16);
            const FewTokens<kTokens> now = x;
            if (kAhead) x.read(halves, j + 1 < T::kTiles ? group : next, (j + 1) % T::kTiles * 16);
            RL_UNROLL
            for (uint32_t f = 0; f < kUnitFactors; ++f) {
                const MatrixTile tokens =
                    few_factor(f, x_room, [&](uint32_t i, uint32_t k) { return now.four(i, k); });
                RL_UNROLL
                for (uint32_t n = 0; n < T::kOwn; ++n) {
                    if constexpr (kTokens == 8)
                        multiply_add_eight(w[n][f], tokens, sums[n][j]);
                    else
                        multiply_add(w[n][f], tokens, sums[n][j]);
                }
            }
        }
    }

    // Leaves the wave's sums to the block.
    RL_DEVICE void leave(float* parts) const {
        float* mine = parts + (T::column_wave() * T::kRowTiles + T::row_tile(0)) * T::kSums + lane_index();
        RL_UNROLL
        for (uint32_t n = 0; n < T::kOwn; ++n) RL_UNROLL
        for (uint32_t j = 0; j < T::kTiles; ++j) RL_UNROLL
        for (uint32_t i = 0; i < T::kPerLane; ++i)
            mine[n * T::kSums + (j * T::kPerLane + i) * kWave] = sums[n][j].d[i];
    }
};

// Where launches overlap, those that prepare activations cost little, and code that hands rows on beside the
// products costs them registers: on an H200 16 rows take 3.24 ms with it and 2.98 without.
#ifdef RL_COPIES_AHEAD
constexpr uint32_t kMostTokensHanded = 0;
#else
constexpr uint32_t kMostTokensHanded = args::kMostHanded;
#endif

// A block's results go through this: the scales of rows that it takes, and the rows that it leaves.
template <uint32_t kTokens, uint32_t kBlockThreads, bool kHands = (kTokens <= kMostTokensHanded)>
struct FewResults {
    RL_DEVICE explicit FewResults(const args::FewArgs&) {}
    RL_DEVICE bool take(const args::FewArgs&) { return false; }
    RL_DEVICE float scale(const args::FewArgs& a, uint32_t token) const { return a.row_scales[token]; }
    RL_DEVICE void put(const args::FewArgs&, uint32_t, uint32_t, float) {}
    RL_DEVICE void end_tile(const args::FewArgs&, uint32_t) {}
};
template <uint32_t kTokens, uint32_t kBlockThreads>
struct FewResults<kTokens, kBlockThreads, true> {
    FewHands<kTokens, kBlockThreads>& shared;

    RL_DEVICE explicit FewResults(const args::FewArgs& a) : shared(room()) {
        if (!a.taken.reaches) return;
        if (thread_index() == 0) shared.unfit = 0;
        sync_block();
    }
    RL_DEVICE static FewHands<kTokens, kBlockThreads>& room() {
        RL_SHARED FewHands<kTokens, kBlockThreads> hands;
        return hands;
    }
    // True when rows were prepared again, so that what was read of them is of no use.
    RL_DEVICE bool take(const args::FewArgs& a) {
        if (!a.taken.reaches) return false;
        take_scales(a, shared);
        sync_block();
        if (shared.unfit == 0) return false;
        prepare_again(a, shared);
        return true;
    }
    RL_DEVICE float scale(const args::FewArgs& a, uint32_t token) const {
        return a.row_scales ? a.row_scales[token] : shared.scales[token];
    }
    RL_DEVICE void put(const args::FewArgs& a, uint32_t column, uint32_t token, float value) {
        if (a.left.halfs) leave_result<kTokens>(a, column, token, value, shared.reaches);
    }
    RL_DEVICE void end_tile(const args::FewArgs& a, uint32_t tile) {
        if (!a.left.halfs) return;
        sync_block();
        leave_reaches<kBlockThreads>(a, tile, shared.reaches);
    }
};

// The block's results from what its waves left: threads take them in turn, each of a lane with the thread's
// number in its wave.
template <uint32_t kTokens, bool kGated, typename Results>
RL_DEVICE void put_few(const args::FewArgs& a, uint32_t tile, const float* parts, Results& results) {
    using T = FewTile<kTokens, kGated>;
    const uint32_t part = kGated ? 0 : part_of(a, tile);
    const args::DotPart& of = part_at(a, part);
    const uint32_t first_row = (tile - begin_of(a, part)) * T::kAcross * 16,
                   tokens = rows_in_step(a.step, a.of_outputs);
    const auto sum_of = [&](uint32_t within) {
        float sum = 0.0f;
        RL_UNROLL
        for (uint32_t wave = 0; wave < T::kColumnWaves; ++wave)
            sum += parts[wave * T::kRowTiles * T::kSums + within];
        return sum;
    };
    constexpr uint32_t kAll = T::kAcross * T::kSums, kRounds = (kAll + T::kThreads - 1) / T::kThreads;
    RL_UNROLL_BY(1)
    for (uint32_t round = 0; round < kRounds; ++round) {
        const uint32_t number = thread_index() + round * T::kThreads;
        if (kAll % T::kThreads != 0 && number >= kAll) break;
        const uint32_t across = number / T::kSums, within = number % T::kSums,
                       i = within % (T::kPerLane * kWave) / kWave;
        const uint32_t token = within / (T::kPerLane * kWave) * 16 + sum_column(i),
                       row = first_row + across * 16 + sum_row(i);
        if (token >= tokens || row >= of.rows) continue;
        const float scale = results.scale(a, token);
        float& y = of.y[size_t(token) * of.rows + row];
        if constexpr (kGated) {
            y = act_times(a.act, sum_of(across * 2 * T::kSums + within) * scale,
                          sum_of((across * 2 + 1) * T::kSums + within) * scale);
        } else {
            float sum = sum_of(number) * scale;
            if (of.bias) sum += of.bias[row];
            y = a.accumulate ? y + sum : sum;
        }
        results.put(a, row, token, y);
    }
    results.end_tile(a, tile);
}

// y[t][r] (+)= w[r] . x[t] + bias[r] for up to four matrices, or act(w[r] . x[t]) * (up[r] . x[t]).
template <typename F, uint32_t kTokens, bool kGated>
RL_DEVICE void linear_few(const args::FewArgs& a) {
    using T = FewTile<kTokens, kGated>;
    RL_SHARED_POOL(pool);
    auto* parts = reinterpret_cast<float*>(pool);
    const uint32_t units = a.cols / 32, groups = (units + kFactorUnits - 1) / kFactorUnits;
    FewUnits<F> ahead[T::kOwn];
    FewPlace at[T::kOwn];
    // Past the last unit it is that one, as zeros.
    const auto read = [&](uint32_t group) {
        const uint32_t unit = group * kFactorUnits + factor_unit();
        RL_UNROLL
        for (uint32_t n = 0; n < T::kOwn; ++n) RL_UNROLL
        for (uint32_t i = 0; i < kFactorRows; ++i) {
            ahead[n].read(i, at[n].w, at[n].row(factor_row(i)) * size_t(units) + lesser(unit, units - 1));
            if (unit >= units) ahead[n].clear(i);
        }
    };
    const auto begin = [&](uint32_t tile) {
        RL_UNROLL
        for (uint32_t n = 0; n < T::kOwn; ++n)
            at[n] = few_place<kTokens, kGated>(a, lesser(tile, a.tiles - 1), n);
        read(T::column_wave());
    };
    FewResults<kTokens, T::kThreads> results(a);
    let_next_start();
    begin(block_index().x);
    FewSums<kTokens, kGated, F::kFloats> sums(a);
    wait_for_inputs();
    sums.begin(a.halves, lesser(T::column_wave(), groups - 1));
    if (results.take(a)) sums.begin(a.halves, lesser(T::column_wave(), groups - 1));
    for (uint32_t tile = block_index().x; tile < a.tiles; tile += grid_blocks()) {
        sums.clear();
        for (uint32_t group = T::column_wave(); group < groups; group += T::kColumnWaves) {
            FewUnits<F> now[T::kOwn];
            RL_UNROLL
            for (uint32_t n = 0; n < T::kOwn; ++n) now[n] = ahead[n];
            const uint32_t next = group + T::kColumnWaves;
            if (next < groups) read(next);
            sums.add(a.halves, group, next < groups ? next : T::column_wave(), now);
        }
        begin(tile + grid_blocks());
        sync_block();  // the results before are put
        sums.leave(parts);
        sync_block();
        put_few<kTokens, kGated>(a, tile, parts, results);
    }
}

#ifdef RL_COPIES_AHEAD

// How the lanes of a wave copy 16 rows of a plane: pieces of the rows in turn.
template <typename F, uint32_t kPlane>
struct FewCopies {
    static constexpr uint32_t kRow = F::kPlanes.bytes[kPlane], kBefore = F::kPlanes.before(kPlane);
    static constexpr uint32_t kPiece = kRow % 16 == 0 ? 16 : kRow % 8 == 0 ? 8 : kRow % 4 == 0 ? 4 : 2;
    static constexpr uint32_t kPieces = kRow / kPiece, kAll = 16 * kPieces;
    static constexpr uint32_t kRounds = (kAll + kWave - 1) / kWave;
    static constexpr uint32_t kFirst = [] {  // round of all planes
        if constexpr (kPlane == 0)
            return 0u;
        else
            return FewCopies<F, kPlane - 1>::kFirst + FewCopies<F, kPlane - 1>::kRounds;
    }();
    static_assert(kRow == 0 || kRow % kPiece == 0);
};

// The tiles of a wave, stage after stage. A stage holds, for each of the wave's tiles, the planes of its 16
// rows one behind the other, so that it is a matrix by itself.
template <typename F, uint32_t kTokens, bool kGated>
struct FewRing {
    using T = FewTile<kTokens, kGated>;
    static constexpr args::FewShape kShape = args::few_shape(F::kPlanes, T::kOwn, kTokens);
    static constexpr uint32_t kTileBytes = kShape.stage_bytes / T::kOwn;
    static constexpr uint32_t kRounds = FewCopies<F, 3>::kFirst + FewCopies<F, 3>::kRounds;
    const args::FewArgs& a;
    uint8_t* stages;
    uint32_t eights;  // of a row
    uint32_t tile;    // is copied next
    uint32_t eight;   // of its rows
    uint32_t slot;    // is copied to next
    FewPlace at[T::kOwn];
    // Where registers are left for it, where a lane's pieces of the eight before that one are, which is kStep
    // behind it: to find them anew costs a fifth of the loop's instructions.
    static constexpr bool kKeeps = kTokens <= 16;
    static constexpr size_t kStep = T::kColumnWaves;
    const uint8_t* kept[T::kOwn][kRounds];
    // Two bytes of a row are too few to be copied: they come by a register, and go where the copies before
    // the last go.
    uint16_t late[T::kOwn][4];
    uint8_t* late_to;

    RL_DEVICE FewRing(const args::FewArgs& args, uint8_t* room)
        : a(args),
          stages(room),
          eights(args.cols / 256),
          tile(block_index().x),
          eight(T::column_wave()),
          slot(0),
          late{},
          late_to(nullptr) {
        aim();
        RL_UNROLL
        for (uint32_t i = 0; i + 1 < kShape.stages; ++i) {
            copy();
            store_late();
        }
    }

    // A lane's piece of a round, of the eight that is copied next.
    template <uint32_t kPlane>
    RL_DEVICE const uint8_t* piece_at(const FewPlace& at, uint32_t round) const {
        using C = FewCopies<F, kPlane>;
        const uint32_t piece = lesser(round * kWave + lane_index(), C::kAll - 1);
        return at.w.data + at.w.units / 8 * C::kBefore +
               (size_t(at.row(piece / C::kPieces)) * eights + eight) * C::kRow +
               piece % C::kPieces * C::kPiece;
    }
    template <uint32_t kPlane>
    RL_DEVICE void keep_plane(uint32_t n) {
        using C = FewCopies<F, kPlane>;
        if constexpr (C::kRounds > 0) RL_UNROLL
        for (uint32_t round = 0; round < C::kRounds; ++round) {
            kept[n][C::kFirst + round] = piece_at<kPlane>(at[n], round) - kStep * C::kRow;
            keep_in_register(kept[n][C::kFirst + round]);
        }
    }
    RL_DEVICE void aim() {
        RL_UNROLL
        for (uint32_t n = 0; n < T::kOwn; ++n) {
            at[n] = few_place<kTokens, kGated>(a, tile, n);
            if (!kKeeps) continue;
            keep_plane<0>(n);
            keep_plane<1>(n);
            keep_plane<2>(n);
            keep_plane<3>(n);
        }
    }
    template <uint32_t kPlane>
    RL_DEVICE void copy_plane(uint32_t n, uint8_t* to) {
        using C = FewCopies<F, kPlane>;
        if constexpr (C::kRounds > 0) RL_UNROLL
        for (uint32_t round = 0; round < C::kRounds; ++round) {
            const uint32_t number = round * kWave + lane_index();
            const uint8_t* from =
                kKeeps ? kept[n][C::kFirst + round] += kStep * C::kRow : piece_at<kPlane>(at[n], round);
            if constexpr (C::kRow == 2)
                late[n][kPlane] = load<uint16_t>(from, 0);
            else if (C::kAll % kWave == 0 || number < C::kAll)
                copy_ahead<C::kPiece>(to + 16 * C::kBefore + number * C::kPiece, from);
        }
    }
    template <uint32_t kPlane>
    RL_DEVICE void store_plane() {
        if constexpr (F::kPlanes.bytes[kPlane] == 2) RL_UNROLL
        for (uint32_t n = 0; n < T::kOwn; ++n) {
            auto* to = late_to + n * kTileBytes + 16 * F::kPlanes.before(kPlane);
            if (lane_index() < 16) reinterpret_cast<uint16_t*>(to)[lane_index()] = late[n][kPlane];
        }
    }
    RL_DEVICE void store_late() {
        if (!late_to) return;
        store_plane<0>();
        store_plane<1>();
        store_plane<2>();
        store_plane<3>();
    }
    RL_DEVICE void copy() {
        late_to = nullptr;
        if (tile < a.tiles && eight < eights) {
            uint8_t* to = late_to = stages + slot * kShape.stage_bytes;
            RL_UNROLL
            for (uint32_t n = 0; n < T::kOwn; ++n) {
                copy_plane<0>(n, to + n * kTileBytes);
                copy_plane<1>(n, to + n * kTileBytes);
                copy_plane<2>(n, to + n * kTileBytes);
                copy_plane<3>(n, to + n * kTileBytes);
            }
            eight += T::kColumnWaves;
            if (eight >= eights) {
                eight = T::column_wave();
                tile += grid_blocks();
                if (tile < a.tiles) aim();
            }
        }
        end_copies();
        slot = slot + 1 == kShape.stages ? 0 : slot + 1;
    }
    // The stage that was copied first is there, and all lanes are done with the one that is copied to next.
    RL_DEVICE void wait() {
        store_late();
        wait_for_copies<kShape.stages - 2>();
        sync_wave();
    }
};

// A format with a code book has it in shared memory where kShared.
template <typename F, bool kShared>
struct FewForm {
    using Type = F;
};
template <typename F>
struct FewForm<F, true> {
    using Type = own_form<F>;
};

template <typename F, uint32_t kTokens, bool kGated>
RL_DEVICE void multiply_few_copied(const args::FewArgs& a) {
    using T = FewTile<kTokens, kGated>;
    using Ring = FewRing<F, kTokens, kGated>;
    constexpr bool kShared = kTokens < 64;  // with 64 it was not measured
    constexpr uint32_t kStages = Ring::kShape.stages, kStageBytes = Ring::kShape.stage_bytes,
                       kGroups = 8 / kFactorUnits;
    RL_SHARED_POOL(pool);
    auto* parts = reinterpret_cast<float*>(pool);
    auto* rings = reinterpret_cast<uint8_t*>(pool) +
                  args::few_sum_bytes(kTokens, kGated, T::kWaves, kDotThreads / kWave);
    FewResults<kTokens, T::kThreads> results(a);
    let_next_start();
    if constexpr (kShared && requires { typename F::Own; }) {
        share_book_of<F, T::kThreads>();
        sync_block();
    }
    Ring ring(a, rings + wave_index() * kStages * kStageBytes);
    FewSums<kTokens, kGated, F::kFloats> sums(a);
    wait_for_inputs();
    const uint32_t first = T::column_wave();
    sums.begin(a.halves, lesser(first, ring.eights - 1) * kGroups);
    if (results.take(a)) sums.begin(a.halves, lesser(first, ring.eights - 1) * kGroups);
    uint32_t slot = 0;
    for (uint32_t tile = block_index().x; tile < a.tiles; tile += grid_blocks()) {
        sums.clear();
        for (uint32_t eight = first; eight < ring.eights; eight += T::kColumnWaves) {
            ring.wait();
            ring.copy();
            const uint8_t* stage = ring.stages + slot * kStageBytes;
            const uint32_t next = eight + T::kColumnWaves < ring.eights ? eight + T::kColumnWaves : first;
            RL_UNROLL
            for (uint32_t g = 0; g < kGroups; ++g) {
                FewUnits<typename FewForm<F, kShared>::Type> now[T::kOwn];
                RL_UNROLL
                for (uint32_t n = 0; n < T::kOwn; ++n) RL_UNROLL
                for (uint32_t i = 0; i < kFactorRows; ++i)
                    now[n].read(i, {stage + n * Ring::kTileBytes, 16 * 8},
                                factor_row(i) * 8 + g * kFactorUnits + factor_unit());
                sums.add(a.halves, eight * kGroups + g,
                         g + 1 < kGroups ? eight * kGroups + g + 1 : next * kGroups, now);
            }
            slot = slot + 1 == kStages ? 0 : slot + 1;
        }
        sync_block();  // the results before are put
        sums.leave(parts);
        sync_block();
        put_few<kTokens, kGated>(a, tile, parts, results);
    }
}

// The same as linear_few(), of matrices whose rows are whole stages, and whose planes can be copied.
template <typename F, uint32_t kTokens, bool kGated>
RL_DEVICE void linear_few_copied([[maybe_unused]] const args::FewArgs& a) {
    if constexpr (args::few_copies(F::kPlanes)) multiply_few_copied<F, kTokens, kGated>(a);
}

#endif

}  // namespace redline::hip

#endif
