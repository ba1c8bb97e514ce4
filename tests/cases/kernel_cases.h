// Cases by which every kernel that a GPU's backend has for a format or a type of cache is launched: row
// classes, lengths of rows and sizes of heads that op_cases() has for some formats and types only.
#pragma once

#include "cases/op_cases.h"

#include <set>

namespace redline {

constexpr uint32_t kLongRow = 4352;      // more than a wave of 64 has units for, at two each
constexpr uint32_t kHandedRow = 11264;   // more than a block of 256 threads takes at four words each
constexpr uint32_t kLongestRow = 31744;  // more than a block has room for in int8

constexpr Act kActs[] = {Act::silu, Act::gelu_tanh, Act::swiglu_clamped};

// Each activation, of the same products; their results are summed.
inline OpCase activations_case(const Format& format, bool norm, uint32_t rows, uint64_t n, uint64_t k) {
    OpCase c;
    c.name = fmt::format("gated {} by each activation {}x{} rows {}{}", format.name, n, k, rows,
                         norm ? " norm" : "");
    c.rows = rows;
    c.declare = [=, &format](Fixture& f) -> OpCase::Build {
        const Weight x = f.input(k), gate = f.matrix(format, n, k), up = f.matrix(format, n, k),
                     y0 = f.input(n);
        const Norm fused = norm ? Norm{f.vector(k), 1e-5f} : Norm{};
        return [=](PlanBuilder& p) {
            const Slot in = p.embed(x), y = p.embed(y0);
            for (const Act act : kActs) p.append(each::add(y, p.gated(in, gate, up, act, fused), 1.0f));
            return y;
        };
    };
    return c;
}

// Products with the chosen experts, with biases, of rows that they share; gated by each activation.
inline OpCase long_expert_case(const Format& format, uint32_t rows, uint32_t cols, bool gated) {
    OpCase c;
    c.name = fmt::format("expert_{} {} of {} columns rows {}", gated ? "gated" : "linear", format.name, cols,
                         rows);
    c.rows = rows;
    c.declare = [=, &format](Fixture& f) -> OpCase::Build {
        constexpr uint32_t kExperts = 3, kUsed = 2;
        // With few results, products of two would say little about their mean error.
        const uint32_t results = cols == kLongestRow ? 5 : rows > 8 ? 140 : 24;
        const Weight to_route = f.input(32), router = f.matrix(*find_format("F32"), kExperts, 32),
                     x = f.input(cols), w = f.matrix(format, results, cols, kExperts),
                     bias = f.vector(results * kExperts);
        const Weight up = gated ? f.matrix(format, results, cols, kExperts) : Weight{},
                     up_bias = gated ? f.vector(results * kExperts) : Weight{},
                     y0 = gated ? f.input(results * kUsed) : Weight{};
        return [=](PlanBuilder& p) {
            const auto to = p.route(p.embed(to_route), router, kUsed, Gating::softmax, true);
            const Slot in = p.embed(x);
            if (!gated) {
                const Slot y = p.slot(results * kUsed);
                p.append(products::by_expert(in, w, y, {to.ids, kUsed}, bias));
                return y;
            }
            const Slot sum = p.embed(y0);
            for (const Act act : kActs) {
                const Slot y = p.slot(results * kUsed);
                p.append(products::gated_by_expert(in, w, up, y, {to.ids, kUsed}, act, bias, up_bias));
                p.append(each::add(sum, y, 1.0f));
            }
            return sum;
        };
    };
    return c;
}

// Rows that a launch leaves in int8 for the next: more than a block's threads take at once, and one normed.
inline OpCase long_layer_case(const Format& format) {
    OpCase c;
    c.name = fmt::format("layer {} of {} columns", format.name, kHandedRow);
    c.each_op = true;
    c.declare = [=, &format](Fixture& f) -> OpCase::Build {
        const uint32_t hidden = std::max(64u, format.block);
        const Weight x0 = f.input(kHandedRow), h0 = f.input(hidden), gain = f.vector(kHandedRow),
                     hidden_gain = f.vector(hidden), router = f.matrix(*find_format("F32"), 1, kHandedRow);
        const Weight out = f.matrix(format, kHandedRow, hidden), gate = f.matrix(format, hidden, kHandedRow),
                     up = f.matrix(format, hidden, kHandedRow), last = f.matrix(format, 9, hidden),
                     q = f.matrix(format, 19, kHandedRow);
        return [=](PlanBuilder& p) {
            const Slot x = p.embed(x0), h = p.embed(h0);
            const Norm norm = {gain, 1e-5f};
            p.append(products::linear(h, out, x, {}, {}, true));
            const Slot gated = p.gated(x, gate, up, Act::silu, norm);
            const Slot y = p.linear(gated, last, {hidden_gain, 1e-5f});
            p.append(products::linear(h, out, x, {}, {}, true));
            p.expert_block(x, norm, {router, 1}, {gate, up, out});
            p.linear(x, q, norm);
            return y;
        };
    };
    return c;
}

// Rows of a step of few that products hand on as halfs, with a norm or without: such as halfs hold, and those
// of which they would lose bits.
inline OpCase handed_rows_case(const Format& format, bool norm, uint32_t rows, float scale) {
    OpCase c;
    c.name = fmt::format("handed rows {}{} rows {} times {}", format.name, norm ? " norm" : "", rows, scale);
    c.rows = rows;
    c.each_op = true;
    c.declare = [=, &format](Fixture& f) -> OpCase::Build {
        constexpr uint32_t kWidth = 768, kHidden = 1280;
        const Weight x0 = f.input(kWidth), h0 = f.input(kHidden), gain = f.vector(kWidth);
        const Weight out = f.matrix(format, kWidth, kHidden), gate = f.matrix(format, kHidden, kWidth),
                     up = f.matrix(format, kHidden, kWidth), down = f.matrix(format, kWidth, kHidden),
                     q = f.matrix(format, 19, kWidth), k = f.matrix(format, 40, kWidth),
                     bias = f.vector(kWidth);
        return [=](PlanBuilder& p) {
            const Slot x = p.embed(x0, scale), h = p.embed(h0, scale);
            const Norm by = norm ? Norm{gain, 1e-5f} : Norm();
            p.append(products::linear(h, out, x, {}, bias, true));
            const Slot gated = p.gated(x, gate, up, Act::silu, by);
            p.append(products::linear(gated, down, x, {}, {}, true));
            return p.group(x, PlanBuilder::Matrix{q}, PlanBuilder::Matrix{k}, by)[0];
        };
    };
    return c;
}

// Every way of choosing experts, of one row of logits.
inline OpCase route_kinds_case(const Format& format) {
    OpCase c;
    c.name = fmt::format("route {} in every way", format.name);
    c.declare = [=, &format](Fixture& f) -> OpCase::Build {
        constexpr uint32_t kExperts = 70, kCols = 1120, kUsed = 9;
        const Weight x = f.input(kCols), w = f.matrix(format, kExperts, kCols), bias = f.vector(kExperts),
                     table = f.vector({3.0f, 69.0f, 0.0f, 17.0f, 8.0f, 33.0f, 34.0f, 5.0f, 60.0f});
        return [=](PlanBuilder& p) {
            // Small logits: what rounding may move them by enters an exponent.
            const Slot in = p.embed(x, 0x1p-8f);
            const Slot y = p.route(in, w, kUsed, Gating::softmax, true).scales;
            const auto add = [&](const PlanBuilder::Routing& way) {
                p.append(each::add(y, way.scales, 1.0f));
            };
            add(p.route(in, w, kUsed, Gating::sigmoid, false, 1.5f, bias, BiasOf::choice, {10, 5, true}));
            add(p.route(in, w, kUsed, Gating::sigmoid, true, 1.0f, bias, BiasOf::choice, {10, 5, false}));
            add(p.route(in, w, kUsed, Gating::softmax_of_selected, false, 1.0f, bias, BiasOf::logits));
            add(p.route(in, w, kUsed, Gating::sparse_mixer, false));
            add(p.route(in, w, kUsed, Gating::sqrt_softplus, true, 1.0f, {}, BiasOf::choice, {}, table));
            return y;
        };
    };
    return c;
}

// The router's format of a block of experts: quantized formats get F32, F16 or BF16, since one row is normed
// by its router only beside such experts.
inline const Format& router_format(const Format& format) {
    if (format.block == 1) return format;
    return *find_format(format.name == "Q8_0" ? "F16" : format.name == "Q4_0" ? "BF16" : "F32");
}

// A block of experts whose row no launch before leaves in int8, so that each norms it by itself.
inline OpCase long_block_case(const Format& format) {
    OpCase c;
    c.name = fmt::format("experts block {} of {} columns", format.name, kLongRow);
    c.each_op = true;
    c.declare = [=, &format](Fixture& f) -> OpCase::Build {
        constexpr uint64_t kExperts = 3, kHidden = 256;
        const Weight x = f.input(kLongRow), gain = f.vector(kLongRow),
                     router = f.matrix(router_format(format), kExperts, kLongRow);
        const Weight gate = f.matrix(format, kHidden, kLongRow, kExperts),
                     up = f.matrix(format, kHidden, kLongRow, kExperts),
                     down = f.matrix(format, kLongRow, kHidden, kExperts);
        return [=](PlanBuilder& p) {
            const Slot y = p.embed(x);
            p.expert_block(y, {gain, 1e-5f}, {router, 2}, {gate, up, down});
            return y;
        };
    };
    return c;
}

// The chosen experts' results, weighted and summed, from separate rows or one shared row.
inline OpCase long_sum_case(const Format& format, uint32_t rows, uint32_t cols, bool per_expert = true) {
    OpCase c;
    c.name = fmt::format("expert_linear {} summed over {} columns{} rows {}", format.name, cols,
                         per_expert ? "" : " of one row", rows);
    c.rows = rows;
    c.declare = [=, &format](Fixture& f) -> OpCase::Build {
        constexpr uint32_t kExperts = 6, kUsed = 5, kRows = 5;  // more than are on their way at once
        const Weight to_route = f.input(32), router = f.matrix(*find_format("F32"), kExperts, 32),
                     x = f.input((per_expert ? kUsed : 1) * cols), y0 = f.input(kRows),
                     w = f.matrix(format, kRows, cols, kExperts), bias = f.vector(kRows * kExperts);
        return [=](PlanBuilder& p) {
            const auto to = p.route(p.embed(to_route), router, kUsed, Gating::softmax, true);
            const Slot y = p.embed(y0);
            const ChosenExperts chosen = {to.ids, kUsed, per_expert, to.scales};
            p.append(products::by_expert(p.embed(x), w, y, chosen, bias));
            return y;
        };
    };
    return c;
}

// Experts beside a shared one of the same format or another: each way of choosing them, results of long rows,
// and long rows that the block itself quantizes, then gets from the block before.
inline void add_shared_kernels(std::vector<OpCase>& cases, const Format& format, std::string_view beside) {
    cases.push_back(experts_ways_case(format, {10, 3, 256, 256}, beside));
    cases.push_back(shared_expert_case(format, {3, 2, 256, kLongRow}, {kLongRow, beside}, 1));
    SharedShape shape = {256, beside};
    shape.layers = 2;
    shape.handed = false;
    cases.push_back(shared_expert_case(format, {3, 2, kLongRow, 256}, shape, 1));
}

// A product of normed rows with blocks of zeros, and blocks in which one element is huge and the others are
// lost beside it. What those say is seen in results of rows of which the others are zeros, too.
inline OpCase uneven_blocks_case(const Format& format, uint32_t rows, float huge) {
    OpCase c;
    const uint64_t k = std::max(256u, 2 * format.block);
    c.name = fmt::format("linear {} 70x{} rows {} norm of blocks of zeros, and of elements times {}",
                         format.name, k, rows, huge);
    c.rows = rows;
    c.declare = [=, &format](Fixture& f) -> OpCase::Build {
        std::vector<float> gains(k, 0.0f);
        for (uint64_t i = 0; i < k; ++i)
            if (i / 32 % 3 > 0)
                gains[i] = huge == 0.0f ? 1.0f : i % 32 == 7 ? huge : i % 64 < 32 ? 0.0f : 1.0f;
        const Weight x = f.input(k), w = f.matrix(format, 70, k), gain = f.vector(gains), bias = f.vector(70);
        return [=](PlanBuilder& p) { return p.linear(p.embed(x), w, {gain, 1e-5f}, bias); };
    };
    return c;
}

// The same with tiles that have room for few places of an expert.
inline OpCase in_narrow_tiles(OpCase c) {
    c.variant["tile_tokens"] = 32;
    c.name += ", narrow";
    return c;
}

// Products of many rows in int8, of formats whose scales are of 32 elements: tiles of each size, shared
// columns, and rows, tokens and columns that are not whole tiles, on a device of four multiprocessors.
inline void add_byte_kernels(std::vector<OpCase>& all, const Format& format) {
    const std::set<std::string_view> by_halves = {"Q2_K",   "Q3_K",  "Q6_K", "IQ1_M",
                                                  "IQ2_XS", "IQ2_S", "NVFP4"};
    if (format.block == 1 || by_halves.contains(format.name)) return;
    const uint32_t block = std::max(64u, 2 * format.block);
    std::vector<OpCase> cases;
    for (const uint32_t results : {400u, 200u, 71u})
        cases.push_back(linear_case(format, 130, results, 2 * block, {true, true, true}));
    for (const uint32_t results : {70u, 60u})
        cases.push_back(linear_case(format, 66, results, 768, {true, true, true}));
    if (format.block == 32) cases.push_back(linear_case(format, 67, 70, 288, {true, true, true}));
    cases.push_back(activations_case(format, true, 130, 140, block));
    cases.push_back(gated_case(format, Act::silu, true, 66, 60, 768));
    cases.push_back(group_case(format, format, 131));
    for (const bool gated : {true, false}) {
        cases.push_back(long_expert_case(format, 120, block, gated));
        cases.push_back(in_narrow_tiles(long_expert_case(format, 50, 2 * block, gated)));
    }
    cases.push_back(long_sum_case(format, 90, block));
    for (const float huge : {0.0f, 1e6f, 1e25f}) cases.push_back(uneven_blocks_case(format, 66, huge));
    cases.push_back(linear_case(format, 66, 70, block, {}));
    cases.back().levels = true;
    for (OpCase& c : cases) {
        c.variant["int8"] = 1;
        c.name += ", int8";
        all.push_back(std::move(c));
    }
}

inline void add_format_kernels(std::vector<OpCase>& cases, const Format& format) {
    const uint32_t block = std::max(64u, 2 * format.block);
    for (const uint32_t rows : {1u, 8u}) cases.push_back(route_case(format, rows));
    cases.push_back(embed_case(format, 2, 8448));  // more than a block takes at 32 each
    for (const uint32_t rows : {1u, 3u, 20u}) cases.push_back(head_linear_case(format, 2, 9, 256, rows, 4));
    for (const uint32_t rows : {2u, 4u, 8u}) {
        // More units than a wave of 64 processes at once.
        cases.push_back(activations_case(format, true, rows, 9, rows == 2 ? kLongRow : 2304));
        cases.push_back(linear_case(format, rows, 9, block, {true, true, true}));
    }
    cases.push_back(activations_case(format, true, 130, 140, block));
    cases.push_back(linear_case(format, 1, 19, kLongRow, {true, true, true}));
    for (const bool norm : {false, true}) cases.push_back(activations_case(format, norm, 1, 9, kLongRow));
    for (const uint32_t rows : {1u, 2u}) {
        cases.push_back(long_expert_case(format, rows, kLongRow, true));
        cases.push_back(long_sum_case(format, rows, kLongRow));
    }
    cases.push_back(long_block_case(format));
    cases.push_back(long_layer_case(format));
    for (const bool norm : {true, false}) {
        cases.push_back(handed_rows_case(format, norm, norm ? 2 : 16, 1.0f));
        for (const float scale : {0x1p-14f, 0x1p+13f})
            cases.push_back(handed_rows_case(format, norm, scale < 1.0f ? 9 : 3, scale));
    }
    if (format.block > 1) {
        for (const bool per_expert : {true, false})
            cases.push_back(long_sum_case(format, 2, 8192, per_expert));
        cases.push_back(experts_ways_case(format, {10, 3, 256, 256}));
        add_shared_kernels(cases, format, format.name);
        if (format.name != "Q8_0") add_shared_kernels(cases, format, "Q8_0");
    }
    cases.push_back(linear_case(format, 20, 70, block, {true, true, true}));
    // Tiles of few tokens: of each size, with rows and groups of units that are not whole.
    for (const uint32_t rows : {7u, 12u, 50u}) {
        cases.push_back(linear_case(format, rows, 70, 3 * block, {true, true, true}));
        cases.push_back(gated_case(format, Act::silu, true, rows, 70, 3 * block));
    }
    cases.push_back(long_expert_case(format, 2, kLongRow, false));
    for (const bool gated : {true, false}) {
        cases.push_back(long_expert_case(format, 2, kLongestRow, gated));
        cases.push_back(long_expert_case(format, 120, block, gated));
        cases.push_back(in_narrow_tiles(long_expert_case(format, 50, 2 * block, gated)));
    }
    // Tiles of 128 tokens and 128 or 64 rows, on a device of four multiprocessors.
    for (const uint32_t results : {400u, 200u})
        cases.push_back(linear_case(format, 130, results, 2 * block, {true, true, true}));
    // There, two and three blocks that share a tile's columns.
    for (const uint32_t results : {70u, 60u})
        cases.push_back(linear_case(format, 66, results, 768, {true, true, true}));
    cases.push_back(gated_case(format, Act::silu, true, 66, 60, 768));
    if (format.block > 1) return;
    for (const uint32_t rows : {1u, 2u, 4u, 8u, 20u}) {
        cases.push_back(linear_case(format, rows, 71, 43, {true, true, true}));
        cases.push_back(head_linear_case(format, 2, 9, 43, rows, 4));
    }
    cases.push_back(linear_case(format, 3, 19, 1100, {true, true, true}));
    cases.push_back(route_kinds_case(format));
    // More experts than a block has threads.
    cases.push_back(many_rows_case(*find_format("Q8_0"), {300, 64, 32, 32, 299, format.name}, 1));
    for (const bool gated : {true, false}) cases.push_back(long_expert_case(format, 2, 43, gated));
    cases.push_back(long_sum_case(format, 2, 43));
    cases.push_back(gated_case(format, Act::silu, true, 20, 70, 256));
}

// All that an attention of one row does with all queries of a key at a time: many splits or one, a ring of
// keys, handing its results on, and rows of several sequences.
inline void add_few_kernels(std::vector<OpCase>& all, HeadShape s, CacheTypes type) {
    std::vector<OpCase> cases;
    const Format& q8 = *find_format("Q8_0");
    const AttentionFlags plain = {false, false, false, 0, 20.0f, type, true};
    // A norm of so long a mean says little behind rounded values.
    const bool norm = type.values != CacheType::q8_0 || s.head_dim < 512;
    cases.push_back(attention_case(s, 1, 150, {true, true, true, 0, 0.0f, type}));
    cases.push_back(attention_case(s, 1, 330, {true, true, true, 100, 0.0f, type, true, true}));
    cases.push_back(attention_case(s, 2, 150, plain));
    cases.push_back(s.head_dim % 32 == 0 ? attention_product_case(s, q8, 511, norm, plain)
                                         : attention_case(s, 1, 511, plain));
    cases.push_back(paged_case(s, 2, 3, 90, {true, true, true, 0, 0.0f, type}));
    cases.push_back(paged_case(s, 2, 3, 230, {false, false, false, 100, 20.0f, type, true, true}));
    for (OpCase& c : cases) {
        c.variant["queries"] = s.heads / s.kv_heads;
        all.push_back(std::move(c));
    }
}

// Kernels of keys and values, which are not latents.
inline void add_head_kernels(std::vector<OpCase>& cases, CacheTypes type) {
    AttentionFlags flags = {true, true, true, 0, 0.0f, type};
    for (const uint32_t dims : {64u, 128u, 256u, 512u})
        for (const uint32_t shared : {1u, 2u, 4u, 8u}) {
            if (shared > (dims > 256 ? 2 : dims > 128 ? 4 : 8)) continue;
            add_few_kernels(cases, {shared, 1, dims}, type);
        }
    // On matrix units keys are split from 512 on.
    flags.softcap = 20.0f;
    const bool exact = type.keys == CacheType::f32;
    const uint32_t far = exact ? 90 : 460;
    for (const uint32_t dims : {64u, 96u, 128u, 256u, 512u})
        cases.push_back(attention_case({2, 1, dims}, 70, far, flags));
    if (!exact) {
        cases.push_back(attention_case({2, 1, 96}, 70, 230, {false, false, false, 100, 0.0f, type}));
        cases.push_back(paged_case({2, 1, 96}, 2, 70, 190, {false, false, false, 0, 0.0f, type}));
    }
    for (const uint32_t dims : {64u, 96u, 256u, 512u}) {
        // Few enough heads to leave work-groups for splitting the keys.
        const uint32_t heads = dims > 256 ? 2 : dims > 128 ? 3 : 9;
        cases.push_back(block_attention_case({16, 40, {heads, 1, dims}, type}, 1, 200));
        cases.push_back(block_attention_case({16, 40, {heads, 1, dims}, type}, 1, 700));
        cases.push_back(block_attention_case({16, 9, {3, 1, dims}, type, 2}, 3, 160));
    }
}

// Heads that are no whole eights, which quantized types do not have.
inline void add_odd_heads(std::vector<OpCase>& cases, CacheTypes type) {
    for (const uint32_t dims : {20u, 100u, 201u, 300u}) add_few_kernels(cases, {3, 1, dims}, type);
    cases.push_back(block_attention_case({16, 20, {3, 1, 500}, type}, 2, 300));
    cases.push_back(block_attention_case({5, 4, {3, 1, 501}, type}, 1, 1));
    cases.push_back(block_attention_case({5, 4, {4, 2, 20}, type, 2}, 3, 30));
}

inline void add_cache_kernels(std::vector<OpCase>& cases, CacheType type) {
    add_head_kernels(cases, type);
    for (const uint32_t rank : {96u, 512u})
        for (const uint32_t heads : {4u, 8u, 16u}) {
            cases.push_back(latent_case({rank, 32, heads, type}, 1, 150));
            cases.push_back(latent_case({rank, 32, heads, type, 2}, 3, 60));
            if (rank < 512) cases.push_back(latent_case({rank, 32, heads, type}, 1, 520));
            cases.push_back(entry_attention_case({4, 7, {heads, 1, rank}, type}, 90, true, 1, 150));
            cases.push_back(entry_attention_case({4, 0, {heads, 1, rank}, type, 2}, 130, false, 3, 60));
            cases.push_back(entry_attention_case({1, 0, {heads, 1, rank}, type}, 20, false, 1, 120));
            cases.push_back(entry_attention_case({1, 0, {heads, 1, rank}, type}, 20, true, 1, 900));
        }
    cases.push_back(block_scores_case({5, 0, {21, 1, 96}, type, 2}, 3, 340));
    cases.push_back(block_scores_case({5, 0, {5, 1, 64}, type}, 2, 340));
    for (const uint32_t heads : {5u, 21u})
        cases.push_back(weighted_scores_case({4, 0, {heads, 1, 96}, type}, 2, 340));
    // Multiples of eight, but not of a tile.
    for (const uint32_t heads : {4u, 8u, 16u}) {
        cases.push_back(latent_case({200, 24, heads, type}, 1, 520));
        cases.push_back(latent_case({200, 24, heads, type, 2}, 3, 60));
    }
    for (const uint32_t rank : {20u, 148u}) {
        cases.push_back(latent_case({rank, 12, 3, type}, 2, 150));
        cases.push_back(latent_case({rank, 12, 3, type, 2}, 3, 60));
        cases.push_back(latent_case({rank, 12, 3, type}, 1, 900));
    }
    if (type == CacheType::q8_0) return;  // its heads are whole blocks
    add_odd_heads(cases, type);
    cases.push_back(block_scores_case({5, 0, {5, 1, 20}, type, 2}, 3, 340));
    cases.push_back(block_scores_case({5, 0, {21, 1, 20}, type}, 2, 340));
    for (const uint32_t dims : {20u, 148u}) {
        cases.push_back(entry_attention_case({4, 7, {5, 1, dims}, type, 2}, 150, true, 2, 150));
        cases.push_back(entry_attention_case({1, 0, {5, 1, dims}, type}, 20, false, 1, 120));
    }
}

// The delta rule by as many lanes as keys and heads ask for, of rows that are and are not whole fours.
inline void add_delta_kernels(std::vector<OpCase>& cases) {
    for (const uint32_t rows : {1u, 23u}) {
        for (const uint32_t values : {39u, 33u})  // a wave has several of the last ones, or one
            cases.push_back(delta_case({4, 2, 70, values, false}, rows, 3, true));
        cases.push_back(delta_case({8, 2, 72, 36, true}, rows, 3, true));
        cases.push_back(delta_case({2, 1, 200, 72, true}, rows, 3, true));
        cases.push_back(delta_case({2, 1, 250, 71, true}, rows, 3, true));
    }
}

inline std::vector<OpCase> kernel_cases(std::span<const Format* const> formats) {
    std::vector<OpCase> cases;
    for (const Format* format : formats) {
        add_format_kernels(cases, *format);
        add_byte_kernels(cases, *format);
    }
    for (const auto& [first, last] : kMixes) {
        cases.push_back(mixed_group_case(*find_format(first), *find_format(last), 1, kLongRow));
        cases.push_back(layer_case(*find_format(first), 1, find_format(last)));
    }
    for (const auto& [chosen, shared] : kBeside) add_shared_kernels(cases, *find_format(chosen), shared);
    for (const CacheType type : {CacheType::f16, CacheType::q8_0, CacheType::f32})
        add_cache_kernels(cases, type);
    // Rounded keys of 512 elements would leave bounds that say little.
    add_head_kernels(cases, {CacheType::f16, CacheType::q8_0});
    add_odd_heads(cases, {CacheType::bf16, CacheType::f32});
    add_delta_kernels(cases);
    return cases;
}

}  // namespace redline
