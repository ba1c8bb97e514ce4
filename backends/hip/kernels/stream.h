// Products of one token with a quantized matrix, where a device copies to shared memory by itself: each
// wave's rows come into a ring of its own, ahead of their use, and begin to while the launch before still
// runs.
#pragma once

#include "kernels/dot.h"

#ifdef RL_COPIES_AHEAD

namespace redline::hip {

// The rows of a wave, stage after stage. A stage holds, for each matrix, the planes of kShape.units units one
// behind the other, so that it is a matrix of its own.
template <typename F, typename Rows, typename Second>
struct WeightRing {
    static constexpr uint32_t kMatrixRows = Rows::kMatrixRows;
    static constexpr args::StreamShape kShape = args::stream_shape(
        F::kPlanes.all() > Second::kPlanes.all() ? F::kPlanes.all() : Second::kPlanes.all(), kMatrixRows);
    static_assert(kShape.stages >= 2, "there is no room for a ring");
    const args::DotArgs& a;
    const Rows& which;
    uint8_t* stages;
    uint32_t units;                       // of a row
    uint32_t base;                        // the group whose rows are copied next
    uint32_t next;                        // of their units
    uint32_t stage;                       // is read next, and then copied to
    const uint8_t* from[kMatrixRows][4];  // what this lane copies next, by plane

    RL_DEVICE WeightRing(const args::DotArgs& args, const Rows& rows, uint8_t* room)
        : a(args),
          which(rows),
          stages(room),
          units(args.cols / 32),
          base(block_index().x * kGroup),
          next(0),
          stage(0) {
        if (more()) aim();
        RL_UNROLL
        for (stage = 0; stage < kShape.stages; ++stage) copy();
        stage = 0;
    }

    RL_DEVICE bool more() const { return base + wave_index() < a.rows; }
    RL_DEVICE static bool is_first(const args::DotArgs& a, uint32_t group) {
        return __is_same(F, Second) || group < a.second;
    }

    // What a plane has of a stage, and what of that is copied at a time.
    template <typename Of, uint32_t kPlane>
    struct Part {
        static constexpr uint32_t kEight = Of::kPlanes.bytes[kPlane], kBefore = Of::kPlanes.before(kPlane);
        static constexpr uint32_t kBytes = kShape.units / 8 * kEight, kBegin = kShape.units / 8 * kBefore;
        static constexpr uint32_t kPiece = kBytes % 16 == 0 ? 16 : kBytes % 8 == 0 ? 8 : 4;
    };
    // Calls each(matrix, Part) for all planes of all matrices.
    template <typename Of, typename Each>
    RL_DEVICE void each_part(Each each) {
        RL_UNROLL
        for (uint32_t r = 0; r < kMatrixRows; ++r) {
            each(r, Part<Of, 0>(), from[r][0]);
            if constexpr (Part<Of, 1>::kEight > 0) each(r, Part<Of, 1>(), from[r][1]);
            if constexpr (Part<Of, 2>::kEight > 0) each(r, Part<Of, 2>(), from[r][2]);
            if constexpr (Part<Of, 3>::kEight > 0) each(r, Part<Of, 3>(), from[r][3]);
        }
    }
    template <typename Of>
    RL_DEVICE void aim_at() {
        Matrix w[kMatrixRows];
        size_t rows[kMatrixRows];
        which.find(base + wave_index(), w, rows);
        each_part<Of>([&](uint32_t r, auto part, const uint8_t*& first) {
            using P = decltype(part);
            first = w[r].data + w[r].units / 8 * P::kBefore + rows[r] * (units / 8) * P::kEight +
                    lane_index() * P::kPiece;
        });
    }
    RL_DEVICE void aim() {
        if (is_first(a, base))
            aim_at<F>();
        else
            aim_at<Second>();
    }
    template <typename Of, bool kWhole>
    RL_DEVICE void copy_stage() {
        const uint32_t eights = lesser(kShape.units, units - next) / 8;
        uint8_t* to = stages + stage * kShape.stage_bytes;
        each_part<Of>([&](uint32_t r, auto part, const uint8_t*& first) {
            using P = decltype(part);
            const uint32_t own = lane_index() * P::kPiece;
            uint8_t* there = to + own + r * (kShape.stage_bytes / kMatrixRows) + P::kBegin;
            RL_UNROLL
            for (uint32_t skip = 0; skip < P::kBytes; skip += kWave * P::kPiece) {
                const bool sure = kWhole && skip + kWave * P::kPiece <= P::kBytes;
                if (sure || own + skip < (kWhole ? P::kBytes : eights * P::kEight))
                    copy_ahead<P::kPiece>(there + skip, first + skip);
            }
            first += P::kBytes;
        });
    }
    template <typename Of>
    RL_DEVICE void copy_units() {
        if (next + kShape.units <= units)
            copy_stage<Of, true>();
        else
            copy_stage<Of, false>();
    }

    RL_DEVICE void copy() {
        if (more()) {
            if (is_first(a, base))
                copy_units<F>();
            else
                copy_units<Second>();
            next += kShape.units;
            if (next >= units) {
                next = 0;
                base += grid_blocks() * kGroup;
                if (more()) aim();
            }
        }
        end_copies();
    }

    RL_DEVICE const uint8_t* wait() {
        wait_for_copies<kShape.stages - 1>();
        sync_wave();
        return stages + stage * kShape.stage_bytes;
    }
    // What was waited for has been read.
    RL_DEVICE void release() {
        sync_wave();
        copy();
        stage = stage + 1 == kShape.stages ? 0 : stage + 1;
    }
};

// sums[r] += the product of this lane's share of a stage with `count` units of x.
template <typename F, int kRows, uint32_t kUnits>
RL_DEVICE void stage_dots(const uint8_t* stage, uint32_t bytes, const OwnRow& x, uint32_t count,
                          float (&sums)[kRows]) {
    Matrix w[kRows];
    const size_t begin[kRows] = {};
    RL_UNROLL
    for (int r = 0; r < kRows; ++r) w[r] = {stage + r * bytes, kUnits};
    if (count >= kUnits) {
        RL_UNROLL
        for (uint32_t u = 0; u < kUnits; u += kWave)
            add_units<F, 1, kRows, 1>(w, begin, x, u + lane_index(), sums);
        return;
    }
    uint32_t u = lane_index();
    if constexpr (kUnits > 2 * kWave) {
        RL_UNROLL_BY(1)
        for (; u + kWave < count; u += 2 * kWave) add_units<F, 2, kRows, 1>(w, begin, x, u, sums);
    }
    RL_UNROLL_BY(1)
    for (; u < count; u += kWave) add_units<F, 1, kRows, 1>(w, begin, x, u, sums);
}

// As each_own_row() in dot.h.
template <typename F, typename Rows, typename Second = F>
RL_DEVICE void each_streamed_row(const args::DotArgs& a, const Rows& which) {
    using Ring = WeightRing<F, Rows, Second>;
    constexpr int kMatrixRows = Rows::kMatrixRows;
    constexpr uint32_t kUnits = Ring::kShape.units, kBytes = Ring::kShape.stage_bytes / kMatrixRows;
    static_assert(kDotWaves * Rows::kCount == kGroup, "a wave has one row of a group");
    RL_SHARED_POOL(pool);
    RL_SHARED float parts[kDotWaves];
    RL_SHARED Float4 results[2][kGroup / 4];
    constexpr uint32_t kRingBytes = Ring::kShape.stages * Ring::kShape.stage_bytes;
    const uint32_t units = a.cols / 32, wave = wave_index();
    auto* const rings = reinterpret_cast<uint8_t*>(pool + 3 * units);
    OwnRow x;
    float scale = 1.0f;
    const auto bring_row = [&] {
        share_book_of<F>();
        if constexpr (!__is_same(F, Second)) share_book_of<Second>();
        if constexpr (!Rows::kByInputs) wait_for_inputs();
        x = a.prepared ? take_row<kDotThreads, Rows::kByInputs>(a.prepared, a.gain != nullptr, a.eps, units,
                                                                pool, parts, scale)
                       : own_row<kDotThreads>(a.x, a.gain, a.eps, units, pool, parts);
    };
    if constexpr (Rows::kByInputs) {
        which.begin();
        bring_row();
        which.choose(rings + kDotWaves * kRingBytes);
    } else {
        let_next_start();
    }
    Ring ring(a, which, rings + wave * kRingBytes);
    if constexpr (!Rows::kByInputs) bring_row();
    uint32_t turn = 0;
    for (uint32_t base = block_index().x * kGroup; base < a.rows; base += grid_blocks() * kGroup, turn ^= 1) {
        float* values = results[turn]->d;
        if (base + wave < a.rows) {
            const auto before = which.before(base + wave);
            float sums[kMatrixRows] = {};
            RL_UNROLL_BY(1)
            for (uint32_t first = 0; first < units; first += kUnits) {
                const uint8_t* stage = ring.wait();
                const OwnRow part = {x.low + first, x.high + first, x.meta + first};
                if (Ring::is_first(a, base))
                    stage_dots<own_form<F>, kMatrixRows, kUnits>(stage, kBytes, part, units - first, sums);
                else
                    stage_dots<own_form<Second>, kMatrixRows, kUnits>(stage, kBytes, part, units - first,
                                                                      sums);
                ring.release();
            }
            which.put(base + wave, values + wave, sums, scale, before);
        }
        if (!a.hand.row) continue;
        sync_block();
        if (wave == 0) leave_halves<kWave, !Rows::kByInputs>(a.hand, values, base / kGroup, 1);
    }
}

// As each_float_row() in dot.h.
template <typename F, typename Rows>
RL_DEVICE void each_streamed_float_row(const args::DotArgs& a, const Rows& which) {
    using Ring = WeightRing<F, Rows, F>;
    constexpr int kMatrixRows = Rows::kMatrixRows;
    constexpr uint32_t kUnits = Ring::kShape.units, kBytes = Ring::kShape.stage_bytes / kMatrixRows;
    static_assert(kDotWaves * Rows::kCount == kGroup, "a wave has one row of a group");
    RL_SHARED_POOL(pool);
    RL_SHARED float parts[kDotWaves];
    RL_SHARED Float4 results[kGroup / 4];
    const uint32_t units = a.cols / 32, wave = wave_index();
    const size_t first_rows[kMatrixRows] = {};
    let_next_start();
    Ring ring(a, which,
              reinterpret_cast<uint8_t*>(pool) + wave * Ring::kShape.stages * Ring::kShape.stage_bytes);
    wait_for_inputs();
    const float scale = a.gain ? norm_scale<kDotThreads>(a.x, units, a.eps, parts) : 1.0f;
    for (uint32_t row = block_index().x * kGroup + wave; row < a.rows; row += grid_blocks() * kGroup) {
        const auto before = which.before(row);
        float sums[kMatrixRows] = {};
        RL_UNROLL_BY(1)
        for (uint32_t first = 0; first < units; first += kUnits) {
            const uint8_t* stage = ring.wait();
            Matrix w[kMatrixRows];
            RL_UNROLL
            for (int r = 0; r < kMatrixRows; ++r) w[r] = {stage + r * kBytes, kUnits};
            const uint32_t cols = lesser(kUnits, units - first) * 32;
            if (a.gain)
                float_dots<F, kMatrixRows, true>(w, first_rows, a.x + first * 32, a.gain + first * 32, cols,
                                                 sums);
            else
                float_dots<F, kMatrixRows, false>(w, first_rows, a.x + first * 32, nullptr, cols, sums);
            ring.release();
        }
        which.put(row, results->d + wave, sums, scale, before);
    }
}

}  // namespace redline::hip

#endif
