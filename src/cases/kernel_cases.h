// Cases by which every kernel that a GPU's backend has for a format or a type of cache is launched: row
// classes, lengths of rows and sizes of heads that op_cases() has for some formats and types only.
#pragma once

#include "cases/op_cases.h"

namespace redline {

constexpr uint32_t kLongRow = 4352;      // more than a wave of 64 has units for, at two each
constexpr uint32_t kLongestRow = 31744;  // more than a block has room for in int8

// One product with the chosen experts, of rows that they share.
inline OpCase long_expert_case(const Format& format, uint32_t rows, uint32_t cols, bool gated) {
    OpCase c;
    c.name = fmt::format("expert_{} {} of {} columns rows {}", gated ? "gated" : "linear", format.name, cols,
                         rows);
    c.rows = rows;
    c.declare = [=, &format](Fixture& f) -> OpCase::Build {
        constexpr uint32_t kExperts = 3, kUsed = 2;
        // Of few results, products of two would say little about their mean error.
        const uint32_t results = cols == kLongestRow ? 5 : 24;
        const Weight to_route = f.input(32), router = f.matrix(*find_format("F32"), kExperts, 32),
                     x = f.input(cols), w = f.matrix(format, results, cols, kExperts),
                     up = gated ? f.matrix(format, results, cols, kExperts) : Weight{};
        return [=](PlanBuilder& p) {
            const auto to = p.route(p.embed(to_route), router, kUsed, Gating::softmax, true);
            const Slot y = p.slot(results * kUsed);
            if (gated)
                p.append(ExpertGated{p.embed(x), w, up, to.ids, y, kUsed});
            else
                p.append(ExpertLinear{p.embed(x), w, to.ids, y, kUsed, false, {}});
            return y;
        };
    };
    return c;
}

// The chosen experts' results, weighted and summed, of rows of their own.
inline OpCase long_sum_case(const Format& format, uint32_t rows) {
    OpCase c;
    c.name = fmt::format("expert_linear {} summed over {} columns rows {}", format.name, kLongRow, rows);
    c.rows = rows;
    c.declare = [=, &format](Fixture& f) -> OpCase::Build {
        constexpr uint32_t kExperts = 3, kUsed = 2, kRows = 5;
        const Weight to_route = f.input(32), router = f.matrix(*find_format("F32"), kExperts, 32),
                     x = f.input(kUsed * kLongRow), y0 = f.input(kRows),
                     w = f.matrix(format, kRows, kLongRow, kExperts);
        return [=](PlanBuilder& p) {
            const auto to = p.route(p.embed(to_route), router, kUsed, Gating::softmax, true);
            const Slot y = p.embed(y0);
            p.append(ExpertLinear{p.embed(x), w, to.ids, y, kUsed, true, to.scales});
            return y;
        };
    };
    return c;
}

inline void add_format_kernels(std::vector<OpCase>& cases, const Format& format) {
    const uint32_t block = std::max(64u, 2 * format.block);
    cases.push_back(route_case(format, 1));
    for (const uint32_t rows : {1u, 3u, 20u}) cases.push_back(head_linear_case(format, 2, 9, 256, rows, 4));
    for (const uint32_t rows : {2u, 3u, 7u})
        cases.push_back(gated_case(format, Act::silu, true, rows, 9, 256));
    cases.push_back(linear_case(format, 3, 9, block, {true, true, true}));
    cases.push_back(linear_case(format, 1, 19, kLongRow, {true, true, true}));
    cases.push_back(gated_case(format, Act::silu, true, 1, 9, kLongRow));
    cases.push_back(long_expert_case(format, 1, kLongRow, true));
    cases.push_back(long_expert_case(format, 2, kLongRow, true));
    cases.push_back(long_expert_case(format, 2, kLongRow, false));
    cases.push_back(long_sum_case(format, 1));
    cases.push_back(long_expert_case(format, 2, kLongestRow, true));
    cases.push_back(long_expert_case(format, 2, kLongestRow, false));
    // Tiles of 128 tokens and 128 or 64 rows, on a device of four multiprocessors.
    for (const uint32_t results : {400u, 200u})
        cases.push_back(linear_case(format, 130, results, block, {true, true, true}));
    if (format.block > 1) return;
    cases.push_back(linear_case(format, 20, 70, 43, {true, true, true}));
    cases.push_back(linear_case(format, 3, 19, 1100, {true, true, true}));
    cases.push_back(gated_case(format, Act::silu, true, 20, 70, 256));
}

inline void add_cache_kernels(std::vector<OpCase>& cases, CacheType type) {
    AttentionFlags flags = {true, true, true, 0, 0.0f, type};
    for (const uint32_t dims : {64u, 128u, 256u, 512u})
        for (const uint32_t shared : {1u, 2u, 4u, 8u}) {
            if (shared > (dims > 256 ? 2 : dims > 128 ? 4 : 8)) continue;
            cases.push_back(attention_case({shared, 1, dims}, 1, 150, flags));
            cases.push_back(paged_case({shared, 1, dims}, 2, 3, 90, flags));
        }
    for (const uint32_t dims : {64u, 96u, 128u}) cases.push_back(attention_case({2, 1, dims}, 70, 90, flags));
    for (const uint32_t rank : {96u, 512u})
        for (const uint32_t heads : {4u, 8u, 16u}) {
            cases.push_back(latent_case({rank, 32, heads, type}, 1, 150));
            cases.push_back(entry_attention_case({4, 7, {heads, 1, rank}, type}, 90, true, 1, 150));
        }
    for (const uint32_t rank : {20u, 148u}) cases.push_back(latent_case({rank, 12, 3, type}, 2, 150));
    if (type == CacheType::q8_0) return;  // its heads are whole blocks
    for (const uint32_t dims : {20u, 201u, 300u})
        cases.push_back(attention_case({3, 1, dims}, 2, 150, flags));
    for (const uint32_t dims : {20u, 148u})
        cases.push_back(entry_attention_case({4, 7, {5, 1, dims}, type}, 90, true, 2, 150));
}

inline std::vector<OpCase> kernel_cases(std::span<const Format* const> formats) {
    std::vector<OpCase> cases;
    for (const Format* format : formats) add_format_kernels(cases, *format);
    for (const CacheType type : {CacheType::f16, CacheType::q8_0, CacheType::f32})
        add_cache_kernels(cases, type);
    return cases;
}

}  // namespace redline
