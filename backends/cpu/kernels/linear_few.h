// Products of two and more activation rows that are too few to pay for unpacking a panel into memory, and
// the choice among the ways that a product can go.
#pragma once

#include "linear_int8.h"

namespace redline::cpu {
namespace {

// Adds to totals[kRows] what 32 columns give, which are group k of section s of a panel block. Each vector of
// codes meets all rows while it is in registers. Only one group is decoded at a time, for two groups' sums of
// four rows are more than AVX2 has registers for.
template <class V, class F, int s, int k, size_t kRows>
RL_ALWAYS_INLINE inline void add_few(const uint8_t* block, const typename V::Floats* w,
                                     const typename V::Floats* m, const Int8Block* x, size_t x_stride,
                                     const uint8_t* ahead, typename V::Floats* totals) {
    constexpr int kParts = 32 / F::kGroup, kSteps = F::kGroup / 4;
    using Sum = typename V::template Sum<F>;
    // Where pairs of vectors are summed, the first waits for the second, so that no row's products have to.
    constexpr bool kPaired = Sum::kRun == 2;
    Sum dots[kRows][kParts];
    unroll<0, int(kRows) * kParts>([&](auto i) RL_ALWAYS_INLINE {
        const Int8Block& xt = x[i / kParts * x_stride];
        dots[i / kParts][i % kParts].start(kParts == 1 ? xt.neg32 : xt.neg16[i % kParts]);
    });
    typename V::Bytes waiting;
    F::template codes<s>(block, [&](auto at, auto j, typename V::Bytes v) RL_ALWAYS_INLINE {
        if constexpr (at == k) {
            constexpr int kStep = 8 * (F::kSection / 32 * s + k) + j, kAll = F::kBlock / 4;
            constexpr int kLines = (F::kBytes + 63) / 64;
            unroll<kStep * kLines / kAll, (kStep + 1) * kLines / kAll>(
                [&](auto line) RL_ALWAYS_INLINE { V::prefetch(ahead + 64 * line, v); });
            V::keep(v);
            if constexpr (kPaired && j % 2 == 0)
                waiting = v;
            else
                unroll<0, int(kRows)>([&](auto t) RL_ALWAYS_INLINE {
                    const int8_t* q = x[t * x_stride].q + 4 * j;
                    Sum& sum = dots[t][j / kSteps];
                    if constexpr (kPaired) sum.template add<(j - 1) % kSteps>(waiting, V::quad(q - 4));
                    sum.template add<j % kSteps>(v, V::quad(q));
                });
        }
    });
    unroll<0, int(kRows)>([&](auto t) RL_ALWAYS_INLINE {
        totals[t] = add_scaled<V, F>(totals[t], dots[t], w, m, x[t * x_stride]);
    });
}

// The same of all columns of a panel block.
template <class V, class F, size_t kRows>
RL_ALWAYS_INLINE inline void add_few_block(const uint8_t* block, const typename V::Floats* w,
                                           const typename V::Floats* m, const Int8Block* x, size_t x_stride,
                                           const uint8_t* ahead, typename V::Floats* totals) {
    constexpr int kSections = F::kBlock / F::kSection, kWide = F::kSection / 32, kParts = 32 / F::kGroup;
    const auto section = [&](auto s, int g, const uint8_t* codes, const uint8_t* fetched) RL_ALWAYS_INLINE {
        unroll<0, kWide>([&](auto k) RL_ALWAYS_INLINE {
            const int at = (g + k) * kParts;
            add_few<V, F, s, k, kRows>(opaque(codes), w + at, m + (F::kMins ? at : 0), opaque(x + g + k),
                                       x_stride, opaque(fetched), totals);
        });
    };
    if constexpr (F::kSectionBytes > 0) {
        constexpr int kFetched = (F::kBytes + 63) / 64 / kSections * 64;
        int sections = kSections;  // unknown to the compiler, for unrolled they are too many instructions
        asm("" : "+r"(sections));
        for (int s = 0; s < sections; ++s)
            section(Index<0>{}, s * kWide, block + s * F::kSectionBytes, ahead + s * kFetched);
    } else {
        unroll<0, kSections>([&](auto s) RL_ALWAYS_INLINE { section(s, s * kWide, block, ahead); });
    }
}

// (kRows, 16) sums over the columns of `blocks` panel blocks, whose scales and minima are w and m: 256
// columns are summed first, and then added to the others.
template <class V, class F, size_t kRows>
void multiply_few_tile(const uint8_t* block, size_t blocks, const typename V::Floats* w,
                       const typename V::Floats* m, const Int8Block* x, size_t x_stride, ptrdiff_t ahead,
                       float* sums, bool accumulate) {
    for (size_t count; blocks > 0; blocks -= count, accumulate = true) {
        typename V::Floats totals[kRows];
        for (size_t t = 0; t < kRows; ++t) totals[t] = V::zero();
        count = smaller(Unpacked<V, F>::kBlocks, blocks);
        for (size_t b = 0; b < count; ++b) {
            add_few_block<V, F, kRows>(block, w, m, x, x_stride, block + ahead, totals);
            block += F::kBytes, x += F::kBlock / 32;
            w += F::kGroups, m += F::kMins ? F::kGroups : 0;
        }
        for (size_t t = 0; t < kRows; ++t) {
            float* to = sums + t * kPanelRows;
            if (accumulate) totals[t] = V::add(totals[t], V::load_rows(to, kPanelRows));
            V::store_rows(to, kPanelRows, totals[t]);
        }
    }
}

// Panel blocks that meet one tile of rows after the other: few enough for the first-level cache, and enough
// that two sizes of tiles, whose code fills the CPU's cache of decoded instructions, do not alternate often.
template <class V, class F>
constexpr size_t kFewBlocks = 4 * Unpacked<V, F>::kBlocks;

// All rows, four at a time or in even shares of what is left, against up to kFewBlocks panel blocks.
template <class V, class F>
RL_ALWAYS_INLINE inline void sweep_few(const uint8_t* block, size_t blocks, const Int8Block* x,
                                       size_t x_stride, size_t x_rows, ptrdiff_t ahead, float* sums,
                                       bool accumulate) {
    constexpr size_t kGroups = kFewBlocks<V, F> * F::kGroups;
    typename V::Floats w[kGroups], m[F::kMins ? kGroups : 1];
    for (size_t b = 0; b < blocks; ++b)
        Unpacked<V, F>::fill_scales(block + b * F::kBytes, w + b * F::kGroups,
                                    m + (F::kMins ? b * F::kGroups : 0));
    for (size_t rows; x_rows > 0; x_rows -= rows, x += rows * x_stride, sums += rows * kPanelRows) {
        rows = x_rows <= 4 ? x_rows : x_rows <= 6 ? 3 : 4;
        const auto tile = rows == 4   ? multiply_few_tile<V, F, 4>
                          : rows == 3 ? multiply_few_tile<V, F, 3>
                                      : multiply_few_tile<V, F, 2>;
        tile(block, blocks, w, m, x, x_stride, ahead, sums, accumulate);
    }
}

// Two to F::kFewRows activation rows. A row's sums are those that multiply_mat() gives, bit for bit, so that
// they do not depend on how many rows are beside it.
template <class V, class F>
void multiply_few(const PanelView& w, size_t panel_begin, size_t panel_end, const Int8Block* x,
                  size_t x_stride, size_t x_rows, float* y, size_t y_stride, bool accumulate) {
    constexpr size_t kStep = kFewBlocks<V, F>;
    alignas(64) float sums[F::kFewRows * kPanelRows];
    for (size_t p = panel_begin; p < panel_end; ++p) {
        const ptrdiff_t jump = w.jump(p, 1, panel_end);
        for (size_t b = 0; b < w.blocks; b += kStep) {
            const size_t at = b * F::kBytes;
            sweep_few<V, F>(w.panel(p) + at, smaller(kStep, w.blocks - b), x + b * F::kBlock / 32, x_stride,
                            x_rows, ptrdiff_t(kLoneAhead) + (at + kLoneAhead >= w.panel_bytes ? jump : 0),
                            sums, b > 0);
        }
        hand_out<V>(w, p, 1, sums, x_rows, y, y_stride, accumulate);
    }
}

// 256 columns of some panels that lie `stride` bytes apart.
template <class V, class F>
struct PanelsInTurn {
    using Columns = Unpacked<V, F>;
    const uint8_t* at;
    size_t stride;
    size_t count;  // of panels, at most V::kStreams
    size_t blocks;
    ptrdiff_t ahead;  // from what is read to what is fetched
    typename V::Floats w[V::kStreams][Columns::kGroups];
    typename V::Floats m[V::kStreams][F::kMins ? Columns::kGroups : 1];

    RL_ALWAYS_INLINE void read_scales() {
        for (size_t i = 0; i < count; ++i)
            for (size_t b = 0; b < blocks; ++b)
                Columns::fill_scales(at + i * stride + b * F::kBytes, w[i] + b * F::kGroups,
                                     m[i] + (F::kMins ? b * F::kGroups : 0));
    }
};

// (kRows, panels, 16) sums = (or +=) the products of kRows activation rows.
template <class V, class F, size_t kRows>
void multiply_in_turn(const PanelsInTurn<V, F>& panels, const Int8Block* x, size_t x_stride, float* sums,
                      bool accumulate) {
    constexpr int kSections = F::kBlock / F::kSection, kWide = F::kSection / 32, kParts = 32 / F::kGroup;
    typename V::Floats totals[V::kStreams][kRows];
    for (size_t i = 0; i < panels.count; ++i)
        for (size_t t = 0; t < kRows; ++t) totals[i][t] = V::zero();
    // A section of each panel; g: its first 32 columns. Codes and what is fetched lie so far behind `block`.
    const auto section = [&](auto s, size_t g, const uint8_t* block, ptrdiff_t codes,
                             ptrdiff_t fetched) RL_ALWAYS_INLINE {
        for (size_t i = 0; i < panels.count; ++i, block += panels.stride)
            unroll<0, kWide>([&](auto k) RL_ALWAYS_INLINE {
                const size_t group = (g + k) * kParts;
                add_few<V, F, s, k, kRows>(opaque(block + codes), panels.w[i] + group,
                                           panels.m[i] + (F::kMins ? group : 0), opaque(x + g + k), x_stride,
                                           opaque(block + fetched), totals[i]);
            });
    };
    for (size_t b = 0; b < panels.blocks; ++b) {
        const uint8_t* block = panels.at + b * F::kBytes;
        const size_t first = b * F::kBlock / 32;
        if constexpr (F::kSectionBytes > 0) {
            constexpr int kFetched = (F::kBytes + 63) / 64 / kSections * 64;
            int sections = kSections;  // unknown to the compiler, for unrolled they are too many instructions
            asm("" : "+r"(sections));
            for (int s = 0; s < sections; ++s)
                section(Index<0>{}, first + size_t(s * kWide), block, s * F::kSectionBytes,
                        panels.ahead + s * kFetched);
        } else {
            unroll<0, kSections>([&](auto s) RL_ALWAYS_INLINE {
                section(s, first + size_t(s * kWide), block, 0, panels.ahead);
            });
        }
    }
    for (size_t i = 0; i < panels.count; ++i)
        for (size_t t = 0; t < kRows; ++t) {
            float* to = sums + (t * panels.count + i) * kPanelRows;
            if (accumulate) totals[i][t] = V::add(totals[i][t], V::load_rows(to, kPanelRows));
            V::store_rows(to, kPanelRows, totals[i][t]);
        }
}

// Two to kRowsInTurn activation rows. Panels are read side by side where that is faster, as multiply_vec()
// reads them, and what is read next is fetched all the while: unpacked into memory first, columns would leave
// the memory idle for as long as that takes. All rows meet a vector of codes while it is in a register: in
// two parts, 5 to 8 rows of Q6_K or Q8_0 take 1.2 to 1.3 times as long, of Q4_K 1.08 (Sapphire Rapids,
// 2026-11-30). A row's sums are those of multiply_mat(), bit for bit.
constexpr size_t kRowsInTurn = 8;
template <class V, class F>
void multiply_few_in_turn(const PanelView& w, size_t panel_begin, size_t panel_end, const Int8Block* x,
                          size_t x_stride, size_t x_rows, float* y, size_t y_stride, bool accumulate) {
    constexpr size_t kStep = Unpacked<V, F>::kBlocks;
    constexpr decltype(&multiply_in_turn<V, F, 2>) kByRows[kRowsInTurn + 1] = {nullptr,
                                                                               nullptr,
                                                                               multiply_in_turn<V, F, 2>,
                                                                               multiply_in_turn<V, F, 3>,
                                                                               multiply_in_turn<V, F, 4>,
                                                                               multiply_in_turn<V, F, 5>,
                                                                               multiply_in_turn<V, F, 6>,
                                                                               multiply_in_turn<V, F, 7>,
                                                                               multiply_in_turn<V, F, 8>};
    const auto multiply = kByRows[x_rows];
    const bool beside = reads_side_by_side();
    const size_t ahead = beside ? 4096 : kLoneAhead;
    alignas(64) float sums[kRowsInTurn * V::kStreams * kPanelRows];
    PanelsInTurn<V, F> panels;
    panels.stride = w.panel_bytes;
    for (size_t p = panel_begin; p < panel_end; p += panels.count) {
        panels.count = beside ? smaller(V::kStreams, panel_end - p) : 1;
        const ptrdiff_t jump = w.jump(p, panels.count, panel_end);
        for (size_t b = 0; b < w.blocks; b += kStep) {
            const size_t offset = b * F::kBytes;
            panels.at = w.panel(p) + offset;
            panels.blocks = smaller(kStep, w.blocks - b);
            panels.ahead = ptrdiff_t(ahead) + (offset + ahead >= w.panel_bytes ? jump : 0);
            panels.read_scales();
            multiply(panels, x + b * F::kBlock / 32, x_stride, sums, b > 0);
        }
        hand_out<V>(w, p, panels.count, sums, x_rows, y, y_stride, accumulate);
    }
}

template <class V, class F>
struct Int8Product {
    static void multiply(const PackedMatrix& w, uint64_t panel_begin, uint64_t panel_end, const std::byte* x,
                         size_t x_stride, size_t x_rows, float* y, size_t y_stride, bool accumulate) {
        const PanelView view(w);
        const auto* blocks = reinterpret_cast<const Int8Block*>(x);
        x_stride /= sizeof(Int8Block);
        if (x_rows == 1) return multiply_vec<V, F>(view, panel_begin, panel_end, blocks, y, accumulate);
        if constexpr (V::kFewInTurn && F::kFewInTurn)
            if (x_rows <= kRowsInTurn)
                return multiply_few_in_turn<V, F>(view, panel_begin, panel_end, blocks, x_stride, x_rows, y,
                                                  y_stride, accumulate);
        if constexpr (V::kFew && F::kFewRows > 0)
            if (x_rows <= F::kFewRows)
                return multiply_few<V, F>(view, panel_begin, panel_end, blocks, x_stride, x_rows, y, y_stride,
                                          accumulate);
        multiply_mat<V, F>(view, panel_begin, panel_end, blocks, x_stride, x_rows, y, y_stride, accumulate);
    }
    static constexpr LinearKernel kernel = {Activations::int8_block32, int8_bytes, prepare_int8, multiply,
                                            !goes_alone<F>};
};

}  // namespace
}  // namespace redline::cpu
