// Products of a few tokens with a quantized matrix, in int8: activations are quantized per 32 elements to 127
// levels either way. A wave owns rows of the matrix.
#pragma once

#include "kernels/reduce.h"
#include "kernels/unit.h"

namespace redline::hip {

// 32 activations: element i is scale * code. Low words are elements 0 .. 15.
struct UnitMeta {
    float scale;
    float low, high;  // the sum of each half's elements as the codes have them
};

// The largest of |v|, or NaN when one is not finite: it must not vanish in the codes.
RL_DEVICE float unit_most(const float (&v)[32 / kShare]) {
    float most = 0.0f, trouble = 0.0f;
    RL_UNROLL
    for (uint32_t i = 0; i < 32 / kShare; ++i) {
        most = larger(__builtin_fabsf(v[i]), most);
        trouble += v[i] - v[i];
    }
    most = share_fold(most, [](float a, float b) { return larger(a, b); });
    return most + share_fold(trouble, [](float a, float b) { return a + b; });
}

// Quantizes `units` units of x * scale * gain: kShare lanes share one. low and high hold a unit's codes,
// `apart` of their elements from one unit to the next.
template <uint32_t kBlockThreads>
RL_DEVICE void quantize_units(const float* x, const float* gain, float scale, uint32_t units, Words4* low,
                              Words4* high, Float4* meta, uint32_t apart) {
    constexpr uint32_t kEach = 32 / kShare;
    const uint32_t part = thread_index() % kShare;
    RL_UNROLL_BY(4)
    for (uint32_t base = 0; base < units; base += kBlockThreads / kShare) {
        const uint32_t real = base + thread_index() / kShare, u = lesser(real, units - 1);
        float v[kEach];
        RL_UNROLL
        for (uint32_t i = 0; i < kEach / 4; ++i) {
            const uint32_t at = (u * 32 + part * kEach) / 4 + i;
            const auto four = load<Float4>(x, at);
            const Float4 by = gain ? load<Float4>(gain, at) : Float4{{1.0f, 1.0f, 1.0f, 1.0f}};
            RL_UNROLL
            for (uint32_t e = 0; e < 4; ++e) v[i * 4 + e] = four.d[e] * scale * by.d[e];
        }
        const float step = unit_most(v) * (1.0f / 127.0f),
                    inverse = step > 1e-30f ? fast_inverse(step) : 0.0f;
        int32_t sums[2] = {0, 0};
        RL_UNROLL
        for (uint32_t i = 0; i < kEach / 4; ++i) {
            uint32_t word = 0;
            RL_UNROLL
            for (uint32_t e = 0; e < 4; ++e) {
                const float code = round_of(v[i * 4 + e] * inverse);
                word |= uint32_t(uint8_t(int32_t(code > 127.0f    ? 127.0f
                                                 : code < -127.0f ? -127.0f
                                                                  : code)))
                        << (8 * e);
            }
            const uint32_t k = part * (kEach / 4) + i;
            sums[k / 4] = dot4(word, 0x01010101u, sums[k / 4]);
            if (real < units) (k < 4 ? low : high)[u * apart].d[k % 4] = word;
        }
        const auto add = [](int32_t a, int32_t b) { return a + b; };
        const int32_t below = share_fold(sums[0], add), above = share_fold(sums[1], add);
        if (part == 0 && real < units)
            meta[u * apart] = {{step, step * small_float(below), step * small_float(above), 0.0f}};
    }
}

// One row that the block itself quantized into shared memory, planes side by side.
struct OwnRow {
    const Words4* low;
    const Words4* high;
    const Float4* meta;
    RL_DEVICE Words4 low_codes(uint32_t, uint32_t u) const { return low[u]; }
    RL_DEVICE Words4 high_codes(uint32_t, uint32_t u) const { return high[u]; }
    RL_DEVICE UnitMeta unit_meta(uint32_t, uint32_t u) const {
        return {meta[u].d[0], meta[u].d[1], meta[u].d[2]};
    }
};
// Bytes of RL_SHARED_POOL per unit, and of a unit that was prepared beforehand: low, high, meta.
static_assert(args::kDotUnitBytes == 3 * sizeof(Words4));

template <int kTokens>
struct PreparedRows {
    const Words4* base;
    size_t rows[kTokens];  // where each begins
    RL_DEVICE Words4 low_codes(uint32_t t, uint32_t u) const { return base[rows[t] + u * 3]; }
    RL_DEVICE Words4 high_codes(uint32_t t, uint32_t u) const { return base[rows[t] + u * 3 + 1]; }
    RL_DEVICE UnitMeta unit_meta(uint32_t t, uint32_t u) const {
        const auto meta = load<Float4>(base, rows[t] + u * 3 + 2);
        return {meta.d[0], meta.d[1], meta.d[2]};
    }
};

// What a norm over `units` units of x multiplies by.
template <uint32_t kBlockThreads>
RL_DEVICE float norm_scale(const float* x, uint32_t units, float eps, float* parts) {
    float squares = 0.0f;
    RL_UNROLL_BY(4)
    for (uint32_t i = thread_index(); i < units * 8; i += kBlockThreads) {
        const auto v = load<Float4>(x, i);
        RL_UNROLL
        for (uint32_t e = 0; e < 4; ++e) squares = fused(v.d[e], v.d[e], squares);
    }
    return 1.0f / root_of(block_sum<kBlockThreads>(squares, parts) / float(units * 32) + eps);
}

// The whole block makes `units` units of x, normed where there is a gain.
template <uint32_t kBlockThreads>
RL_DEVICE OwnRow own_row(const float* x, const float* gain, float eps, uint32_t units, Words4* pool,
                         float* parts) {
    const float scale = gain ? norm_scale<kBlockThreads>(x, units, eps, parts) : 1.0f;
    auto* meta = reinterpret_cast<Float4*>(pool + 2 * units);
    quantize_units<kBlockThreads>(x, gain, scale, units, pool, pool + units, meta, 1);
    sync_block();
    return {pool, pool + units, meta};
}

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
    constexpr float kBias = float(F::kBias);
    float sum = s.scale[0] * fused(x.scale, dot_value(a), -kBias * x.low);
    sum = fused(s.scale[1], fused(x.scale, dot_value(b), -kBias * x.high), sum);
    if constexpr (F::kOffset) {
        sum = fused(s.offset[0], x.low, sum);
        sum = fused(s.offset[1], x.high, sum);
    }
    return sum;
}

// sums[r * kTokens + t] += w[r][rows[r]] . x[t] over this lane's share.
template <typename F, int kRows, int kTokens, typename Source>
RL_DEVICE void lane_dots(const Matrix (&w)[kRows], const size_t (&rows)[kRows], const Source& x,
                         uint32_t units, float (&sums)[kRows * kTokens]) {
    [[maybe_unused]] constexpr int kUnroll =
        kTokens == 1 ? 4 : 1;  // loads in flight; of many tokens there are enough
    RL_UNROLL_BY(kUnroll)
    for (uint32_t u = lane_index(); u < units; u += kWave) {
        uint32_t words[kRows][8];
        UnitScales s[kRows];
        RL_UNROLL
        for (int r = 0; r < kRows; ++r) {
            F::codes(w[r], rows[r] * units + u, words[r]);
            s[r] = F::scales(w[r], rows[r] * units + u);
        }
        RL_UNROLL
        for (int t = 0; t < kTokens; ++t) {
            const Words4 low = x.low_codes(t, u), high = x.high_codes(t, u);
            const UnitMeta meta = x.unit_meta(t, u);
            RL_UNROLL
            for (int r = 0; r < kRows; ++r)
                sums[r * kTokens + t] += unit_product<F>(words[r], s[r], low, high, meta);
        }
    }
}

constexpr uint32_t kDotWaves = kDotThreads / kWave;

// Which of the matrices a row of all of them belongs to.
RL_DEVICE uint32_t part_of(const args::DotArgs& a, uint32_t row) {
    return (row >= a.begin[1] ? 1u : 0u) + (row >= a.begin[2] ? 1u : 0u);
}
RL_DEVICE uint32_t begin_of(const args::DotArgs& a, uint32_t part) {
    return part == 0 ? 0 : part == 1 ? a.begin[1] : a.begin[2];
}
RL_DEVICE const args::DotPart& part_at(const args::DotArgs& a, uint32_t part) {
    return part == 0 ? a.parts[0] : part == 1 ? a.parts[1] : a.parts[2];
}

// Brings near what this wave reads of a row's widest plane.
template <typename F>
RL_DEVICE void prefetch_row(const Matrix& w, size_t row, uint32_t units) {
    constexpr uint32_t kLine = 128;
    const uint8_t* begin = w.data + row * units * F::kCodeBytes;
    for (uint32_t i = lane_index() * kLine; i < units * F::kCodeBytes; i += kWave * kLine)
        prefetch(begin + i);
}

// Hands `use` the activations of tokens [first, first + kTokens): own ones are of the first alone.
template <int kTokens, bool kOwn, typename Use>
RL_DEVICE void with_activations(const args::DotArgs& a, uint32_t first, uint32_t tokens, Use use) {
    const uint32_t units = a.cols / 32;
    if constexpr (kOwn) {
        RL_SHARED_POOL(pool);
        RL_SHARED float parts[kDotWaves];
        use(own_row<kDotThreads>(a.x + size_t(first) * a.cols, a.gain, a.eps, units, pool, parts));
    } else {
        PreparedRows<kTokens> x = {static_cast<const Words4*>(a.prepared), {}};
        RL_UNROLL
        for (uint32_t t = 0; t < kTokens; ++t)
            x.rows[t] = in_each_lane(size_t(lesser(first + t, tokens - 1)) * units * 3);
        use(x);
    }
}

// y[t][r] (+)= w[r] . x[t] + bias[r] for up to three matrices, whose rows are counted on.
template <typename F, int kRows, int kTokens, bool kOwn>
RL_DEVICE void linear_dot(const args::DotArgs& a) {
    const uint32_t units = a.cols / 32, step = grid_blocks() * kDotWaves * kRows;
    uint32_t first = (block_index().x * kDotWaves + wave_index()) * kRows;
    if constexpr (kOwn)
        for (uint32_t r = first; r < lesser(first + kRows, a.rows); ++r) {
            const uint32_t part = part_of(a, r);
            prefetch_row<F>(part_at(a, part).w, r - begin_of(a, part), units);
        }
    const uint32_t tokens = rows_in_step(a.step, a.of_outputs);
    if (a.first_token >= tokens) return;
    with_activations<kTokens, kOwn>(a, a.first_token, tokens, [&](const auto& x) {
        for (; first < a.rows; first += step) {
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
    });
}

// y[t][r] = act(w[r] . x[t]) * (up[r] . x[t]); the second matrix is `up`.
template <typename F, int kTokens, bool kOwn>
RL_DEVICE void gated_dot(const args::DotArgs& a) {
    const uint32_t units = a.cols / 32, step = grid_blocks() * kDotWaves;
    uint32_t row = block_index().x * kDotWaves + wave_index();
    const Matrix w[2] = {a.parts[0].w, a.parts[1].w};
    if (kOwn && row < a.rows) {
        prefetch_row<F>(w[0], row, units);
        prefetch_row<F>(w[1], row, units);
    }
    const uint32_t tokens = rows_in_step(a.step, a.of_outputs);
    if (a.first_token >= tokens) return;
    with_activations<kTokens, kOwn>(a, a.first_token, tokens, [&](const auto& x) {
        for (; row < a.rows; row += step) {
            const size_t own = in_each_lane(row), rows[2] = {own, own};
            float sums[2 * kTokens] = {};
            lane_dots<F, 2, kTokens>(w, rows, x, units, sums);
            RL_UNROLL
            for (uint32_t t = 0; t < kTokens; ++t) {
                const float gate = wave_sum(sums[t]), up = wave_sum(sums[kTokens + t]);
                if (lane_index() == 0 && a.first_token + t < tokens)
                    a.parts[0].y[size_t(a.first_token + t) * a.rows + row] = apply_act(a.act, gate) * up;
            }
        }
    });
}

// The row of all experts' rows that `row` of this entry's expert is. An id that is no expert (the router saw
// NaN) counts as expert 0, whose NaN scale carries the trouble on.
RL_DEVICE size_t expert_row(const args::ExpertArgs& a, size_t entry, uint32_t row) {
    const uint32_t id = uint32_t(a.ids[entry]);
    return size_t(id < a.experts ? id : 0) * a.rows + row;
}

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
    const size_t x_row = a.per_expert ? (a.scales ? group * a.used : group) : group / places;
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
    const OwnRow x = own_row<kDotThreads>(a.x + (a.per_expert ? entry : entry / a.used) * a.cols, nullptr,
                                          0.0f, units, pool, parts);
    const Matrix w[2] = {a.w, a.up};
    const uint32_t step = grid_blocks() * kDotWaves;
    for (uint32_t row = block_index().x * kDotWaves + wave_index(); row < a.rows; row += step) {
        const size_t at = expert_row(a, entry, row), rows[2] = {at, at};
        float sums[2] = {};
        lane_dots<F, 2, 1>(w, rows, x, units, sums);
        const float gate = wave_sum(sums[0]), up = wave_sum(sums[1]);
        if (lane_index() == 0) a.y[entry * a.rows + row] = apply_act(a.act, gate) * up;
    }
}

}  // namespace redline::hip
