// Products of a few tokens with a quantized matrix, in int8. A wave owns rows of the matrix.
#pragma once

#include "kernels/route.h"
#include "kernels/row.h"
#include "kernels/unit.h"

namespace redline::hip {

template <int kTokens>
struct PreparedRows {
    const Words4* base;
    size_t rows[kTokens];  // where each begins
    RL_DEVICE Words4 low_codes(uint32_t t, uint32_t u) const { return base[rows[t] + u * 3]; }
    RL_DEVICE Words4 high_codes(uint32_t t, uint32_t u) const { return base[rows[t] + u * 3 + 1]; }
    RL_DEVICE UnitMeta unit_meta(uint32_t t, uint32_t u) const {
        return unit_meta_of(load<Float4>(base, rows[t] + u * 3 + 2));
    }
};

// What one unit of a row of the matrix adds.
template <typename F>
RL_DEVICE float unit_product(const uint32_t (&words)[8], const UnitScales& s, const Words4& low,
                             const Words4& high, const UnitMeta& x) {
    int32_t a = kDotStart, b = kDotStart;
    RL_UNROLL
    for (uint32_t k = 0; k < 4; ++k) {
        a = dot4(words[k], low.d[k], a);
        b = dot4(words[k + 4], high.d[k], b);
    }
    // A zero times a sum that may be infinite could not be left out by the compiler.
    constexpr float kBias = float(F::kBias);
    const auto minus_bias = [](float sum, float value) {
        return F::kBias == 0 ? value : fused(-kBias, sum, value);
    };
    const float first = x.scale[0] * dot_value(a);
    if constexpr (F::kHalves) {
        float sum = s.scale[0] * minus_bias(x.sum[0], first);
        sum = fused(s.scale[1], minus_bias(x.sum[1], x.scale[1] * dot_value(b)), sum);
        if constexpr (F::kOffset) sum = fused(s.offset[1], x.sum[1], fused(s.offset[0], x.sum[0], sum));
        return sum;
    }
    const float all = x.sum[0] + x.sum[1];
    const float sum = s.scale[0] * minus_bias(all, fused(x.scale[1], dot_value(b), first));
    if constexpr (F::kOffset) return fused(s.offset[0], all, sum);
    return sum;
}

// Adds units first, first + kWave, ... of rows that begin at units `begin`. All are read before one is
// multiplied, and without branches between.
template <typename F, uint32_t kUnits, int kRows, int kTokens, typename Source>
RL_DEVICE void add_units(const Matrix (&w)[kRows], const size_t (&begin)[kRows], const Source& x,
                         uint32_t first, float (&sums)[kRows * kTokens]) {
    uint32_t words[kUnits][kRows][8];
    UnitScales scales[kUnits][kRows];
    RL_UNROLL
    for (uint32_t n = 0; n < kUnits; ++n) RL_UNROLL
    for (int r = 0; r < kRows; ++r) {
        F::codes(w[r], begin[r] + first + n * kWave, words[n][r]);
        scales[n][r] = F::scales(w[r], begin[r] + first + n * kWave);
    }
    RL_UNROLL
    for (uint32_t n = 0; n < kUnits; ++n) RL_UNROLL
    for (int t = 0; t < kTokens; ++t) {
        const uint32_t u = first + n * kWave;
        const Words4 low = x.low_codes(t, u), high = x.high_codes(t, u);
        const UnitMeta meta = x.unit_meta(t, u);
        RL_UNROLL
        for (int r = 0; r < kRows; ++r)
            sums[r * kTokens + t] += unit_product<F>(words[n][r], scales[n][r], low, high, meta);
    }
}

// sums[r * kTokens + t] += w[r][rows[r]] . x[t] over this lane's share.
template <typename F, int kRows, int kTokens, typename Source>
RL_DEVICE void lane_dots(const Matrix (&w)[kRows], const size_t (&rows)[kRows], const Source& x,
                         uint32_t units, float (&sums)[kRows * kTokens]) {
    constexpr uint32_t kAtOnce =
        kTokens == 1 ? 4 / kRows : 1;  // of many tokens there is enough to do meanwhile
    size_t begin[kRows];
    RL_UNROLL
    for (int r = 0; r < kRows; ++r) begin[r] = kTokens == 1 ? rows[r] * units : in_each_lane(rows[r] * units);
    uint32_t u = lane_index();
    if constexpr (kAtOnce > 1) {
        RL_UNROLL_BY(1)
        for (; u + (kAtOnce - 1) * kWave < units; u += kAtOnce * kWave)
            add_units<F, kAtOnce, kRows, kTokens>(w, begin, x, u, sums);
    }
    RL_UNROLL_BY(1)
    for (; u < units; u += kWave) add_units<F, 1, kRows, kTokens>(w, begin, x, u, sums);
}

constexpr uint32_t kDotWaves = kDotThreads / kWave;

// A block computes so many results at a time: half a unit of the next product's activations.
constexpr uint32_t kGroup = kHalfUnit;

template <int kTokens>
RL_DEVICE PreparedRows<kTokens> prepared_rows(const args::DotArgs& a, uint32_t tokens) {
    PreparedRows<kTokens> x = {static_cast<const Words4*>(a.prepared), {}};
    RL_UNROLL
    for (uint32_t t = 0; t < kTokens; ++t)
        x.rows[t] = in_each_lane(size_t(lesser(a.first_token + t, tokens - 1)) * (a.cols / 32) * 3);
    return x;
}

// sums += the products of the rows from `first` on that `which` finds over this lane's share.
template <typename F, typename Rows>
RL_DEVICE void found_dots(const Rows& which, uint32_t first, const OwnRow& x,
                          float (&sums)[Rows::kMatrixRows]) {
    Matrix w[Rows::kMatrixRows];
    size_t rows[Rows::kMatrixRows];
    which.find(first, w, rows);
    lane_dots<F, Rows::kMatrixRows, 1>(w, rows, x, which.units(), sums);
}

// The results of one token, group after group of kGroup: a wave takes Rows::kCount of them at a time. Groups
// from row a.second on are of another format. The grid's x strides over groups. Each block norms and
// quantizes the row of activations by itself, into the pool of shared memory, or takes it as the launch
// before left it: that saves a launch. Sums as in linear_dot().
template <typename F, typename Rows, typename Second = F>
RL_DEVICE void each_own_row(const args::DotArgs& a, const Rows& which) {
    constexpr int kMatrixRows = Rows::kMatrixRows;
    constexpr bool kOneFormat = __is_same(F, Second);
    RL_SHARED_POOL(pool);
    RL_SHARED float parts[kDotWaves];
    RL_SHARED Float4 results[2][kGroup / 4];
    const uint32_t units = which.units();
    const float* const gain = Rows::kNormed ? a.gain : nullptr;
    float scale = 1.0f;
    if constexpr (Rows::kByInputs) which.begin();
    share_book_of<F>();
    if constexpr (!kOneFormat) share_book_of<Second>();
    const size_t token = Rows::token();
    if (token > 0 && token >= a.step->rows) return;
    const auto* taken = static_cast<const uint8_t*>(a.prepared) + token * a.apart.left;
    const OwnRow x =
        Rows::kHanded || a.prepared
            ? take_row<kDotThreads, Rows::kByInputs>(taken, gain != nullptr, a.eps, units, pool, parts, scale)
            : own_row<kDotThreads>(a.x + token * a.apart.x, gain, a.eps, units, pool, parts);
    if constexpr (Rows::kByInputs) which.choose(pool + 3 * units);
    uint32_t turn = 0;
    for (uint32_t base = block_index().x * kGroup; base < a.rows; base += grid_blocks() * kGroup, turn ^= 1) {
        float* values = results[turn]->d;
        RL_UNROLL_BY(1)
        for (uint32_t from = wave_index() * Rows::kCount; from < kGroup; from += kDotWaves * Rows::kCount) {
            if (base + from >= a.rows) break;
            const auto before = which.before(base + from);
            float sums[kMatrixRows] = {};
            if (kOneFormat || base < a.second)
                which.template add<own_form<F>>(base + from, x, sums);
            else
                which.template add<own_form<Second>>(base + from, x, sums);
            which.put(base + from, values + from, sums, scale, before);
        }
        // What several matrices give is not left as int8, but for experts' results, which no norm reads.
        if ((!kOneFormat && !Rows::kByInputs) || !a.hand.row) continue;
        sync_block();
        args::HandOver hand = a.hand;
        hand.row = static_cast<uint8_t*>(hand.row) + token * a.apart.left;
        if (wave_index() == 0) leave_halves<kWave, !Rows::kByInputs>(hand, values, base / kGroup, 1);
    }
}

// y[r] (+)= w[r] . x + bias[r] of one token, for up to four matrices, whose rows are counted on.
struct LinearRows {
    static constexpr uint32_t kCount = kDotWaves < kGroup && kWave > 1 ? 2 : 1, kMatrixRows = kCount;
    static constexpr bool kByInputs = false;  // which rows these are is among the inputs
    static constexpr bool kNormed = true;     // the activations may be
    static constexpr bool kHanded = false;    // always left by the launch before
    const args::DotArgs& a;

    // The row of the step that is computed.
    RL_DEVICE static uint32_t token() { return 0; }

    RL_DEVICE uint32_t units() const { return a.cols / 32; }
    template <typename F>
    RL_DEVICE void add(uint32_t first, const OwnRow& x, float (&sums)[kMatrixRows]) const {
        found_dots<F>(*this, first, x, sums);
    }
    RL_DEVICE void find(uint32_t first, Matrix (&w)[kCount], size_t (&rows)[kCount]) const {
        RL_UNROLL
        for (uint32_t r = 0; r < kCount; ++r) {
            const uint32_t row = lesser(first + r, a.rows - 1), part = part_of(a, row);
            w[r] = part_at(a, part).w;
            rows[r] = row - begin_of(a, part);
        }
    }
    // Each of the first lanes sees to a result: what it is added to.
    RL_DEVICE float before(uint32_t first) const {
        const uint32_t row = lesser(first + lane_index() % kCount, a.rows - 1), part = part_of(a, row);
        const args::DotPart& of = part_at(a, part);
        const uint32_t own = row - begin_of(a, part);
        return (a.accumulate ? of.y[own] : 0.0f) + (of.bias ? of.bias[own] : 0.0f);
    }
    RL_DEVICE void put(uint32_t first, float* values, const float (&sums)[kCount], float scale,
                       float added) const {
        float own = wave_sum(sums[0]);
        if constexpr (kCount == 2) {
            const float other = wave_sum(sums[1]);
            own = lane_index() == 0 ? own : other;
        }
        const uint32_t row = first + lane_index();
        if (lane_index() >= kCount || row >= a.rows) return;
        const uint32_t part = part_of(a, row);
        part_at(a, part).y[row - begin_of(a, part)] = values[lane_index()] = fused(own, scale, added);
    }
};

// y[r] = act(w[r] . x) * (up[r] . x) of one token; the second matrix is `up`.
struct GatedRows {
    static constexpr uint32_t kCount = 1, kMatrixRows = 2;
    static constexpr bool kByInputs = false, kNormed = true, kHanded = false;
    const args::DotArgs& a;

    RL_DEVICE static uint32_t token() { return 0; }
    RL_DEVICE uint32_t units() const { return a.cols / 32; }
    template <typename F>
    RL_DEVICE void add(uint32_t first, const OwnRow& x, float (&sums)[kMatrixRows]) const {
        found_dots<F>(*this, first, x, sums);
    }
    RL_DEVICE void find(uint32_t row, Matrix (&w)[2], size_t (&rows)[2]) const {
        w[0] = a.parts[0].w;
        w[1] = a.parts[1].w;
        rows[0] = rows[1] = in_each_lane(row);
    }
    RL_DEVICE float before(uint32_t) const { return 0.0f; }
    RL_DEVICE void put(uint32_t row, float* value, const float (&sums)[2], float scale, float) const {
        const float gate = wave_sum(sums[0]) * scale, up = wave_sum(sums[1]) * scale;
        if (lane_index() == 0 && row < a.rows) a.parts[0].y[row] = *value = act_times(a.act, gate, up);
    }
};

// sums[r] += w[r][rows[r]] . (x * gain) over this lane's share, in f32. Some loads are on their way at a
// time.
template <typename F, int kRows, bool kGain>
RL_DEVICE void float_dots(const Matrix (&w)[kRows], const size_t (&rows)[kRows], const float* x,
                          const float* gain, uint32_t cols, float (&sums)[kRows]) {
    [[maybe_unused]] constexpr uint32_t kAtOnce = kRows == 1 ? 8 : 4;
    RL_UNROLL_BY(kAtOnce)
    for (uint32_t i = lane_index(); i < cols / 4; i += kWave) {
        Float4 values[kRows];
        RL_UNROLL
        for (int r = 0; r < kRows; ++r) values[r] = F::elements(w[r], rows[r] * (cols / 4) + i);
        auto four = load<Float4>(x, i);
        if constexpr (kGain) {
            const auto by = load<Float4>(gain, i);
            RL_UNROLL
            for (uint32_t e = 0; e < 4; ++e) four.d[e] *= by.d[e];
        }
        RL_UNROLL
        for (int r = 0; r < kRows; ++r) RL_UNROLL
        for (uint32_t e = 0; e < 4; ++e) sums[r] = fused(values[r].d[e], four.d[e], sums[r]);
    }
}

// As each_own_row() with a format of floats: a block norms the activations as it goes.
template <typename F, typename Rows>
RL_DEVICE void each_float_row(const args::DotArgs& a, const Rows& which) {
    constexpr int kMatrixRows = Rows::kMatrixRows;
    RL_SHARED float parts[kDotWaves];
    RL_SHARED Float4 results[kGroup / 4];
    const float scale = a.gain ? norm_scale<kDotThreads>(a.x, a.cols / 32, a.eps, parts) : 1.0f;
    for (uint32_t base = block_index().x * kGroup; base < a.rows; base += grid_blocks() * kGroup) {
        RL_UNROLL_BY(1)
        for (uint32_t from = wave_index() * Rows::kCount; from < kGroup; from += kDotWaves * Rows::kCount) {
            if (base + from >= a.rows) break;
            Matrix w[kMatrixRows];
            size_t rows[kMatrixRows];
            which.find(base + from, w, rows);
            const auto before = which.before(base + from);
            float sums[kMatrixRows] = {};
            if (a.gain)
                float_dots<F, kMatrixRows, true>(w, rows, a.x, a.gain, a.cols, sums);
            else
                float_dots<F, kMatrixRows, false>(w, rows, a.x, nullptr, a.cols, sums);
            which.put(base + from, results->d + from, sums, scale, before);
        }
    }
}

// y[t][r] (+)= w[r] . x[t] + bias[r] for up to four matrices, whose rows are counted on, with kTokens rows of
// activations in int8 that prepare_dots left. The grid's x strides over pairs of rows, a wave's at a time,
// which share each load of the activations. Products of codes are summed exactly in integers for 16 columns,
// scaled and added in f32 by units of 32 columns, over which lanes stride; wave_sum() adds the lanes.
template <typename F, int kTokens>
RL_DEVICE void linear_dot(const args::DotArgs& a) {
    constexpr int kRows = 2;
    const uint32_t units = a.cols / 32, step = grid_blocks() * kDotWaves * kRows;
    const uint32_t tokens = rows_in_step(a.step, a.of_outputs);
    if (a.first_token >= tokens) return;
    const PreparedRows<kTokens> x = prepared_rows<kTokens>(a, tokens);
    for (uint32_t first = (block_index().x * kDotWaves + wave_index()) * kRows; first < a.rows;
         first += step) {
        Matrix w[kRows];
        size_t rows[kRows];
        RL_UNROLL
        for (uint32_t r = 0; r < kRows; ++r) {
            const uint32_t row = lesser(first + r, a.rows - 1), part = part_of(a, row);
            w[r] = part_at(a, part).w;
            rows[r] = row - begin_of(a, part);
        }
        float sums[kRows * kTokens] = {};
        lane_dots<F, kRows, kTokens>(w, rows, x, units, sums);
        RL_UNROLL
        for (uint32_t r = 0; r < kRows; ++r) RL_UNROLL
        for (uint32_t t = 0; t < kTokens; ++t) {
            float sum = wave_sum(sums[r * kTokens + t]);
            if (lane_index() != 0 || first + r >= a.rows || a.first_token + t >= tokens) continue;
            const args::DotPart& part = part_at(a, part_of(a, first + r));
            float& y = part.y[size_t(a.first_token + t) * part.rows + rows[r]];
            if (part.bias) sum += part.bias[rows[r]];
            y = a.accumulate ? y + sum : sum;
        }
    }
}

// y[t][r] = act(w[r] . x[t]) * (up[r] . x[t]); the second matrix is `up`.
template <typename F, int kTokens>
RL_DEVICE void gated_dot(const args::DotArgs& a) {
    const uint32_t units = a.cols / 32, step = grid_blocks() * kDotWaves;
    const Matrix w[2] = {a.parts[0].w, a.parts[1].w};
    const uint32_t tokens = rows_in_step(a.step, a.of_outputs);
    if (a.first_token >= tokens) return;
    const PreparedRows<kTokens> x = prepared_rows<kTokens>(a, tokens);
    for (uint32_t row = block_index().x * kDotWaves + wave_index(); row < a.rows; row += step) {
        const size_t own = in_each_lane(row), rows[2] = {own, own};
        float sums[2 * kTokens] = {};
        lane_dots<F, 2, kTokens>(w, rows, x, units, sums);
        // Each lane has the activation of a token to itself: in one lane, one after the other, they take more
        // scalar registers than gfx90a has.
        RL_UNROLL
        for (uint32_t base = 0; base < kTokens; base += kWave) {
            float gate = 0.0f, up = 0.0f;
            RL_UNROLL
            for (uint32_t i = 0; i < lesser(kWave, kTokens - base); ++i) {
                const float gate_sum = wave_sum(sums[base + i]), up_sum = wave_sum(sums[kTokens + base + i]);
                gate = lane_index() == i ? gate_sum : gate;
                up = lane_index() == i ? up_sum : up;
            }
            const uint32_t t = base + lane_index();
            if (t < kTokens && a.first_token + t < tokens)
                a.parts[0].y[size_t(a.first_token + t) * a.rows + row] = act_times(a.act, gate, up);
        }
    }
}

// The row of all experts' rows that `row` of this entry's expert is. An id that is no expert (the router saw
// NaN) counts as expert 0, whose NaN scale carries the trouble on.
RL_DEVICE size_t expert_row(const int32_t* ids, uint32_t experts, uint32_t rows, size_t entry, uint32_t row) {
    const uint32_t id = uint32_t(ids[entry]);
    return size_t(id < experts ? id : 0) * rows + row;
}
RL_DEVICE size_t expert_row(const args::ExpertArgs& a, size_t entry, uint32_t row) {
    return expert_row(a.ids, a.experts, a.rows, entry, row);
}
RL_DEVICE size_t expert_row(const args::Chosen& c, size_t entry, uint32_t row) {
    return expert_row(c.ids, c.experts, c.rows, entry, row);
}

// As GatedRows of one token's experts, whose rows are counted on.
struct ExpertGatedRows : GatedRows {
    static constexpr bool kByInputs = true;

    RL_DEVICE static uint32_t token() { return block_index().y; }

    // The token's, by place.
    RL_DEVICE static int32_t* ids() {
        RL_SHARED int32_t of_token[args::kMostUsed];
        return of_token;
    }
    RL_DEVICE size_t row_of(uint32_t place, uint32_t row) const {
        return expert_row(ids(), a.chosen.experts, a.chosen.rows, place, row);
    }
    // Before the block has its activations. Where it chooses experts, the launch before it is the router,
    // which reads the same activations: it lets this one begin when they are there, so that they need no
    // waiting.
    RL_DEVICE void begin() const {
        let_next_start();
        if (a.choice.logits && a.prepared) return;
        wait_for_inputs();
        if (a.choice.logits) return;
        RL_FEW_TURNS
        for (uint32_t i = thread_index(); i < a.chosen.used; i += kDotThreads)
            ids()[i] = a.chosen.ids[size_t(token()) * a.chosen.used + i];
        sync_block();
    }
    // When the block has its activations. The last block writes what is chosen: none has fewer rows.
    RL_DEVICE void choose(void* room) const {
        if (!a.choice.logits) return;
        wait_for_inputs();
        auto& shared = *static_cast<RouteShared*>(room);
        choose_experts<kDotThreads>(args_in_lanes(a).choice, token(), shared,
                                    block_index().x + 1 == grid_blocks());
        RL_FEW_TURNS
        for (uint32_t i = thread_index(); i < a.chosen.used; i += kDotThreads) ids()[i] = shared.ids[i];
        sync_block();
    }

    RL_DEVICE void find(uint32_t row, Matrix (&w)[2], size_t (&rows)[2]) const {
        const uint32_t each = a.chosen.rows, counted = lesser(row, a.rows - 1), place = counted / each;
        const args::DotArgs& read_late = args_in_lanes(a);
        w[0] = {read_late.parts[0].w.data, in_each_lane(a.parts[0].w.units)};
        w[1] = {read_late.parts[1].w.data, w[0].units};
        rows[0] = rows[1] = in_each_lane(row_of(place, counted - place * each));
    }
    struct Biases {
        float gate = 0.0f, up = 0.0f;
    };
    RL_DEVICE Biases before(uint32_t row) const {
        if (!a.parts[0].bias) return {};
        const uint32_t each = a.chosen.rows, counted = lesser(row, a.rows - 1), place = counted / each;
        const size_t at = in_each_lane(row_of(place, counted - place * each));
        const args::DotArgs& read_late = args_in_lanes(a);
        return {read_late.parts[0].bias[at], read_late.parts[1].bias[at]};
    }
    RL_DEVICE void put(uint32_t row, float* value, const float (&sums)[2], float scale,
                       const Biases& biases) const {
        const float gate = fused(wave_sum(sums[0]), scale, biases.gate),
                    up = fused(wave_sum(sums[1]), scale, biases.up);
        const args::DotArgs& read_late = args_in_lanes(a);
        if (lane_index() == 0 && row < a.rows)
            read_late.parts[0].y[size_t(token()) * read_late.apart.y + row] = *value =
                act_times(read_late.act, gate, up);
    }
    template <typename F>
    RL_DEVICE void add(uint32_t first, const OwnRow& x, float (&sums)[kMatrixRows]) const {
        found_dots<F>(*this, first, x, sums);
    }
};

// y[r] += the sum over places of scale * (w[e][r] . x[place] + bias[e][r]) of one token: as one long row, so
// that all of it is on its way together.
struct ExpertSumRows {
    static constexpr uint32_t kCount = 1, kMatrixRows = 1;
    static constexpr bool kByInputs = false, kNormed = false, kHanded = false;
    const args::DotArgs& a;

    RL_DEVICE static uint32_t token() { return block_index().y; }
    RL_DEVICE size_t entry(uint32_t place) const { return size_t(token()) * a.chosen.used + place; }
    RL_DEVICE float& y(uint32_t row) const { return a.parts[0].y[size_t(token()) * a.apart.y + row]; }
    RL_DEVICE uint32_t units() const { return a.cols / 32 * a.chosen.used; }
    // What a result is added to, and of the lane's places the biases.
    struct Before {
        float y, biases;
    };
    RL_DEVICE Before before(uint32_t row) const {
        Before found = {y(row), 0.0f};
        if (!a.parts[0].bias) return found;
        for (uint32_t place = lane_index(); place < a.chosen.used; place += kWave)
            found.biases = fused(a.chosen.scales[entry(place)],
                                 a.parts[0].bias[expert_row(a.chosen, entry(place), row)], found.biases);
        return found;
    }
    RL_DEVICE void put(uint32_t row, float* value, const float (&sums)[1], float, const Before& added) const {
        const float sum = wave_sum(sums[0] + added.biases);
        if (lane_index() == 0) y(row) = *value = added.y + sum;
    }
    template <typename F>
    RL_DEVICE void add(uint32_t row, const OwnRow& x, float (&sums)[1]) const {
        constexpr uint32_t kAtOnce = kWave == 32 ? 6 : 3;
        const uint32_t each = a.cols / 32, all = units();
        RL_UNROLL_BY(1)
        for (uint32_t first = lane_index(); first < all; first += kAtOnce * kWave) {
            uint32_t words[kAtOnce][8];
            UnitScales scales[kAtOnce];
            float share[kAtOnce];
            RL_UNROLL
            for (uint32_t n = 0; n < kAtOnce; ++n) {
                const uint32_t u = lesser(first + n * kWave, all - 1),
                               place = uint32_t((uint64_t(2 * u) * a.chosen.per_unit) >> 32);
                const size_t unit = expert_row(a.chosen, entry(place), row) * each + (u - place * each);
                share[n] = a.chosen.scales[entry(place)];
                F::codes(a.parts[0].w, unit, words[n]);
                scales[n] = F::scales(a.parts[0].w, unit);
            }
            RL_UNROLL
            for (uint32_t n = 0; n < kAtOnce; ++n) {
                const uint32_t u = lesser(first + n * kWave, all - 1);
                const float product = unit_product<F>(words[n], scales[n], x.low_codes(0, u),
                                                      x.high_codes(0, u), x.unit_meta(0, u));
                sums[0] = first + n * kWave < all ? fused(share[n], product, sums[0]) : sums[0];
            }
        }
    }
};

// As expert_vec and expert_gated_vec in experts.h, with the activations of the grid's y quantized by each
// block: one row, or when weighted the rows of all places, which lie one behind the other.
template <typename F>
RL_DEVICE void expert_dot(const args::ExpertArgs& a) {
    RL_SHARED_POOL(pool);
    RL_SHARED float parts[kDotWaves];
    const uint32_t units = a.cols / 32, places = a.scales ? 1 : a.used;
    const size_t group = size_t(a.first_token) * places + block_index().y;
    if (group >= size_t(a.step->rows) * places) return;
    const uint32_t x_rows = a.scales && a.per_expert ? a.used : 1;
    const size_t x_row =
        a.per_expert ? (a.scales ? group * a.used : group) : a.first_token + block_index().y / places;
    const OwnRow x = own_row<kDotThreads>(a.x + x_row * a.cols, nullptr, 0.0f, units * x_rows, pool, parts);
    const Matrix w[1] = {a.w};
    const uint32_t step = grid_blocks() * kDotWaves;
    for (uint32_t row = block_index().x * kDotWaves + wave_index(); row < a.rows; row += step) {
        float total = 0.0f;
        RL_UNROLL_BY(4)
        for (uint32_t place = 0; place < (a.scales ? a.used : 1); ++place) {
            const size_t entry = a.scales ? group * a.used + place : group;
            const size_t rows[1] = {expert_row(a, entry, row)};
            const uint32_t skip = x_rows > 1 ? place * units : 0;
            float sums[1] = {};
            lane_dots<F, 1, 1>(w, rows, OwnRow{x.low + skip, x.high + skip, x.meta + skip}, units, sums);
            if (a.bias && lane_index() == 0) sums[0] += a.bias[rows[0]];
            total = a.scales ? fused(a.scales[entry], sums[0], total) : sums[0];
        }
        total = wave_sum(total);
        if (lane_index() != 0) continue;
        float& y = a.y[group * a.rows + row];
        y = a.scales ? y + total : total;
    }
}

template <typename F>
RL_DEVICE void expert_gated_dot(const args::ExpertArgs& a) {
    RL_SHARED_POOL(pool);
    RL_SHARED float parts[kDotWaves];
    const uint32_t units = a.cols / 32;
    const size_t entry = size_t(a.first_token) * a.used + block_index().y;
    if (entry >= size_t(a.step->rows) * a.used) return;
    const size_t x_row = a.per_expert ? entry : a.first_token + block_index().y / a.used;
    const OwnRow x = own_row<kDotThreads>(a.x + x_row * a.cols, nullptr, 0.0f, units, pool, parts);
    const Matrix w[2] = {a.w, a.up};
    const uint32_t step = grid_blocks() * kDotWaves;
    for (uint32_t row = block_index().x * kDotWaves + wave_index(); row < a.rows; row += step) {
        const size_t at = expert_row(a, entry, row), rows[2] = {at, at};
        float sums[2] = {};
        lane_dots<F, 2, 1>(w, rows, x, units, sums);
        if (a.bias && lane_index() == 0) {
            sums[0] += a.bias[at];
            sums[1] += a.up_bias[at];
        }
        const float gate = wave_sum(sums[0]), up = wave_sum(sums[1]);
        if (lane_index() == 0) a.y[entry * a.rows + row] = act_times(a.act, gate, up);
    }
}

}  // namespace redline::hip
