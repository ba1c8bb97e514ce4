// The op cases of attention on latents, of experts in groups, of state spaces with what stands around them,
// and of what layer norms and FFNs without gates are made of.
#pragma once

#include "measure/op_case.h"

#include <algorithm>
#include <cmath>

namespace redline {

struct LatentCase {
    uint32_t rank, rope, heads;
    CacheType cache = CacheType::f16;
    uint32_t sequences = 0;
};

inline OpCase latent_case(const LatentCase& l, uint32_t rows, uint64_t position) {
    OpCase c;
    c.name = fmt::format("latents of {} + {}, {} heads, cache {} rows {} at {}, {} sequences", l.rank, l.rope,
                         l.heads, cache_type_name(l.cache), rows, position, l.sequences);
    c.rows = rows;
    c.position = position;
    c.cache = l.cache;
    c.sequences = l.sequences;
    c.context = position + rows + 3 + l.sequences * kFurtherTokens;
    c.declare = [=](Fixture& f) -> OpCase::Build {
        const Weight latent = f.input(l.rank), key = f.input(l.rope),
                     q = f.input(l.heads * (l.rank + l.rope));
        return [=](PlanBuilder& p) {
            const Cache cache = p.latents(l.rank + l.rope, l.rank);
            p.append(LatentStore{p.embed(latent), p.embed(key), cache});
            // Smaller still for wide rows: rounding in all elements may go one way.
            const float width = float(l.rank + l.rope);
            const float scale =
                score_size(l.cache) * std::min(1.0f, std::sqrt(128.0f / width)) / std::sqrt(width);
            return p.latent_attention(cache, p.embed(q), l.heads, scale);
        };
    };
    return c;
}

// Parts of x and of y stand apart; what stands between those of y stays.
inline OpCase head_linear_case(const Format& format, uint32_t heads, uint32_t out, uint32_t in, uint32_t rows,
                               uint32_t apart = 5) {
    OpCase c;
    c.name = fmt::format("heads {} of {} x {} {} rows {} apart {}", heads, out, in, format.name, rows, apart);
    c.rows = rows;
    c.declare = [=, &format](Fixture& f) -> OpCase::Build {
        const Weight x = f.input(heads * (in + apart)), y = f.input(heads * (out + apart)),
                     w = f.matrix(format, out, in, heads);
        return [=](PlanBuilder& p) {
            const Slot to = p.embed(y);
            p.append(products::by_head(p.embed(x), w, to, {in + apart, out + apart}));
            return to;
        };
    };
    return c;
}

// By the factors the weights say who was chosen. `tied`: all logits are 0, and many biases equal.
inline OpCase grouped_route_case(uint32_t experts, ExpertGroups groups, Gating gating, uint32_t rows,
                                 bool tied = false) {
    OpCase c;
    c.name = fmt::format("route to {} by {} of {} groups{}{} rows {}", experts, groups.used, groups.count,
                         groups.by_two ? " by two" : "", tied ? " tied" : "", rows);
    c.rows = rows;
    c.declare = [=](Fixture& f) -> OpCase::Build {
        std::vector<float> plateaus(experts);
        for (size_t e = 0; e < experts; ++e) plateaus[e] = float(e * 7 % 5);
        const Weight x = f.input(32), w = f.matrix(*find_format("F32"), experts, 32),
                     none = f.vector(std::vector<float>(32)),
                     bias = tied ? f.vector(plateaus) : f.vector(experts), factor = f.vector(experts);
        return [=](PlanBuilder& p) {
            const Slot in = p.embed(x);
            if (tied) p.append(each::multiply(in, none));
            const auto routing =
                p.route(in, w, std::min(8u, experts / 6), gating, true, 1.5f, bias, BiasOf::choice, groups);
            p.append(ScaleByExpert{routing.scales, routing.ids, factor});
            return routing.scales;
        };
    };
    return c;
}

// Logits so large that most of their sigmoids are 1 or 0 in floats.
inline OpCase saturated_route_case(uint32_t experts, uint32_t rows) {
    OpCase c;
    c.name = fmt::format("route to {} by saturated logits rows {}", experts, rows);
    c.rows = rows;
    c.declare = [=](Fixture& f) -> OpCase::Build {
        const Weight x = f.input(32), w = f.matrix(*find_format("F32"), experts, 32),
                     hundreds = f.vector(std::vector<float>(32, 100.0f)), factor = f.vector(experts);
        return [=](PlanBuilder& p) {
            const Slot in = p.embed(x);
            p.append(each::multiply(in, hundreds));
            const auto routing = p.route(in, w, 2, Gating::sigmoid, false, 1.5f, {}, BiasOf::choice, {});
            p.append(ScaleByExpert{routing.scales, routing.ids, factor});
            return routing.scales;
        };
    };
    return c;
}

inline OpCase state_space_case(ScanShape s, uint32_t rows, uint64_t position, uint32_t sequences = 0) {
    OpCase c;
    c.name = fmt::format("state space {} heads of {} in {} groups, states of {} rows {} at {}, {} sequences",
                         s.heads, s.head_dim, s.groups, s.state_dim, rows, position, sequences);
    c.rows = rows;
    c.position = position;
    c.sequences = sequences;
    c.context = position + rows + 3 + sequences * kFurtherTokens;
    c.cpu_only = s.state_dim > 256;
    c.declare = [=](Fixture& f) -> OpCase::Build {
        const Weight x = f.input(s.width()), step = f.input(s.heads), bias = f.vector(s.heads),
                     through = f.vector(s.heads), gain = f.vector(s.inner());
        std::vector<float> rates(s.heads);
        for (size_t i = 0; i < rates.size(); ++i) rates[i] = -0.02f * float(1 << (i % 6));
        const Weight a = f.vector(rates);
        return [=](PlanBuilder& p) {
            const Slot y = p.slot(s.inner());
            p.append(StateScan{p.embed(x), p.embed(step), a, bias, through, y, p.state(s.state_floats()), s});
            p.append(each::multiply(y, gain));
            return y;
        };
    };
    return c;
}

inline OpCase center_case(uint32_t groups, uint32_t width, uint32_t rows, bool in_place = false) {
    OpCase c;
    c.name = fmt::format("center {} of {} rows {}{}", groups, width, rows, in_place ? " in place" : "");
    c.rows = rows;
    c.declare = [=](Fixture& f) -> OpCase::Build {
        const Weight from = f.input(groups * width);
        return [=](PlanBuilder& p) {
            const Slot x = p.embed(from), y = in_place ? x : p.slot(groups * width);
            p.append(Center{x, width, y});
            return y;
        };
    };
    return c;
}

// In several sequences every row has another position; some lie behind the table.
inline OpCase position_case(uint32_t width, uint32_t positions, uint32_t rows, uint64_t position,
                            uint32_t sequences = 0) {
    OpCase c;
    c.name = fmt::format("add_position {} of {} rows {} at {}, {} sequences", width, positions, rows,
                         position, sequences);
    c.rows = rows;
    c.position = position;
    c.sequences = sequences;
    c.context = position + rows + 3 + sequences * kFurtherTokens;
    c.declare = [=](Fixture& f) -> OpCase::Build {
        const Weight x = f.input(width), table = f.vector(uint64_t(width) * positions);
        return [=](PlanBuilder& p) {
            const Slot y = p.embed(x);
            p.append(AddPosition{y, table});
            return y;
        };
    };
    return c;
}

// `apart`: what all elements have in common is much larger than what they differ by.
inline OpCase sparsify_case(uint32_t width, uint32_t rows, float deviations, float apart = 0.0f) {
    OpCase c;
    c.name = fmt::format("sparsify {} deviations {} apart {} rows {}", width, deviations, apart, rows);
    c.rows = rows;
    c.declare = [=](Fixture& f) -> OpCase::Build {
        const Weight x = f.input(width), more = f.vector(std::vector<float>(width, apart));
        return [=](PlanBuilder& p) {
            const Slot y = p.embed(x);
            if (apart != 0.0f) p.append(each::add_bias(y, more));
            p.append(Sparsify{y, deviations});
            return y;
        };
    };
    return c;
}

inline void add_grouped_route_cases(std::vector<OpCase>& cases) {
    for (const uint32_t rows : {1u, 17u}) {
        cases.push_back(grouped_route_case(24, {6, 2, false}, Gating::softmax, rows));
        cases.push_back(grouped_route_case(24, {4, 2, true}, Gating::sigmoid, rows));
        cases.push_back(grouped_route_case(24, {24, 7, false}, Gating::sigmoid, rows));
        cases.push_back(grouped_route_case(160, {8, 3, false}, Gating::softmax, rows));
        cases.push_back(grouped_route_case(512, {8, 4, true}, Gating::sigmoid, rows));
        cases.push_back(saturated_route_case(23, rows));
    }
    for (const bool by_two : {false, true}) {
        cases.push_back(grouped_route_case(256, {8, 4, by_two}, Gating::sigmoid, 100));
        cases.push_back(grouped_route_case(66, {11, 5, by_two}, Gating::sigmoid, 2, true));
        cases.push_back(grouped_route_case(288, {72, 9, by_two}, Gating::sigmoid, 1, true));
    }
}

// The shapes of models: state 128, and heads of 64 (mamba2, nemotron_h) or 80 (Nemotron Nano).
inline void add_state_space_cases(std::vector<OpCase>& cases) {
    for (const uint32_t rows : {1u, 17u}) {
        cases.push_back(state_space_case({6, 2, 5, 12}, rows, 0));
        cases.push_back(state_space_case({6, 2, 5, 12}, rows, 70));
        cases.push_back(state_space_case({4, 1, 64, 128}, rows, 9));
        cases.push_back(state_space_case({4, 2, 80, 128}, rows, 9));
        cases.push_back(state_space_case({3, 3, 70, 131}, rows, 3));
        cases.push_back(state_space_case({2, 1, 161, 37}, rows, 3));
        cases.push_back(state_space_case({2, 1, 65, 256}, rows, 3));
        cases.push_back(state_space_case({6, 3, 8, 20}, rows + 2, 10, 3));
    }
    cases.push_back(state_space_case({128, 8, 64, 128}, 2, 0));
    cases.push_back(state_space_case({2, 1, 3, 257}, 2, 3));
    for (const uint32_t dims : {64u, 80u}) cases.push_back(state_space_case({2, 1, dims, 126}, 2, 3));
    cases.push_back(state_space_case({8, 2, 64, 128}, 130, 2));
    cases.push_back(state_space_case({4, 1, 80, 128}, 90, 0, 3));
    cases.push_back(state_space_case({5, 5, 17, 3}, 40, 130, 4));
}

// The shapes of models (GLM-4.7-Flash, DeepSeek-V2-Lite and -V3), and narrower ones, after many tokens, so
// that keys are split.
inline void add_deep_latent_cases(std::vector<OpCase>& cases) {
    for (const CacheType type : {CacheType::f16, CacheType::q8_0}) {
        cases.push_back(latent_case({512, 64, 20, type}, 9, 411));
        cases.push_back(latent_case({512, 64, 16, type}, 4, 263));
        cases.push_back(latent_case({512, 64, 16, type}, 40, 100));
        cases.push_back(latent_case({96, 32, 5, type}, 3, 333));
        cases.push_back(latent_case({96, 32, 20, type, 4}, 7, 190));
    }
    cases.push_back(latent_case({512, 64, 128}, 8, 130));
    cases.push_back(latent_case({512, 64, 20, CacheType::f32}, 20, 300));
    cases.push_back(latent_case({512, 64, 20, CacheType::q8_0, 3}, 7, 151));
    cases.push_back(latent_case({96, 32, 33}, 130, 61));
    cases.push_back(latent_case({512, 64, 20}, 1, 450));
    cases.push_back(latent_case({512, 64, 40, CacheType::f16, 2}, 2, 150));
    // Rows that end within tiles, which are zero behind them.
    cases.push_back(latent_case({160, 32, 5, CacheType::q8_0}, 7, 130));
    for (const Variant& variant :
         {Variant{{"queries", 16}, {"keys", 16}, {"groups", 8}},
          Variant{{"queries", 32}, {"keys", 32}, {"groups", 1}}, Variant{{"queries", 32}, {"keys", 16}}}) {
        cases.push_back(latent_case({96, 32, 20}, 1, 163));
        cases.back().variant = variant;
        cases.back().name += ", " + variant_text(variant);
    }
    // More splits than lanes of a wave bring together at a time.
    cases.push_back(latent_case({160, 32, 5}, 1, 2100));
    cases.back().variant = Variant{{"per_unit", 64}};
    // Groups of queries that use one split, and others of the same step that use more.
    cases.push_back(latent_case({112, 16, 48}, 6, 125));
}

inline void add_latent_cases(std::vector<OpCase>& cases) {
    add_deep_latent_cases(cases);
    for (const CacheType type : {CacheType::f16, CacheType::q8_0, CacheType::f32})
        for (const uint32_t rows : {1u, 3u, 40u})
            for (const uint64_t position : {0u, 5u, 300u})
                cases.push_back(latent_case({64, 32, 6, type}, rows, position));
    cases.push_back(latent_case({512, 64, 128}, 1, 140));
    cases.push_back(latent_case({512, 64, 128, CacheType::q8_0}, 2, 30));
    cases.push_back(latent_case({512, 64, 20, CacheType::f16, 3}, 5, 100));
    cases.push_back(latent_case({512, 64, 16, CacheType::f32, 2}, 3, 130));
    cases.push_back(latent_case({64, 32, 6}, 200, 30));
    cases.push_back(latent_case({64, 32, 16}, 1, 900));
    for (const uint32_t rows : {1u, 2u, 8u, 70u})
        for (const char* name : {"F16", "BF16", "Q8_0", "Q6_K", "MXFP4"})
            cases.push_back(head_linear_case(*find_format(name), 3, 70, 256, rows, 4));
    for (const uint32_t rows : {1u, 17u}) {
        cases.push_back(latent_case({512, 64, 20}, rows, 140));
        cases.push_back(latent_case({21, 6, 3}, rows, 40));
        cases.push_back(latent_case({64, 32, 4, CacheType::f16, 3}, rows + 2, 250));
        cases.push_back(head_linear_case(*find_format("F32"), 5, 37, 20, rows));
        cases.push_back(head_linear_case(*find_format("Q8_0"), 4, 128, 96, rows));
        cases.push_back(head_linear_case(*find_format("Q4_K"), 3, 64, 512, rows));
        cases.push_back(center_case(1, 77, rows));
        cases.push_back(sparsify_case(77, rows, 0.3f));
        cases.push_back(sparsify_case(8192, rows, 1.6448534f));
        cases.push_back(sparsify_case(300, rows, 0.0f, 20.0f));
        cases.push_back(position_case(77, 40, rows, 0));
        cases.push_back(position_case(48, 20, rows, 9));
        cases.push_back(position_case(48, 90, rows + 2, 7, 3));
        cases.push_back(center_case(5, 24, rows, true));
        cases.push_back(center_case(1, 4096, rows, true));
    }
    add_grouped_route_cases(cases);
    add_state_space_cases(cases);
}

}  // namespace redline
