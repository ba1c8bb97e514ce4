// The products of F32, F16 and BF16 weights with f32 activations, over a vector family V. All arithmetic is
// f32.
#pragma once

#include "linear_activations.h"

namespace redline::cpu {
namespace {

template <class V>
struct F32 {
    static constexpr uint32_t kId = 0;
    static constexpr size_t kColumnBytes = 64;
    RL_ALWAYS_INLINE static typename V::Floats column(const uint8_t* p) {
        return V::floats(reinterpret_cast<const float*>(p));
    }
};

template <class V>
struct F16 {
    static constexpr uint32_t kId = 1;
    static constexpr size_t kColumnBytes = 32;
    RL_ALWAYS_INLINE static typename V::Floats column(const uint8_t* p) { return V::halfs(p); }
};

template <class V>
struct BF16 {
    static constexpr uint32_t kId = 30;
    static constexpr size_t kColumnBytes = 32;
    RL_ALWAYS_INLINE static typename V::Floats column(const uint8_t* p) { return V::bfloats(p); }
};

// Columns that are summed before they are added to the sums of others, which keeps rounding errors small.
constexpr size_t kFloatCut = 256;

// One activation row against kStreams panels side by side (see reads_side_by_side()). The sums are those of
// float_mat(), bit for bit.
template <class V, class F, size_t kStreams>
inline void float_streams(const PanelView& w, size_t p, size_t end, const float* x, float* y,
                          bool accumulate) {
    constexpr size_t kAhead = kStreams > 1 ? 2048 : kLoneAhead, kStep = 1024 / F::kColumnBytes;
    const uint8_t* at[kStreams];
    typename V::Floats sum[kStreams];
    for (size_t i = 0; i < kStreams; ++i) {
        at[i] = w.panel(p + i);
        // 0 and -0 can be added to -0.
        sum[i] = accumulate ? V::load_rows(y + (p + i) * kPanelRows, w.rows_in(p + i)) : V::splat(-0.0f);
    }
    const ptrdiff_t jump = w.jump(p, kStreams, end);
    const uint8_t* const first_end = at[0] + w.panel_bytes;
    for (size_t c = 0; c < w.blocks;) {
        const size_t cut = smaller(c + kFloatCut, w.blocks);
        typename V::Floats total[kStreams];
        for (size_t i = 0; i < kStreams; ++i) total[i] = V::zero();
        for (; c + kStep <= cut; c += kStep) {
            const ptrdiff_t ahead = kAhead + (at[0] + kAhead >= first_end ? jump : 0);
            for (size_t i = 0; i < kStreams; ++i)
                unroll<0, 16>([&](auto line) RL_ALWAYS_INLINE { V::prefetch(at[i] + ahead + 64 * line); });
            unroll<0, int(kStep)>([&](auto k) RL_ALWAYS_INLINE {
                for (size_t i = 0; i < kStreams; ++i)
                    total[i] = V::fma(F::column(at[i] + k * F::kColumnBytes), V::splat(x[c + k]), total[i]);
            });
            for (size_t i = 0; i < kStreams; ++i) at[i] += kStep * F::kColumnBytes;
        }
        for (; c < cut; ++c)
            for (size_t i = 0; i < kStreams; ++i) {
                total[i] = V::fma(F::column(at[i]), V::splat(x[c]), total[i]);
                at[i] += F::kColumnBytes;
            }
        for (size_t i = 0; i < kStreams; ++i) sum[i] = V::add(total[i], sum[i]);
    }
    for (size_t i = 0; i < kStreams; ++i) V::store_rows(y + (p + i) * kPanelRows, w.rows_in(p + i), sum[i]);
}

// kPanels x kRows of results over `cols` columns.
template <class V, class F, size_t kPanels, size_t kRows>
inline void float_tile(const uint8_t* w, size_t panel_bytes, size_t cols, const float* x, size_t x_stride,
                       float* y, size_t y_stride, const unsigned* rows, bool accumulate) {
    typename V::Floats total[kPanels][kRows];
    for (size_t p = 0; p < kPanels; ++p)
        for (size_t t = 0; t < kRows; ++t) total[p][t] = V::zero();
    for (size_t c = 0; c < cols; ++c, w += F::kColumnBytes, ++x) {
        typename V::Floats column[kPanels];
        for (size_t p = 0; p < kPanels; ++p) column[p] = F::column(w + p * panel_bytes);
        unroll<0, kRows>([&](auto t) RL_ALWAYS_INLINE {
            const auto splat = V::splat(x[t * x_stride]);
            for (size_t p = 0; p < kPanels; ++p) total[p][t] = V::fma(column[p], splat, total[p][t]);
        });
    }
    for (size_t p = 0; p < kPanels; ++p)
        for (size_t t = 0; t < kRows; ++t) {
            float* out = y + t * y_stride + p * kPanelRows;
            if (accumulate) total[p][t] = V::add(total[p][t], V::load_rows(out, rows[p]));
            V::store_rows(out, rows[p], total[p][t]);
        }
}

template <class V, class F, size_t kPanels>
inline void float_sweep(const uint8_t* w, size_t panel_bytes, size_t cols, const float* x, size_t x_stride,
                        size_t x_rows, float* y, size_t y_stride, const unsigned* rows, bool accumulate) {
    constexpr size_t kRows = V::kFloatTileRows;
    size_t t = 0;
    for (; t + kRows <= x_rows; t += kRows)
        float_tile<V, F, kPanels, kRows>(w, panel_bytes, cols, x + t * x_stride, x_stride, y + t * y_stride,
                                         y_stride, rows, accumulate);
    unroll<1, int(kRows)>([&](auto left) {
        if (x_rows - t == size_t(left))
            float_tile<V, F, kPanels, size_t(left)>(w, panel_bytes, cols, x + t * x_stride, x_stride,
                                                    y + t * y_stride, y_stride, rows, accumulate);
    });
}

// Two and more activation rows: cuts of 256 columns of some panels stay in the first-level cache for all
// rows.
template <class V, class F>
inline void float_mat(const PanelView& w, size_t panel_begin, size_t panel_end, const float* x,
                      size_t x_stride, size_t x_rows, float* y, size_t y_stride, bool accumulate) {
    for (size_t p = panel_begin; p < panel_end; p += V::kTilePanels) {
        const size_t panels = smaller(V::kTilePanels, panel_end - p);
        unsigned rows[V::kTilePanels];
        for (size_t i = 0; i < panels; ++i) rows[i] = w.rows_in(p + i);
        for (size_t c = 0; c < w.blocks; c += kFloatCut) {
            const size_t cols = smaller(kFloatCut, w.blocks - c);
            const uint8_t* at = w.panel(p) + c * F::kColumnBytes;
            float* out = y + p * kPanelRows;
            const bool add = accumulate || c > 0;
            if (panels == V::kTilePanels)
                float_sweep<V, F, V::kTilePanels>(at, w.panel_bytes, cols, x + c, x_stride, x_rows, out,
                                                  y_stride, rows, add);
            else
                for (size_t i = 0; i < panels; ++i)
                    float_sweep<V, F, 1>(at + i * w.panel_bytes, w.panel_bytes, cols, x + c, x_stride, x_rows,
                                         out + i * kPanelRows, y_stride, rows + i, add);
        }
    }
}

template <class V, class F>
struct FloatProduct {
    static void multiply(const PackedMatrix& w, uint64_t panel_begin, uint64_t panel_end, const std::byte* x,
                         size_t x_stride, size_t x_rows, float* y, size_t y_stride, bool accumulate) {
        const PanelView view(w);
        const auto* rows = reinterpret_cast<const float*>(x);
        if (x_rows > 1) {
            float_mat<V, F>(view, panel_begin, panel_end, rows, x_stride / sizeof(float), x_rows, y, y_stride,
                            accumulate);
            return;
        }
        size_t p = panel_begin;
        if (reads_side_by_side())
            for (; p + V::kStreams <= panel_end; p += V::kStreams)
                float_streams<V, F, V::kStreams>(view, p, panel_end, rows, y, accumulate);
        for (; p < panel_end; ++p) float_streams<V, F, 1>(view, p, panel_end, rows, y, accumulate);
    }
    static constexpr LinearKernel kernel = {Activations::f32, f32_bytes, prepare_f32, multiply, true};
};

}  // namespace
}  // namespace redline::cpu
