// Products of one row with the experts that it goes to and with the one that every row goes to, whose
// matrices may be of another format.
#pragma once

#include "kernels/dot.h"

namespace redline::hip {

// As ExpertGatedRows; rows from a.second on are the shared expert's.
struct SharedGatedRows : ExpertGatedRows {
    RL_DEVICE bool is_shared(uint32_t row) const { return row >= a.second; }

    RL_DEVICE void choose(void* room) const {
        ExpertGatedRows::choose(room);
        if (a.choice.logits && block_index().x + 1 == grid_blocks())
            weigh_shared(args_in_lanes(a).choice, token());
    }
    RL_DEVICE void find(uint32_t row, Matrix (&w)[2], size_t (&rows)[2]) const {
        if (!is_shared(row)) return ExpertGatedRows::find(row, w, rows);
        const args::DotArgs& read_late = args_in_lanes(a);
        w[0] = read_late.shared.w;
        w[1] = read_late.shared.up;
        rows[0] = rows[1] = in_each_lane(lesser(row, a.rows - 1) - a.second);
    }
    RL_DEVICE Biases before(uint32_t row) const {
        return is_shared(row) ? Biases() : ExpertGatedRows::before(row);
    }
    RL_DEVICE void put(uint32_t row, float* value, const float (&sums)[2], float scale,
                       const Biases& biases) const {
        if (!is_shared(row)) return ExpertGatedRows::put(row, value, sums, scale, biases);
        const float gate = wave_sum(sums[0]) * scale, up = wave_sum(sums[1]) * scale;
        const args::DotArgs& read_late = args_in_lanes(a);
        if (lane_index() == 0 && row < a.rows)
            read_late.shared.y[size_t(token()) * read_late.apart.shared_y + row - a.second] = *value =
                act_times(read_late.act, gate, up);
    }
    template <typename F>
    RL_DEVICE void add(uint32_t first, const OwnRow& x, float (&sums)[kMatrixRows]) const {
        found_dots<F>(*this, first, x, sums);
    }
};

// As ExpertSumRows; y[r] += what the shared expert counts times its product, too. Its first units are read
// before those of the others are multiplied.
template <typename Second>
struct SharedSumRows : ExpertSumRows {
    static constexpr bool kHanded = true;

    RL_DEVICE uint32_t units() const { return ExpertSumRows::units() + a.shared.units; }

    template <typename F>
    RL_DEVICE void add(uint32_t row, const OwnRow& x, float (&sums)[1]) const {
        using Own = own_form<Second>;
        const args::DotArgs& read_late = args_in_lanes(a);
        const Matrix w[1] = {{read_late.shared.w.data, in_each_lane(read_late.shared.w.units)}};
        const uint32_t units = read_late.shared.units, skip = ExpertSumRows::units();
        const size_t begin[1] = {in_each_lane(size_t(row) * units)};
        const uint32_t first = lesser(lane_index(), units - 1);
        uint32_t words[8];
        Own::codes(w[0], begin[0] + first, words);
        const UnitScales scales = Own::scales(w[0], begin[0] + first);
        const float factor = read_late.shared.scale ? read_late.shared.scale[token()] : 1.0f;
        ExpertSumRows::add<F>(row, x, sums);
        const OwnRow own = {x.low + skip, x.high + skip, x.meta + skip};
        const float product = unit_product<Own>(words, scales, own.low_codes(0, first),
                                                own.high_codes(0, first), own.unit_meta(0, first));
        float more[1] = {lane_index() < units ? product : 0.0f};
        uint32_t u = lane_index() + kWave;
        RL_UNROLL_BY(1)
        for (; u + kWave < units; u += 2 * kWave) add_units<Own, 2, 1, 1>(w, begin, own, u, more);
        if (u < units) add_units<Own, 1, 1, 1>(w, begin, own, u, more);
        sums[0] = fused(factor, more[0], sums[0]);
    }
};

}  // namespace redline::hip

// Kernels of experts of one format beside a shared one of the same, or of another.
#define RL_SHARED_KERNELS(format, other, suffix)                                       \
    namespace redline::hip {                                                           \
    RL_EARLY_KERNEL(kDotThreads, 2, shared_gated_own_##suffix, args::DotArgs) {        \
        each_own_row<format, SharedGatedRows, other>(args, SharedGatedRows{{{args}}}); \
    }                                                                                  \
    RL_DENSE_KERNEL(kDotThreads, 1, shared_own_##suffix, args::DotArgs) {              \
        each_own_row<format>(args, SharedSumRows<other>{{args}});                      \
    }                                                                                  \
    }
