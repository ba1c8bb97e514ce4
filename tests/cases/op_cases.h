// The op cases: op_cases() is what every backend is held to, each op, format, row class and fused flag, at
// odd sizes too.
#pragma once

#include "cases/block_cases.h"
#include "cases/each_cases.h"
#include "cases/entry_cases.h"
#include "cases/expert_cases.h"
#include "cases/latent_cases.h"
#include "cases/recurrent_cases.h"
#include "measure/op_case.h"

namespace redline {

struct LinearFlags {
    bool norm = false, bias = false, accumulate = false;
};

inline OpCase linear_case(const Format& format, uint32_t rows, uint64_t n, uint64_t k, LinearFlags flags) {
    OpCase c;
    c.name = fmt::format("linear {} {}x{} rows {}{}{}{}", format.name, n, k, rows, flags.norm ? " norm" : "",
                         flags.bias ? " bias" : "", flags.accumulate ? " accumulate" : "");
    c.rows = rows;
    c.declare = [=, &format](Fixture& f) -> OpCase::Build {
        const Weight x = f.input(k), w = f.matrix(format, n, k);
        const Weight y0 = flags.accumulate ? f.input(n) : Weight{};
        const Norm norm = flags.norm ? Norm{f.vector(k), 1e-5f} : Norm{};
        const Weight bias = flags.bias ? f.vector(n) : Weight{};
        return [=](PlanBuilder& p) {
            const Slot in = p.embed(x);
            const Slot y = flags.accumulate ? p.embed(y0) : p.slot(uint32_t(n));
            p.append(products::linear(in, w, y, norm, bias, flags.accumulate));
            return y;
        };
    };
    return c;
}

// The first product of an FFN without gates, and with `back` the second, too.
inline OpCase plain_ffn_case(const Format& format, uint32_t rows, uint64_t n, uint64_t k, Function function,
                             bool back) {
    OpCase c;
    c.name = fmt::format("linear {} {}x{} {}{} rows {}", format.name, n, k, function_name(function),
                         back ? " and back" : "", rows);
    c.rows = rows;
    c.declare = [=, &format](Fixture& f) -> OpCase::Build {
        const Weight x = f.input(k), up = f.matrix(format, n, k), down = f.matrix(format, k, n);
        const Norm norm = {f.vector(k), 1e-5f};
        const Weight bias = f.vector(n);
        return [=](PlanBuilder& p) {
            const Slot hidden = p.linear(p.embed(x), up, norm, bias, function);
            return back ? p.linear(hidden, down) : hidden;
        };
    };
    return c;
}

inline OpCase group_case(const Format& first, const Format& second, uint32_t rows) {
    OpCase c;
    c.name = fmt::format("linear_group {} and {} rows {}", first.name, second.name, rows);
    c.rows = rows;
    c.declare = [=, &first, &second](Fixture& f) -> OpCase::Build {
        const Weight x = f.input(256), gain = f.vector(256);
        const Weight a = f.matrix(first, 40, 256), b = f.matrix(second, 24, 256),
                     v = f.matrix(first, 24, 256);
        const Weight bias = f.vector(24);
        return [=](PlanBuilder& p) {
            const auto parts = p.group(p.embed(x), {{{a}, {b, bias}, {v}}}, {gain, 1e-6f});
            // Compared in one slot: the second part's columns are those of a mixed format.
            p.append(each::add(parts[1], parts[2], 1.0f));
            return parts[1];
        };
    };
    return c;
}

inline OpCase gated_case(const Format& format, Act act, bool norm, uint32_t rows, uint64_t n, uint64_t k) {
    OpCase c;
    const char* name = act == Act::silu ? "silu" : act == Act::gelu_tanh ? "gelu" : "swiglu_clamped";
    c.name = fmt::format("gated {} {} {}x{} rows {}{}", format.name, name, n, k, rows, norm ? " norm" : "");
    c.rows = rows;
    c.declare = [=, &format](Fixture& f) -> OpCase::Build {
        const Weight x = f.input(k), gate = f.matrix(format, n, k), up = f.matrix(format, n, k);
        const Norm fused = norm ? Norm{f.vector(k), 1e-5f} : Norm{};
        return [=](PlanBuilder& p) { return p.gated(p.embed(x), gate, up, act, fused); };
    };
    return c;
}

// A table of the format, and a router of it.
inline OpCase embed_case(const Format& format, uint32_t rows, uint32_t cols = 256) {
    OpCase c;
    c.name = fmt::format("embed {} of {} columns rows {}", format.name, cols, rows);
    c.rows = rows;
    c.declare = [=, &format](Fixture& f) -> OpCase::Build {
        const Weight table = f.matrix(format, rows, cols);
        return [=](PlanBuilder& p) { return p.embed(table, 0.5f); };
    };
    return c;
}

inline OpCase route_case(const Format& format, uint32_t rows) {
    OpCase c;
    c.name = fmt::format("route {} rows {}", format.name, rows);
    c.rows = rows;
    c.declare = [=, &format](Fixture& f) -> OpCase::Build {
        const Weight x = f.input(256), router = f.matrix(format, 12, 256);
        return [=](PlanBuilder& p) {
            // Small logits: what rounding may move them by enters an exponent.
            return p.route(p.embed(x, 0x1p-8f), router, 4, Gating::softmax, true).scales;
        };
    };
    return c;
}

// Formats that usual mixes have for queries and keys, and for values.
constexpr std::pair<const char*, const char*> kMixes[] = {
    {"Q2_K", "Q3_K"}, {"Q2_K", "Q4_K"}, {"Q3_K", "Q4_K"},   {"Q3_K", "Q5_K"},
    {"Q4_K", "Q6_K"}, {"Q5_K", "Q6_K"}, {"IQ4_NL", "Q5_K"}, {"IQ4_XS", "Q5_K"}};

inline Slot side_by_side(PlanBuilder& p, std::initializer_list<Slot> parts) {
    uint32_t all = 0, first = 0;
    for (const Slot part : parts) all += p.plan().slot(part).width;
    const Slot y = p.slot(all);
    for (const Slot part : parts) {
        const uint32_t width = p.plan().slot(part).width;
        p.append(CopyParts{part, y, 1, width, 0, width, first, width});
        first += width;
    }
    return y;
}

// The products of a gated delta rule: two of them have few rows, and the last may be of another format.
inline OpCase four_group_case(const Format& first, const Format& last, uint32_t rows) {
    OpCase c;
    c.name = fmt::format("linear_group {} three times and {} rows {}", first.name, last.name, rows);
    c.rows = rows;
    c.declare = [=, &first, &last](Fixture& f) -> OpCase::Build {
        constexpr uint32_t kCols = 512, kRows[] = {176, 16, 16, 304};
        const Weight x = f.input(kCols), gain = f.vector(kCols), bias = f.vector(kRows[3]);
        std::array<Weight, 4> w;
        for (size_t i = 0; i < w.size(); ++i) w[i] = f.matrix(i < 3 ? first : last, kRows[i], kCols);
        return [=](PlanBuilder& p) {
            const Slot in = p.embed(x);
            std::array<Product::Part, 4> parts;
            for (size_t i = 0; i < w.size(); ++i)
                parts[i] = {w[i], i == 3 ? bias : Weight(), p.slot(kRows[i])};
            p.append(products::group(in, parts, {gain, 1e-6f}));
            return side_by_side(p, {parts[0].y, parts[1].y, parts[2].y, parts[3].y});
        };
    };
    return c;
}

// The products of an attention in a mix of formats: the last differs.
inline OpCase mixed_group_case(const Format& first, const Format& last, uint32_t rows, uint32_t cols = 512) {
    OpCase c;
    c.name =
        fmt::format("linear_group {} twice and {} of {} columns rows {}", first.name, last.name, cols, rows);
    c.rows = rows;
    c.declare = [=, &first, &last](Fixture& f) -> OpCase::Build {
        const Weight x = f.input(cols), gain = f.vector(cols), bias = f.vector(48);
        const Weight a = f.matrix(first, 48, cols), b = f.matrix(first, 48, cols),
                     v = f.matrix(last, 48, cols);
        return [=](PlanBuilder& p) {
            const auto parts = p.group(p.embed(x), {{{a}, {b}, {v, bias}}}, {gain, 1e-6f});
            p.append(each::add(parts[2], parts[0], 1.0f));
            p.append(each::add(parts[2], parts[1], 1.0f));
            return parts[2];
        };
    };
    return c;
}

// Consecutive products as in a layer: backends may pass activations between them in an internal form. The
// last matrix may have another format.
inline OpCase layer_case(const Format& format, uint32_t rows, const Format* other = nullptr) {
    OpCase c;
    const Format& last = other ? *other : format;
    c.name = fmt::format("layer {}{}{} rows {}", format.name, other ? " and " : "", other ? other->name : "",
                         rows);
    c.each_op = true;
    c.rows = rows;
    c.declare = [=, &format, &last](Fixture& f) -> OpCase::Build {
        const Weight x0 = f.input(256), h0 = f.input(512), gain = f.vector(256), next_gain = f.vector(256);
        const Weight out = f.matrix(format, 256, 512), gate = f.matrix(format, 512, 256),
                     up = f.matrix(format, 512, 256);
        const Weight down = f.matrix(format, 256, 512), bias = f.vector(256), q = f.matrix(format, 48, 256),
                     k = f.matrix(format, 48, 256), v = f.matrix(last, 48, 256);
        return [=](PlanBuilder& p) {
            const Slot x = p.embed(x0);
            p.append(products::linear(p.embed(h0), out, x, {}, {}, true));
            const Slot h = p.gated(x, gate, up, Act::silu, {gain, 1e-5f});
            p.append(products::linear(h, down, x, {}, bias, true));
            const auto parts = p.group(x, {{{q}, {k}, {v}}}, {next_gain, 1e-5f});
            p.append(each::add(parts[1], parts[0], 1.0f));
            p.append(each::add(parts[1], parts[2], 1.0f));
            return parts[1];
        };
    };
    return c;
}

// Two products, whose formats differ likewise.
inline OpCase mixed_pair_case(const Format& first, const Format& last, uint32_t rows) {
    OpCase c;
    c.name = fmt::format("linear_group of two, {} and {} rows {}", first.name, last.name, rows);
    c.rows = rows;
    c.declare = [=, &first, &last](Fixture& f) -> OpCase::Build {
        const Weight x = f.input(512), gain = f.vector(512), bias = f.vector(48);
        const Weight a = f.matrix(first, 48, 512), b = f.matrix(last, 48, 512);
        return [=](PlanBuilder& p) {
            const auto parts = p.group(p.embed(x), {a}, {b, bias}, {gain, 1e-6f});
            p.append(each::add(parts[1], parts[0], 1.0f));
            return parts[1];
        };
    };
    return c;
}

// Two groups of two behind a product, as a layer with a delta rule has them: the first may take its row in
// int8, and the second is of another format.
inline OpCase pairs_case(const Format& format, const Format& other, uint32_t rows) {
    OpCase c;
    c.name = fmt::format("linear_group twice two {} and {} rows {}", format.name, other.name, rows);
    c.each_op = true;
    c.rows = rows;
    c.declare = [=, &format, &other](Fixture& f) -> OpCase::Build {
        const Weight x0 = f.input(256), h0 = f.input(512), gain = f.vector(256);
        const Weight down = f.matrix(format, 256, 512), a = f.matrix(format, 72, 256),
                     b = f.matrix(format, 40, 256), bias = f.vector(40);
        const Weight steps = f.matrix(other, 6, 256), decays = f.matrix(other, 6, 256);
        return [=](PlanBuilder& p) {
            const Slot x = p.embed(x0);
            p.append(products::linear(p.embed(h0), down, x, {}, {}, true));
            const auto wide = p.group(x, {a}, {b, bias}, {gain, 1e-5f});
            const auto narrow = p.group(x, {steps}, {decays}, {gain, 1e-5f});
            p.append(each::add(narrow[1], narrow[0], 1.0f));
            return side_by_side(p, {wide[0], wide[1], narrow[1]});
        };
    };
    return c;
}

struct AttentionFlags {
    bool half_split = false, norms = false, sinks = false;
    uint32_t window = 0;
    float softcap = 0.0f;
    CacheTypes cache = {};
    bool partial = false;  // half of a head's elements are turned
    bool chunks = false;   // the window is one
    bool v_norm = false;
};

inline OpCase attention_case(HeadShape s, uint32_t rows, uint64_t position, AttentionFlags flags) {
    OpCase c;
    c.name = fmt::format("attention {} heads {} kv of {} rows {} at {}{}{}{}{}{}{}{} {}", s.heads, s.kv_heads,
                         s.head_dim, rows, position, flags.half_split ? " neox" : "",
                         flags.norms ? " norms" : "", flags.sinks ? " sinks" : "",
                         flags.chunks   ? " chunks"
                         : flags.window ? " window"
                                        : "",
                         flags.softcap > 0 ? " softcap" : "", flags.partial ? " partial" : "",
                         flags.v_norm ? " normed values" : "", cache_types_name(flags.cache));
    c.rows = rows;
    c.position = position;
    c.context = position + rows + 3;
    c.cache = flags.cache;
    c.declare = [=](Fixture& f) -> OpCase::Build {
        const Weight q = f.input(s.heads * s.head_dim), k = f.input(s.kv_heads * s.head_dim);
        const Weight v = f.input(s.kv_heads * s.head_dim);
        const Norm q_norm = flags.norms ? Norm{f.vector(s.head_dim), 1e-6f} : Norm{};
        const Norm k_norm = flags.norms ? Norm{f.vector(s.head_dim), 1e-6f} : Norm{};
        const Weight sinks = flags.sinks ? f.vector(s.heads) : Weight{};
        return [=](PlanBuilder& p) {
            const uint32_t rope =
                p.add_rope(test_rope(s.head_dim / (flags.partial ? 4 : 2) * 2, flags.half_split));
            const Slot qs = p.embed(q);
            const Cache cache = p.cache(s.kv_heads, s.head_dim, flags.window);
            const Slot ks = p.embed(k), vs = p.embed(v), y = p.slot(s.heads * s.head_dim);
            const float scale = score_size(flags.cache) / std::sqrt(float(s.head_dim));
            p.append(Attend{{qs, ks, vs, cache, s, rope, q_norm, k_norm},
                            {qs, y, cache, s, scale, flags.softcap, flags.window, sinks, flags.chunks},
                            flags.v_norm ? 1e-6f : 0.0f});
            return y;
        };
    };
    return c;
}

// Rows of several sequences, whose keys and values lie in scattered pages; of one sequence, it is the pages.
inline OpCase paged_case(HeadShape s, uint32_t sequences, uint32_t rows, uint64_t position,
                         AttentionFlags flags) {
    OpCase c = attention_case(s, rows, position, flags);
    c.name += fmt::format(", {} in pages", sequences);
    c.sequences = sequences;
    c.context = position + (sequences - 1) * kFurtherTokens + rows + 3;
    return c;
}

// All but one sequence have a row.
inline OpCase uneven(OpCase c) {
    c.name += ", all but one with a row";
    c.uneven = true;
    return c;
}

// Its results go through a product.
inline OpCase into_product(OpCase c, HeadShape s, const Format& format, bool norm) {
    c.name += fmt::format(" into {}{}", format.name, norm ? " norm" : "");
    c.declare = [=, &format, attention = c.declare](Fixture& f) -> OpCase::Build {
        const uint32_t width = s.heads * s.head_dim;
        const OpCase::Build build = attention(f);
        const Weight w = f.matrix(format, 40, width);
        const Norm fused = norm ? Norm{f.vector(width), 1e-5f} : Norm{};
        return [=](PlanBuilder& p) {
            const Slot y = p.slot(40);
            p.append(products::linear(build(p), w, y, fused));
            return y;
        };
    };
    return c;
}
inline OpCase attention_product_case(HeadShape s, const Format& format, uint64_t position, bool norm,
                                     const AttentionFlags& flags = {}) {
    return into_product(attention_case(s, 1, position, flags), s, format, norm);
}

// The residual connection of a block with a norm or a factor, then the factor and softcap of logits.
inline OpCase residual_case(uint32_t rows, uint32_t width, float softcap) {
    OpCase c;
    c.name = fmt::format("residual and scale {} rows {} softcap {}", width, rows, softcap);
    c.rows = rows;
    c.declare = [=](Fixture& f) -> OpCase::Build {
        const Weight a = f.input(width), b = f.input(width), gain = f.vector(width);
        return [=](PlanBuilder& p) {
            const Slot x = p.embed(a), y = p.embed(b);
            p.add(x, y, 0.22f);
            p.add(x, y, 1.0f, {gain, 1e-6f});
            p.append(softcap > 0.0f ? each::softcap(x, 3.0f, softcap) : each::scale(x, 3.0f));
            return x;
        };
    };
    return c;
}

inline void add_paged_cases(std::vector<OpCase>& cases) {
    for (const CacheType type : {CacheType::f16, CacheType::q8_0, CacheType::f32})
        for (const uint32_t rows : {1u, 3u, 40u}) {
            // One sequence: the kernels of one, of few and of many rows, windows kept as rings included.
            cases.push_back(paged_case({4, 2, 64}, 1, rows, 530, {true, false, false, 0, 0.0f, type}));
            cases.push_back(paged_case({3, 1, 128}, 1, rows, 764, {false, true, true, 179, 0.0f, type}));
            if (rows == 1) continue;
            cases.push_back(paged_case({6, 2, 64}, 3, rows, 240, {true, true, true, 0, 0.0f, type}));
            cases.push_back(paged_case({4, 2, 32}, 2, rows, 480, {false, false, false, 100, 30.0f, type}));
            cases.push_back(
                paged_case({4, 2, 32}, 2, rows, 485, {false, false, false, 100, 0.0f, type, false, true}));
        }
    cases.push_back(paged_case({5, 1, 7}, 4, 6, 250, {}));
    cases.push_back(paged_case({4, 2, 20}, 2, 5, 810, {true, false, false, 30, 0.0f, CacheType::f16}));
    cases.push_back(paged_case({2, 1, 201}, 3, 3, 300, {}));
    cases.push_back(paged_case({12, 1, 128}, 5, 5, 0, {}));
    cases.push_back(paged_case({2, 1, 512}, 2, 9, 300, {}));
    cases.push_back(paged_case({3, 1, 256}, 1, 40, 764, {false, false, true, 179, 0.0f, CacheType::f16}));
    cases.push_back(uneven(paged_case({4, 2, 64}, 5, 43, 240, {true, true, true, 0, 0.0f, CacheType::f16})));
    cases.push_back(
        uneven(paged_case({7, 1, 128}, 3, 70, 485, {false, false, false, 100, 30.0f, CacheType::q8_0})));
    cases.push_back(uneven(
        paged_case({4, 2, 96}, 2, 18, 1100, {false, false, true, 700, 0.0f, CacheType::f16, false, true})));
}

// To a separate slot, and then in place.
inline OpCase hadamard_case(uint32_t rows, uint32_t groups, uint32_t width) {
    OpCase c;
    c.name = fmt::format("hadamard {} of {} rows {}", groups, width, rows);
    c.rows = rows;
    c.declare = [=](Fixture& f) -> OpCase::Build {
        const Weight x = f.input(groups * width);
        return [=](PlanBuilder& p) {
            const Slot y = p.slot(groups * width);
            p.append(Hadamard{p.embed(x), width, y});
            p.append(Hadamard{y, width / 2, y});
            return y;
        };
    };
    return c;
}

// Keys and values of two types, and bf16: in pages, in rings, and by all kernels. Types of fewer bits are off
// by too much for a bound to mean anything; cache_types_test has them.
inline void add_mixed_cases(std::vector<OpCase>& cases) {
    const CacheTypes two = {CacheType::q8_0, CacheType::f16}, other = {CacheType::f16, CacheType::q8_0};
    const CacheTypes floats = {CacheType::f32, CacheType::bf16};
    for (const uint32_t rows : {1u, 3u, 40u}) {
        cases.push_back(attention_case({4, 2, 64}, rows, 90, {true, true, false, 0, 0.0f, two}));
        cases.push_back(attention_case({6, 1, 96}, rows, 130, {true, false, true, 0, 30.0f, other}));
        cases.push_back(attention_case({3, 1, 128}, rows, 764, {false, true, true, 179, 0.0f, other}));
        cases.push_back(attention_case({4, 2, 20}, rows, 40, {false, false, false, 0, 0.0f, floats}));
        cases.push_back(
            paged_case({4, 2, 64}, rows == 1 ? 1 : 2, rows, 300, {true, false, false, 0, 0.0f, two}));
        cases.push_back(paged_case({2, 1, 201}, rows == 1 ? 1 : 3, rows, 260, {.cache = CacheType::bf16}));
    }
}

// `formats`: those that every kind of product is tried with.
inline std::vector<OpCase> op_cases(std::span<const Format* const> formats = all_formats()) {
    std::vector<OpCase> cases;
    const Format& q8 = *find_format("Q8_0");
    const Format& q4k = *find_format("Q4_K");
    const Format& f32 = *find_format("F32");
    for (const Format* format : formats) {
        for (const uint32_t rows : {1u, 2u, 7u, 33u})
            cases.push_back(linear_case(*format, rows, 37, std::max(64u, 2 * format->block), {}));
        cases.push_back(gated_case(*format, Act::silu, true, 1, 40, 256));
        for (const uint32_t rows : {1u, 3u}) {
            cases.push_back(of_levels(linear_case(*format, rows, 37, 512, {true, false, false})));
            cases.push_back(of_levels(gated_case(*format, Act::silu, false, rows, 40, 256)));
        }
        cases.push_back(gated_case(*format, Act::gelu_tanh, false, 19, 40, 256));
        cases.push_back(experts_case(*format, Gating::softmax, true, 9));
        cases.push_back(embed_case(*format, 5));
        cases.push_back(route_case(*format, 3));
        cases.push_back(group_case(*format, q8, 3));
    }
    for (const uint32_t rows : {1u, 5u, 40u}) {
        cases.push_back(linear_case(q8, rows, 65, 96, {true, false, false}));
        cases.push_back(linear_case(q8, rows, 65, 96, {false, true, true}));
        cases.push_back(linear_case(q4k, rows, 300, 512, {true, true, true}));
        cases.push_back(linear_case(f32, rows, 17, 43, {true, true, true}));
        cases.push_back(linear_case(f32, rows, 1, 1, {}));
        // The others are too steep, or too flat, for a bound of what matrix units round.
        for (const Function function : {Function::silu, Function::squared_relu, Function::gelu_tanh})
            cases.push_back(of_levels(plain_ffn_case(q8, rows, 96, 160, function, false)));
        cases.push_back(plain_ffn_case(f32, rows, 17, 43, Function::squared_relu, false));
        cases.push_back(of_levels(plain_ffn_case(q8, rows, 64, 64, Function::squared_relu, true)));
        cases.push_back(of_levels(plain_ffn_case(q4k, rows, 256, 256, Function::squared_relu, true)));
        cases.push_back(group_case(q4k, *find_format("Q6_K"), rows));
        cases.push_back(group_case(f32, *find_format("BF16"), rows));
        cases.push_back(group_case(*find_format("BF16"), q8, rows));
    }
    for (const uint32_t rows : {1u, 5u, 40u})
        for (const char* last : {"Q4_K", "Q6_K", "F32"})
            cases.push_back(four_group_case(q4k, *find_format(last), rows));
    for (const uint32_t rows : {1u, 5u, 40u}) cases.push_back(four_group_case(f32, f32, rows));
    for (const uint32_t rows : {1u, 3u}) {
        for (const auto& [first, last] : kMixes) {
            cases.push_back(mixed_group_case(*find_format(first), *find_format(last), rows));
            cases.push_back(mixed_pair_case(*find_format(first), *find_format(last), rows));
        }
        for (const Format* format : formats) cases.push_back(layer_case(*format, rows));
        cases.push_back(pairs_case(q4k, f32, rows));
        cases.push_back(pairs_case(q4k, q8, rows));
        cases.push_back(pairs_case(q8, *find_format("Q6_K"), rows));
    }
    for (const uint64_t position : {0u, 300u})
        for (const bool norm : {false, true}) {
            cases.push_back(attention_product_case({4, 2, 64}, q4k, position, norm));
            cases.push_back(attention_product_case({12, 1, 32}, q8, position, norm));
            cases.push_back(attention_product_case({3, 1, 160}, q8, position, norm));
            cases.push_back(attention_product_case({8, 2, 24}, q8, position, norm));
            // Several rows, of one sequence and of several.
            cases.push_back(into_product(attention_case({4, 2, 64}, 3, position, {}), {4, 2, 64}, q4k, norm));
            cases.push_back(into_product(paged_case({4, 1, 32}, 3, 7, position, {}), {4, 1, 32}, q8, norm));
        }
    // Several tiles of matrix kernels each way, the last ones not full.
    for (const Format* format : {&q8, find_format("F16"), find_format("BF16")}) {
        cases.push_back(linear_case(*format, 150, 300, 352, {true, true, true}));
        cases.push_back(gated_case(*format, Act::silu, true, 150, 300, 352));
    }
    // So many rows that weights may be unpacked before they are multiplied.
    for (const Format* format : formats)
        if (format->block > 1) {
            const uint64_t k = (95u + format->block) / format->block * format->block;
            cases.push_back(linear_case(*format, 130, 140, k, {true, true, true}));
            cases.push_back(gated_case(*format, Act::silu, true, 130, 140, k));
        }
    // Rows so long that several loads of floats are under way at once.
    for (const Format* format : formats)
        if (format->block == 1)
            for (const uint32_t rows : {1u, 2u, 7u})
                cases.push_back(linear_case(*format, rows, 19, 1100, {rows == 2, false, false}));
    for (const uint32_t rows : {1u, 5u, 130u}) {
        cases.push_back(gated_case(q8, Act::swiglu_clamped, false, rows, 40, 256));
        cases.push_back(residual_case(rows, 331, 0.0f));
        cases.push_back(residual_case(rows, 331, 5.0f));
    }
    for (const uint32_t rows : {1u, 40u}) cases.push_back(experts_case(q4k, Gating::softmax, true, rows));
    cases.push_back(experts_case(q8, Gating::sigmoid, true, 5));
    cases.push_back(experts_case(q8, Gating::softmax_of_selected, false, 5));
    for (const uint32_t rows : {1u, 40u})
        cases.push_back(experts_case(q8, Gating::sparse_mixer, false, rows));
    add_expert_cases(cases, formats);
    for (const uint32_t rows : {1u, 3u, 40u})
        for (const uint64_t position : {0u, 1u, 50u, 300u}) {
            cases.push_back(attention_case({8, 4, 8}, rows, position, {}));
            cases.push_back(
                attention_case({6, 2, 64}, rows, position, {true, true, false, 0, 0.0f, CacheType::f16}));
            cases.push_back(
                attention_case({4, 1, 32}, rows, position, {true, false, true, 33, 0.0f, CacheType::q8_0}));
            cases.push_back(
                attention_case({4, 2, 24}, rows, position, {true, false, true, 0, 0.0f, CacheType::f32}));
            cases.push_back(
                attention_case({3, 3, 80}, rows, position, {false, false, false, 0, 30.0f, CacheType::f16}));
        }
    cases.push_back(attention_case({5, 1, 7}, 4, 11, {}));
    // Behind so many keys HIP launches attention in another way.
    cases.push_back(attention_case({16, 8, 128}, 1, 4200, {}));
    for (const uint32_t rows : {1u, 3u, 20u})
        for (const CacheType type : {CacheType::f16, CacheType::q8_0})
            for (const uint32_t head_dim : {64u, 96u, 256u, 512u})
                cases.push_back(attention_case({4, 2, head_dim}, rows, 40,
                                               {.norms = true, .cache = type, .v_norm = true}));
    // So many kv heads that keys are not split on small devices: the running maximum goes over several tiles.
    for (const uint32_t rows : {1u, 20u}) cases.push_back(attention_case({16, 8, 64}, rows, 300, {}));
    // Few rows with far keys, by how many queries share a kv head; heads whose size is no power of two, and
    // large ones.
    for (const uint32_t rows : {1u, 2u, 5u, 8u}) {
        cases.push_back(attention_case({4, 1, 128}, rows, 303, {}));
        cases.push_back(
            attention_case({2, 2, 112}, rows, 205, {false, false, true, 150, 0.0f, CacheType::f16}));
    }
    cases.push_back(attention_case({8, 1, 96}, 1, 213, {false, false, true, 0, 20.0f, CacheType::q8_0}));
    cases.push_back(attention_case({5, 1, 256}, 2, 140, {true, true, false, 0, 0.0f, CacheType::q8_0}));
    cases.push_back(attention_case({2, 1, 512}, 3, 140, {}));
    cases.push_back(attention_case({2, 1, 201}, 3, 140, {}));
    for (const uint32_t rows : {1u, 3u}) {
        cases.push_back(
            attention_case({16, 2, 128}, rows, 333, {true, true, true, 0, 0.0f, CacheType::q8_0, true}));
        cases.push_back(
            attention_case({12, 1, 64}, rows, 130, {false, true, false, 70, 0.0f, CacheType::f16, true}));
        cases.push_back(attention_case({3, 1, 256}, rows, 77, {true, false, false, 0, 0.0f, CacheType::f32}));
    }
    // Several work-groups of matrix kernels, keys shared by many heads or by one, windows that begin between
    // tiles.
    cases.push_back(attention_case({8, 2, 128}, 70, 100, {}));
    cases.push_back(attention_case({8, 1, 64}, 33, 170, {true, false, true, 45, 0.0f, CacheType::f16}));
    cases.push_back(attention_case({2, 2, 96}, 150, 0, {false, false, false, 0, 0.0f, CacheType::q8_0}));
    // Heads that subgroups of matrix kernels have parts of; those of 144 and 272 elements do not fill them. A
    // driver on a CPU has no room for four parts of 512.
    for (const CacheType type : {CacheType::f16, CacheType::q8_0}) {
        cases.push_back(attention_case({4, 2, 256}, 65, 300, {true, false, true, 0, 0.0f, type}));
        cases.push_back(attention_case({3, 1, 256}, 75, 523, {false, false, true, 100, 20.0f, type, true}));
    }
    cases.push_back(
        attention_case({2, 1, 256}, 75, 560, {false, false, false, 100, 0.0f, CacheType::f16, false, true}));
    cases.push_back(attention_case({6, 1, 192}, 130, 0, {false, false, false, 0, 0.0f, CacheType::q8_0}));
    cases.push_back(attention_case({3, 1, 144}, 67, 90, {false, false, true, 0, 0.0f, CacheType::f16}));
    cases.push_back(attention_case({2, 1, 272}, 66, 150, {}));
    cases.push_back(attention_case({2, 1, 512}, 66, 150, {false, true, false, 0, 0.0f, CacheType::q8_0}));
    // Windows whose keys are kept as a ring, which has been around more than once.
    for (const CacheType type : {CacheType::f16, CacheType::q8_0, CacheType::f32})
        for (const uint32_t rows : {1u, 6u, 75u}) {
            cases.push_back(attention_case({4, 2, 64}, rows, 523, {true, false, false, 100, 0.0f, type}));
            cases.push_back(attention_case({3, 1, 128}, rows, 764, {false, true, true, 179, 0.0f, type}));
        }
    cases.push_back(attention_case({4, 2, 20}, 5, 810, {true, false, false, 30, 0.0f, CacheType::f16}));
    // Chunks: their first row and last, and some that end among rows; in a ring, and before the first ends.
    for (const CacheType type : {CacheType::f16, CacheType::q8_0, CacheType::f32}) {
        for (const auto& [rows, at] : {std::pair(1u, 600u), {1, 599}, {6, 597}, {75, 560}, {130, 390}})
            cases.push_back(
                attention_case({4, 2, 64}, rows, at, {false, false, false, 100, 0.0f, type, false, true}));
        cases.push_back(
            attention_case({3, 1, 128}, 40, 70, {true, false, true, 100, 0.0f, type, false, true}));
    }
    add_paged_cases(cases);
    add_mixed_cases(cases);
    for (const uint32_t rows : {1u, 3u, 40u})
        for (const uint32_t width : {64u, 128u, 512u}) cases.push_back(hadamard_case(rows, 3, width));
    add_recurrent_cases(cases);
    add_each_cases(cases);
    add_latent_cases(cases);
    add_block_cases(cases);
    add_entry_cases(cases);
    return cases;
}

}  // namespace redline
