// The products of quantized weights with int8 activations, over a vector family V and a format descriptor F
// (see linear_formats.h). Integer dot products per group of columns, scaled and summed in f32.
#pragma once

#include "backends/cpu/formats/linear_formats.h"
#include "linear_activations.h"

namespace redline::cpu {
namespace {

// Running sums of kernels that go alone, per panel block: one per factor of the format, which multiplies it
// at the end. A format without factors adds straight to the result.
template <class F>
constexpr int kTotals = F::Scales::kFactors > 0 ? F::Scales::kFactors : 1;

// The factors of a panel block.
template <class V, class F>
RL_ALWAYS_INLINE inline void read_factors(const typename F::Scales& scales, typename V::Floats* factors) {
    unroll<0, F::Scales::kFactors>([&](auto f)
                                       RL_ALWAYS_INLINE { factors[f] = scales.template factor<f>(); });
}

// The scale of group g of a panel block, and the minimum if it has one.
template <class V, class F, int g>
RL_ALWAYS_INLINE inline void read_scale(const typename F::Scales& scales, const typename V::Floats* factors,
                                        typename V::Floats& w, typename V::Floats& m) {
    constexpr int kFactors = F::Scales::kFactors;
    w = scales.template scale<g>();
    if constexpr (kFactors > 0) w = V::mul(w, factors[F::kFactor(g)]);
    if constexpr (F::kMins) {
        m = scales.template minimum<g>();
        if constexpr (kFactors > 0) m = V::mul(m, factors[kFactors - 1]);
    }
}

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

// Scales the dot products of columns 32 * kAt .. of a panel block and adds them to `total`, as it is done for
// several rows.
template <class V, class F, int kAt>
RL_ALWAYS_INLINE inline void add_group(const typename V::template Sum<F>* sum,
                                       const typename F::Scales& scales, const typename V::Floats* factors,
                                       const Int8Block& x, typename V::Floats& total) {
    constexpr int kParts = 32 / F::kGroup;
    typename V::Floats w[kParts], m[kParts];
    unroll<0, kParts>([&](auto part) RL_ALWAYS_INLINE {
        read_scale<V, F, kAt * kParts + part>(scales, factors, w[part], m[part]);
    });
    total = add_scaled<V, F>(total, sum, w, m, x);
}

// The dot products of one section of a panel block with the activations x[0 .. kSection / 32), scaled and
// added to `total`. Fetches a section's worth of bytes at `ahead` on the way: in order, for the
// hardware to follow, and a line now and then, for a burst of prefetches would keep the loads waiting.
template <class V, class F, int s>
RL_ALWAYS_INLINE inline void add_section(const uint8_t* block, const typename F::Scales& scales,
                                         const typename V::Floats* factors, const Int8Block* x,
                                         const uint8_t* ahead, typename V::Floats& total) {
    constexpr int kParts = 32 / F::kGroup, kWide = F::kSection / 32;
    typename V::template Sum<F> sums[kWide * kParts];
    const auto start = [&](auto k) RL_ALWAYS_INLINE {
        unroll<0, kParts>([&](auto part) RL_ALWAYS_INLINE {
            sums[k * kParts + part].start(kParts == 1 ? x[k].neg32 : x[k].neg16[part]);
        });
    };
    const auto finish = [&](auto k) RL_ALWAYS_INLINE {
        add_group<V, F, s * kWide + k>(sums + k * kParts, scales, factors, x[k], total);
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

// Panel blocks whose products are summed before they are added to those of others.
template <class F>
constexpr size_t kSummed = F::kBlock >= 256 ? 1 : 256 / F::kBlock;

// A panel block of each of kStreams panels that lie `stride` bytes apart, by F::alone().
template <class V, class F, size_t kStreams>
RL_ALWAYS_INLINE inline void add_alone(const uint8_t* at, size_t stride, const Int8Block* x,
                                       const float* centers, ptrdiff_t ahead, typename V::Floats* total) {
    constexpr int kFactors = F::Scales::kFactors;
    for (size_t i = 0; i < kStreams; ++i) {
        const uint8_t* block = at + i * stride;
        typename V::Floats totals[kTotals<F>];
        for (auto& each : totals) each = V::zero();
        F::alone(block, opaque(x), centers, opaque(block + ahead), kFactors > 0 ? totals : total + i);
        if constexpr (kFactors > 0) {
            typename F::Scales scales;
            scales.read(block);
            unroll<0, kFactors>([&](auto f) RL_ALWAYS_INLINE {
                total[i] = V::fma(totals[f], scales.template factor<f>(), total[i]);
            });
        }
    }
}

// The same a section of each in turn, as add_few() does it for several rows.
template <class V, class F, size_t kStreams>
RL_ALWAYS_INLINE inline void add_in_turn(const uint8_t* at, size_t stride, const Int8Block* x,
                                         ptrdiff_t ahead, typename V::Floats* total) {
    typename F::Scales scales[kStreams];
    typename V::Floats factors[kStreams][kTotals<F>];
    for (size_t i = 0; i < kStreams; ++i) {
        scales[i].read(at + i * stride);
        read_factors<V, F>(scales[i], factors[i]);
    }
    unroll<0, F::kBlock / F::kSection>([&](auto s) RL_ALWAYS_INLINE {
        for (size_t i = 0; i < kStreams; ++i) {
            const uint8_t* block = at + i * stride;
            add_section<V, F, s>(block, scales[i], factors[i], opaque(x + s * (F::kSection / 32)),
                                 opaque(block + ahead), total[i]);
        }
    });
}

// One activation row against kStreams panels (see reads_side_by_side()). The prefetch continues in the panel
// that this stream reads next, perhaps in the next call. Unless a format goes alone, the sums are those of
// multiply_mat() and multiply_few(), bit for bit: 256 columns are summed first, and then added to the others.
template <class V, class F, size_t kStreams>
inline void multiply_streams(const PanelView& w, size_t p, size_t end, const Int8Block* x,
                             const float* centers, float* y, bool accumulate) {
    // Half of it is better where a block takes few instructions, so that loads run far ahead themselves.
    constexpr size_t kLone = goes_alone<F> ? kLoneAhead / 2 : kLoneAhead;
    constexpr size_t kAhead = kStreams > 1 ? 4096 : kLone;
    const uint8_t* at = w.panel(p);
    typename V::Floats total[kStreams], sum[kStreams];
    for (size_t i = 0; i < kStreams; ++i) {
        total[i] = V::zero();
        sum[i] = V::splat(-0.0f);  // to which 0 and -0 can be added
    }
    const ptrdiff_t jump = w.jump(p, kStreams, end);
    const uint8_t* const first_end = at + w.panel_bytes;
    for (size_t b = 0; b < w.blocks; ++b, at += F::kBytes, x += F::kBlock / 32) {
        const ptrdiff_t ahead = kAhead + (at + kAhead >= first_end ? jump : 0);
        if constexpr (goes_alone<F>) {
            add_alone<V, F, kStreams>(at, w.panel_bytes, x, centers + b * size_t(center_count<F>()), ahead,
                                      total);
        } else {
            add_in_turn<V, F, kStreams>(at, w.panel_bytes, x, ahead, total);
            if ((b + 1) % kSummed < F >> 0 && b + 1 < w.blocks) continue;
            for (size_t i = 0; i < kStreams; ++i) {
                sum[i] = V::add(total[i], sum[i]);
                total[i] = V::zero();
            }
        }
    }
    for (size_t i = 0; i < kStreams; ++i) {
        const unsigned rows = w.rows_in(p + i);
        float* out = y + (p + i) * kPanelRows;
        if constexpr (goes_alone<F>) sum[i] = total[i];
        if (accumulate) sum[i] = V::add(sum[i], V::load_rows(out, rows));
        V::store_rows(out, rows, sum[i]);
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

    // With kFetch, every other line of the columns at `ahead` is fetched meanwhile.
    template <bool kFetch = false>
    RL_ALWAYS_INLINE void fill(const uint8_t* block, size_t blocks, const uint8_t* ahead = nullptr) {
        for (size_t b = 0; b < blocks; ++b, block += F::kBytes, ahead += F::kBytes) {
            fill_scales(block, w + b * F::kGroups, m + (F::kMins ? b * F::kGroups : 0));
            unroll<0, F::kBlock / F::kSection>([&](auto s) RL_ALWAYS_INLINE {
                uint8_t(*out)[64] = codes + (b * F::kBlock + s * F::kSection) / 4;
                F::template codes<s>(block, [&](auto k, auto j, auto v) RL_ALWAYS_INLINE {
                    constexpr int kLines = kFetch ? (F::kBytes + 127) / 128 : 0, kAll = F::kBlock / 4;
                    constexpr int kAt = F::kSection / 4 * s + 8 * k + j;
                    unroll<kAt * kLines / kAll, (kAt + 1) * kLines / kAll>(
                        [&](auto line) RL_ALWAYS_INLINE { V::prefetch(ahead + 128 * line, v); });
                    V::store(out[8 * k + j], v);
                });
            });
        }
    }

    RL_ALWAYS_INLINE static void fill_scales(const uint8_t* block, typename V::Floats* w,
                                             typename V::Floats* m) {
        typename F::Scales scales;
        scales.read(block);
        typename V::Floats factors[kTotals<F>];
        read_factors<V, F>(scales, factors);
        unroll<0, F::kGroups>([&](auto g) RL_ALWAYS_INLINE {
            read_scale<V, F, g>(scales, factors, w[g], m[F::kMins ? g : 0]);
        });
    }
};

// The columns that are unpacked next. Every other line is fetched while those before them are unpacked, the
// rest while these are multiplied: few rows would leave the memory idle for as long as either takes.
struct NextColumns {
    const uint8_t* at;  // in the first of the panels
    size_t panel_bytes;
    size_t lines;  // of each panel, every other from `at` on, that a tile of rows fetches
    size_t step;   // of which so many with each 32 columns

    // Those of tile `tile` of `tiles`, which fetch `lines` together.
    RL_ALWAYS_INLINE NextColumns part(size_t tile, size_t tiles, size_t groups32) const {
        const size_t begin = lines * tile / tiles, count = lines * (tile + 1) / tiles - begin;
        return {at + 64 + 128 * begin, panel_bytes, count, (count + groups32 - 1) / groups32};
    }
    template <class V, size_t kPanels>
    RL_ALWAYS_INLINE void fetch(size_t g) const {
        const size_t end = smaller((g + 1) * step, lines);
        for (size_t line = g * step; line < end; ++line)
            for (size_t p = 0; p < kPanels; ++p) V::prefetch(at + p * panel_bytes + 128 * line);
    }
};

// kPanels x kRows sums over the columns in `w`, sums_stride apart between rows.
template <class V, class F, size_t kPanels, size_t kRows>
inline void multiply_tile(const Unpacked<V, F>* w, size_t groups32, const Int8Block* x, size_t x_stride,
                          const NextColumns& next, float* sums, size_t sums_stride, bool accumulate) {
    constexpr int kParts = 32 / F::kGroup;
    typename V::Floats total[kPanels][kRows];
    for (size_t p = 0; p < kPanels; ++p)
        for (size_t t = 0; t < kRows; ++t) total[p][t] = V::zero();
    for (size_t g = 0; g < groups32; ++g, ++x) {
        next.template fetch<V, kPanels>(g);
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
                       size_t x_rows, const NextColumns& next, float* sums, size_t sums_stride,
                       bool accumulate) {
    constexpr size_t kRows = V::kTileRows;
    const size_t tiles = (x_rows + kRows - 1) / kRows;
    size_t t = 0;
    const auto part = [&] { return next.part(t / kRows, tiles, groups32); };
    for (; t + kRows <= x_rows; t += kRows)
        multiply_tile<V, F, kPanels, kRows>(w, groups32, x + t * x_stride, x_stride, part(),
                                            sums + t * sums_stride, sums_stride, accumulate);
    unroll<1, int(kRows)>([&](auto left) {
        if (x_rows - t == size_t(left))
            multiply_tile<V, F, kPanels, size_t(left)>(w, groups32, x + t * x_stride, x_stride, part(),
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
    const bool few = x_rows <= 64;              // of more, the arithmetic takes longer than the memory
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
                const uint8_t* then = w.panel(p) + (b + kStep) * F::kBytes;
                if (b + kStep >= end)
                    then = w.panel(p + 1) + w.jump(p, panels, panel_end) + begin * F::kBytes;
                const NextColumns next{then, w.panel_bytes, few ? (kStep * F::kBytes + 63) / 128 : 0, 0};
                for (size_t i = 0; i < panels; ++i)
                    columns[i].template fill<true>(w.panel(p + i) + b * F::kBytes, count,
                                                   then + i * w.panel_bytes);
                const size_t groups32 = count * F::kBlock / 32;
                const Int8Block* xb = x + b * F::kBlock / 32;
                if (panels == V::kTilePanels)
                    sweep_rows<V, F, V::kTilePanels>(columns, groups32, xb, x_stride, x_rows, next, sums,
                                                     stride, b > begin);
                else
                    for (size_t i = 0; i < panels; ++i)
                        sweep_rows<V, F, 1>(columns + i, groups32, xb, x_stride, x_rows, next,
                                            sums + i * kPanelRows, stride, b > begin);
            }
            hand_out<V>(w, p, panels, sums, x_rows, y, y_stride, accumulate || begin > 0);
        }
    }
}

}  // namespace
}  // namespace redline::cpu
