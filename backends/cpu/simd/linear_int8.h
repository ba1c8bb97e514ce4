// The products of quantized weights with int8 activations, over a vector family V and a format descriptor F
// (see linear_formats.h). Integer dot products per group of columns, scaled and summed in f32.
#pragma once

#include "linear_activations.h"
#include "linear_formats.h"

namespace redline::cpu {
namespace {

// Running sums per panel block: one per factor of the format, which multiplies it at the end; the last one
// takes the minima. A format without factors adds straight to the result.
template <class F>
constexpr int kTotals = F::Scales::kFactors > 0 ? F::Scales::kFactors : 1;

// Scales the dot products of columns 32 * kAt .. of a panel block and adds them to totals[kTotals].
template <class V, class F, int kAt>
RL_ALWAYS_INLINE inline void add_group(const typename V::template Sum<F>* sum,
                                       const typename F::Scales& scales, const Int8Block& x,
                                       typename V::Floats* totals) {
    constexpr int kParts = 32 / F::kGroup, g = kAt * kParts;
    typename V::Floats& total = totals[F::kFactor(g)];
    auto scaled = V::mul(sum[0].value(), scales.template scale<g>());
    if constexpr (kParts == 2) scaled = V::fma(sum[1].value(), scales.template scale<g + 1>(), scaled);
    total = V::fma(scaled, V::splat(x.scale), total);
    if constexpr (F::kMins) {
        typename V::Floats& minima = totals[kTotals<F> - 1];
        unroll<0, kParts>([&](auto part) RL_ALWAYS_INLINE {
            const float& share = kParts == 1 ? x.sum : x.sum16[part];
            minima = V::fma(scales.template minimum<g + part>(), V::splat(share), minima);
        });
    }
}

// The dot products of one section of a panel block with the activations x[0 .. kSection / 32), scaled and
// added to totals[kTotals]. Fetches a section's worth of bytes at `ahead` on the way: in order, for the
// hardware to follow, and a line now and then, for a burst of prefetches would keep the loads waiting.
template <class V, class F, int s>
RL_ALWAYS_INLINE inline void add_section(const uint8_t* block, const typename F::Scales& scales,
                                         const Int8Block* x, const uint8_t* ahead,
                                         typename V::Floats* totals) {
    constexpr int kParts = 32 / F::kGroup, kWide = F::kSection / 32;
    typename V::template Sum<F> sums[kWide * kParts];
    const auto start = [&](auto k) RL_ALWAYS_INLINE {
        unroll<0, kParts>([&](auto part) RL_ALWAYS_INLINE {
            sums[k * kParts + part].start(kParts == 1 ? x[k].neg32 : x[k].neg16[part]);
        });
    };
    const auto finish = [&](auto k) RL_ALWAYS_INLINE {
        add_group<V, F, s * kWide + k>(sums + k * kParts, scales, x[k], totals);
    };
    if constexpr (!F::kInOrder) unroll<0, kWide>(start);
    F::template codes<s>(block, [&](auto k, auto j, auto v) RL_ALWAYS_INLINE {
        if constexpr (F::kInOrder || k == 0) {
            constexpr int kWidth = F::kInOrder ? kWide : 1, kSteps = 8 * kWidth * (F::kBlock / F::kSection);
            constexpr int kStep = 8 * (kWidth * s + k) + j, kLines = (F::kBytes + 63) / 64;
            unroll<kStep * kLines / kSteps, (kStep + 1) * kLines / kSteps>(
                [&](auto line) RL_ALWAYS_INLINE { V::prefetch(ahead + 64 * line, v); });
        }
        if constexpr (F::kInOrder && j == 0) start(k);
        constexpr int kPart = kParts == 1 ? 0 : j / 4;
        sums[k * kParts + kPart].template add<j % (F::kGroup / 4)>(v, V::quad(x[k].q + 4 * j));
        if constexpr (F::kInOrder && j == 7) finish(k);
    });
    if constexpr (!F::kInOrder) unroll<0, kWide>(finish);
}

// Whether one row's products with a format go a way of their own, a whole block at a time:
// alone(block, x, ahead, totals) does what add_section() does for the others.
template <class F>
constexpr bool goes_alone = requires {
    requires F::kGoesAlone;
};

// How many numbers F::prepare_centers() makes of each block's activations, once for all panels, for alone().
template <class F>
constexpr int center_count() {
    if constexpr (requires { F::kCenters; })
        return F::kCenters;
    else
        return 0;
}

// One activation row against kStreams panels, a section of each in turn (see reads_side_by_side()). The
// prefetch continues in the panel that this stream reads next, perhaps in the next call.
template <class V, class F, size_t kStreams>
inline void multiply_streams(const PanelView& w, size_t p, size_t end, const Int8Block* x,
                             const float* centers, float* y, bool accumulate) {
    // Half of it is better where a block takes few instructions, so that loads run far ahead themselves.
    constexpr size_t kLone = goes_alone<F> ? kLoneAhead / 2 : kLoneAhead;
    constexpr size_t kAhead = kStreams > 1 ? 4096 : kLone;
    constexpr int kFactors = F::Scales::kFactors;
    const uint8_t* at = w.panel(p);
    typename V::Floats total[kStreams];
    for (size_t i = 0; i < kStreams; ++i) total[i] = V::zero();
    const ptrdiff_t jump = w.jump(p, kStreams, end);
    const uint8_t* const first_end = at + w.panel_bytes;
    for (size_t b = 0; b < w.blocks; ++b, at += F::kBytes, x += F::kBlock / 32) {
        const ptrdiff_t ahead = kAhead + (at + kAhead >= first_end ? jump : 0);
        typename F::Scales scales[kStreams];
        typename V::Floats totals[kStreams][kTotals<F>];
        for (size_t i = 0; i < kStreams; ++i) {
            scales[i].read(at + i * w.panel_bytes);
            for (auto& each : totals[i]) each = V::zero();
        }
        unroll<0, goes_alone<F> ? 1 : F::kBlock / F::kSection>([&](auto s) RL_ALWAYS_INLINE {
            for (size_t i = 0; i < kStreams; ++i) {
                const uint8_t* block = at + i * w.panel_bytes;
                typename V::Floats* to = kFactors > 0 ? totals[i] : total + i;
                if constexpr (goes_alone<F>)
                    F::alone(block, opaque(x), centers + b * size_t(center_count<F>()), opaque(block + ahead),
                             to);
                else
                    add_section<V, F, s>(block, scales[i], opaque(x + s * (F::kSection / 32)),
                                         opaque(block + ahead), to);
            }
        });
        if constexpr (kFactors > 0)
            for (size_t i = 0; i < kStreams; ++i)
                unroll<0, kFactors>([&](auto f) RL_ALWAYS_INLINE {
                    total[i] = V::fma(totals[i][f], scales[i].template factor<f>(), total[i]);
                });
    }
    for (size_t i = 0; i < kStreams; ++i) {
        const unsigned rows = w.rows_in(p + i);
        float* out = y + (p + i) * kPanelRows;
        if (accumulate) total[i] = V::add(total[i], V::load_rows(out, rows));
        V::store_rows(out, rows, total[i]);
    }
}

template <class V, class F>
inline void multiply_vec(const PanelView& w, size_t panel_begin, size_t panel_end, const Int8Block* x,
                         float* y, bool accumulate) {
    float* centers = nullptr;
    if constexpr (center_count<F>() > 0) {
        const size_t parts = w.blocks * F::kBlock / 32, each = size_t(F::kCenters) * 32 / F::kBlock;
        centers = reinterpret_cast<float*>(kernel_scratch(parts * each * sizeof(float)));
        for (size_t i = 0; i < parts; ++i) F::prepare_centers(x[i], centers + i * each);
    }
    size_t p = panel_begin;
    if (reads_side_by_side())
        for (; p + V::kStreams <= panel_end; p += V::kStreams)
            multiply_streams<V, F, V::kStreams>(w, p, panel_end, x, centers, y, accumulate);
    for (; p < panel_end; ++p) multiply_streams<V, F, 1>(w, p, panel_end, x, centers, y, accumulate);
}

// Some columns of a panel, ready for many activation rows: bytes for the dot product, and f32 scales.
template <class V, class F>
struct alignas(64) Unpacked {
    static constexpr int kBlocks = F::kBlock >= 256 ? 1 : 256 / F::kBlock;
    static constexpr int kGroups = kBlocks * F::kGroups;
    uint8_t codes[kBlocks * F::kBlock / 4][64];
    typename V::Floats w[kGroups];
    typename V::Floats m[F::kMins ? kGroups : 1];

    RL_ALWAYS_INLINE void fill(const uint8_t* block, size_t blocks) {
        for (size_t b = 0; b < blocks; ++b, block += F::kBytes) {
            fill_scales(block, w + b * F::kGroups, m + (F::kMins ? b * F::kGroups : 0));
            unroll<0, F::kBlock / F::kSection>([&](auto s) RL_ALWAYS_INLINE {
                uint8_t(*out)[64] = codes + (b * F::kBlock + s * F::kSection) / 4;
                F::template codes<s>(
                    block, [&](auto k, auto j, auto v) RL_ALWAYS_INLINE { V::store(out[8 * k + j], v); });
            });
        }
    }

    RL_ALWAYS_INLINE static void fill_scales(const uint8_t* block, typename V::Floats* w,
                                             typename V::Floats* m) {
        constexpr int kFactors = F::Scales::kFactors;
        typename F::Scales scales;
        scales.read(block);
        typename V::Floats factors[kTotals<F>];
        if constexpr (kFactors > 0)
            unroll<0, kFactors>([&](auto f) RL_ALWAYS_INLINE { factors[f] = scales.template factor<f>(); });
        unroll<0, F::kGroups>([&](auto g) RL_ALWAYS_INLINE {
            w[g] = scales.template scale<g>();
            if constexpr (kFactors > 0) w[g] = V::mul(w[g], factors[F::kFactor(g)]);
            if constexpr (F::kMins) {
                m[g] = scales.template minimum<g>();
                if constexpr (kFactors > 0) m[g] = V::mul(m[g], factors[kFactors - 1]);
            }
        });
    }
};

// Adds the scaled dot products of 32 columns: `sums` holds one per group, w and m that many scales and
// minima.
template <class V, class F, class Sum>
RL_ALWAYS_INLINE inline typename V::Floats add_scaled(typename V::Floats total, const Sum* sums,
                                                      const typename V::Floats* w,
                                                      const typename V::Floats* m, const Int8Block& x) {
    if constexpr (F::kGroup == 32) {
        total = V::fma(sums[0].value(), V::mul(w[0], V::splat(x.scale)), total);
        if constexpr (F::kMins) total = V::fma(m[0], V::splat(x.sum), total);
    } else {
        const auto scaled = V::fma(sums[1].value(), w[1], V::mul(sums[0].value(), w[0]));
        total = V::fma(scaled, V::splat(x.scale), total);
        if constexpr (F::kMins) {
            total = V::fma(m[0], V::splat(x.sum16[0]), total);
            total = V::fma(m[1], V::splat(x.sum16[1]), total);
        }
    }
    return total;
}

// kPanels x kRows sums over the columns in `w`, sums_stride apart between rows.
template <class V, class F, size_t kPanels, size_t kRows>
inline void multiply_tile(const Unpacked<V, F>* w, size_t groups32, const Int8Block* x, size_t x_stride,
                          float* sums, size_t sums_stride, bool accumulate) {
    constexpr int kParts = 32 / F::kGroup;
    typename V::Floats total[kPanels][kRows];
    for (size_t p = 0; p < kPanels; ++p)
        for (size_t t = 0; t < kRows; ++t) total[p][t] = V::zero();
    for (size_t g = 0; g < groups32; ++g, ++x) {
        typename V::template Sum<F> dots[kPanels][kRows][kParts];
        unroll<0, kParts>([&](auto part) RL_ALWAYS_INLINE {
            unroll<0, kRows>([&](auto t) RL_ALWAYS_INLINE {
                const Int8Block& xt = x[t * x_stride];
                // The next tile's rows come from the second-level cache meanwhile.
                if constexpr (part == 0)
                    V::prefetch(reinterpret_cast<const uint8_t*>(opaque(&xt + kRows * x_stride)));
                unroll<0, kPanels>([&](auto p) RL_ALWAYS_INLINE {
                    dots[p][t][part].start(kParts == 1 ? xt.neg32 : xt.neg16[part]);
                });
            });
            unroll<0, F::kGroup / 4>([&](auto j) RL_ALWAYS_INLINE {
                constexpr int kAt = part * (F::kGroup / 4) + j;
                typename V::Bytes v[kPanels];
                for (size_t p = 0; p < kPanels; ++p) {
                    v[p] = V::load(w[p].codes[8 * g + kAt]);
                    V::keep(v[p]);
                }
                unroll<0, kRows>([&](auto t) RL_ALWAYS_INLINE {
                    const auto quad = V::quad(x[t * x_stride].q + 4 * kAt);
                    unroll<0, kPanels>(
                        [&](auto p) RL_ALWAYS_INLINE { dots[p][t][part].template add<j>(v[p], quad); });
                });
            });
        });
        for (size_t p = 0; p < kPanels; ++p)
            for (size_t t = 0; t < kRows; ++t)
                total[p][t] = add_scaled<V, F>(total[p][t], dots[p][t], w[p].w + g * kParts,
                                               w[p].m + (F::kMins ? g * kParts : 0), x[t * x_stride]);
    }
    for (size_t p = 0; p < kPanels; ++p)
        for (size_t t = 0; t < kRows; ++t) {
            float* out = sums + t * sums_stride + p * kPanelRows;
            if (accumulate) total[p][t] = V::add(total[p][t], V::load_rows(out, kPanelRows));
            V::store_rows(out, kPanelRows, total[p][t]);
        }
}

// All activation rows against the columns in `w`, kTileRows at a time.
template <class V, class F, size_t kPanels>
inline void sweep_rows(const Unpacked<V, F>* w, size_t groups32, const Int8Block* x, size_t x_stride,
                       size_t x_rows, float* sums, size_t sums_stride, bool accumulate) {
    constexpr size_t kRows = V::kTileRows;
    size_t t = 0;
    for (; t + kRows <= x_rows; t += kRows)
        multiply_tile<V, F, kPanels, kRows>(w, groups32, x + t * x_stride, x_stride, sums + t * sums_stride,
                                            sums_stride, accumulate);
    unroll<1, int(kRows)>([&](auto left) {
        if (x_rows - t == size_t(left))
            multiply_tile<V, F, kPanels, size_t(left)>(w, groups32, x + t * x_stride, x_stride,
                                                       sums + t * sums_stride, sums_stride, accumulate);
    });
}

// y (rows of y_stride) = (or +=) the sums of `panels` panels, (x_rows, kTilePanels, 16 rows).
template <class V>
RL_ALWAYS_INLINE inline void hand_out(const PanelView& w, size_t p, size_t panels, const float* sums,
                                      size_t x_rows, float* y, size_t y_stride, bool accumulate) {
    constexpr size_t kAhead = 16;  // rows: each is in a page of its own, which the hardware does not foresee
    for (size_t t = 0; t < x_rows; ++t, y += y_stride)
        for (size_t i = 0; i < panels; ++i, sums += kPanelRows) {
            float* out = y + (p + i) * kPanelRows;
            if (t + kAhead < x_rows) __builtin_prefetch(out + kAhead * y_stride, 1);
            const unsigned rows = w.rows_in(p + i);
            auto sum = V::load_rows(sums, kPanelRows);
            if (accumulate) sum = V::add(sum, V::load_rows(out, rows));
            V::store_rows(out, rows, sum);
        }
}

// Two and more activation rows: each panel is unpacked once, a few columns at a time into the first-level
// cache, and meets all rows there. The columns are cut so that the activations of a cut stay in the
// second-level cache, and so do the sums, which lie together until a cut is done: rows of y are often a power
// of two apart and would push each other out (Zen 5: 320 instead of 410 GFLOP/s).
template <class V, class F>
inline void multiply_mat(const PanelView& w, size_t panel_begin, size_t panel_end, const Int8Block* x,
                         size_t x_stride, size_t x_rows, float* y, size_t y_stride, bool accumulate) {
    using Columns = Unpacked<V, F>;
    constexpr size_t kCacheBytes = size_t(1) << 20;
    constexpr size_t kStep = Columns::kBlocks;  // blocks
    constexpr size_t kRowBytes = kStep * F::kBlock / 32 * sizeof(Int8Block);
    const size_t steps = kCacheBytes / (kRowBytes * x_rows);
    const size_t cut = kStep * (steps > 0 ? steps : 1);
    Columns columns[V::kTilePanels];
    auto* sums =
        reinterpret_cast<float*>(kernel_scratch(x_rows * V::kTilePanels * kPanelRows * sizeof(float)));
    for (size_t begin = 0; begin < w.blocks; begin += cut) {
        const size_t end = smaller(begin + cut, w.blocks);
        for (size_t p = panel_begin; p < panel_end; p += V::kTilePanels) {
            const size_t panels = smaller(V::kTilePanels, panel_end - p), stride = panels * kPanelRows;
            for (size_t b = begin; b < end; b += kStep) {
                const size_t count = smaller(kStep, end - b);
                for (size_t i = 0; i < panels; ++i) columns[i].fill(w.panel(p + i) + b * F::kBytes, count);
                const size_t groups32 = count * F::kBlock / 32;
                const Int8Block* xb = x + b * F::kBlock / 32;
                if (panels == V::kTilePanels)
                    sweep_rows<V, F, V::kTilePanels>(columns, groups32, xb, x_stride, x_rows, sums, stride,
                                                     b > begin);
                else
                    for (size_t i = 0; i < panels; ++i)
                        sweep_rows<V, F, 1>(columns + i, groups32, xb, x_stride, x_rows,
                                            sums + i * kPanelRows, stride, b > begin);
            }
            hand_out<V>(w, p, panels, sums, x_rows, y, y_stride, accumulate || begin > 0);
        }
    }
}

}  // namespace
}  // namespace redline::cpu
