// The ops at the sizes of an 8B model, one case per kind, format and row class: `bench --ops` times these
// when it is given no model. Matrices are repeated until a step reads more than caches hold.
#pragma once

#include "measure/op_case.h"

namespace redline {

constexpr uint64_t kSpeedBytes = uint64_t(256) << 20;  // read by a step of one row
constexpr uint32_t kSpeedRows = 512;                   // of a step that is bound by arithmetic

inline uint32_t speed_copies(const Format& format, uint64_t elements, uint32_t rows) {
    if (rows > 1) return 2;
    const uint64_t bytes = elements / format.block * format.block_bytes;
    return uint32_t((kSpeedBytes + bytes - 1) / bytes);
}

inline std::vector<Weight> speed_matrices(Fixture& f, const Format& format, uint32_t rows, uint64_t n,
                                          uint64_t k, uint64_t count = 1) {
    std::vector<Weight> all = {f.matrix(format, n, k, count)};
    while (all.size() < speed_copies(format, count * n * k, rows)) all.push_back(f.copy(all[0]));
    return all;
}

inline OpCase speed_linear(const Format& format, uint32_t rows) {
    constexpr uint32_t kSize = 4096;
    OpCase c;
    c.name = fmt::format("linear {}", format.name);
    c.rows = rows;
    c.declare = [=, &format](Fixture& f) -> OpCase::Build {
        const Weight x = f.input(kSize), y = f.input(kSize);
        return [=, all = speed_matrices(f, format, rows, kSize, kSize)](PlanBuilder& p) {
            const Slot in = p.embed(x), out = p.embed(y);
            for (const Weight w : all) p.linear_add(out, in, w);
            return out;
        };
    };
    return c;
}

inline OpCase speed_gated(const Format& format, uint32_t rows) {
    constexpr uint32_t kWide = 14336, kSize = 4096;
    OpCase c;
    c.name = fmt::format("gated {}", format.name);
    c.rows = rows;
    c.declare = [=, &format](Fixture& f) -> OpCase::Build {
        const Weight x = f.input(kSize), gain = f.vector(kSize);
        return [=, all = speed_matrices(f, format, rows, kWide, kSize)](PlanBuilder& p) {
            const Slot in = p.embed(x);
            Slot out;
            for (size_t i = 0; i + 1 < all.size(); i += 2)
                out = p.gated(in, all[i], all[i + 1], Act::silu, {gain, 1e-5f});
            return out;
        };
    };
    return c;
}

// Steps at `position` in a cache of several layers; the cache's content does not matter for the time.
inline OpCase speed_attention(CacheType type, uint32_t rows, uint64_t position) {
    static constexpr HeadShape kHeads = {32, 8, 128};
    static constexpr uint32_t kLayers = 4;
    OpCase c;
    c.name = fmt::format("attention {}", cache_type_name(type));
    c.rows = rows;
    c.position = position;
    c.cache = type;
    c.declare = [](Fixture& f) -> OpCase::Build {
        const Weight q = f.input(kHeads.heads * kHeads.head_dim);
        const Weight k = f.input(kHeads.kv_heads * kHeads.head_dim),
                     v = f.input(kHeads.kv_heads * kHeads.head_dim);
        return [=](PlanBuilder& p) {
            const uint32_t rope = p.add_rope(test_rope(kHeads.head_dim, true));
            Slot y;
            for (uint32_t layer = 0; layer < kLayers; ++layer) {
                const Slot qs = p.embed(q);
                const Cache cache = p.cache(kHeads.kv_heads, kHeads.head_dim);
                y = p.attend(cache, {qs, p.embed(k), p.embed(v)}, kHeads, rope, 0.0884f);
            }
            return y;
        };
    };
    return c;
}

// The shapes of qwen4exp: the rows that a token attends to do not grow with the context, but the scores of
// blocks do.
inline OpCase speed_blocks(uint32_t rows, uint64_t position) {
    static constexpr HeadShape kHeads = {24, 2, 256};
    static constexpr uint32_t kLayers = 4, kIndexHeads = 8, kIndexDim = 128, kRatio = 16, kChosen = 128;
    OpCase c;
    c.name = "chosen blocks";
    c.rows = rows;
    c.position = position;
    c.declare = [](Fixture& f) -> OpCase::Build {
        const Weight q = f.input(kHeads.heads * kHeads.head_dim), index = f.input(kIndexHeads * kIndexDim);
        return [=](PlanBuilder& p) {
            const Slot chosen = p.slot(kChosen), scores = p.slot(uint32_t(p.plan().sizing.context / kRatio)),
                       y = p.slot(kHeads.heads * kHeads.head_dim);
            for (uint32_t layer = 0; layer < kLayers; ++layer) {
                p.append(
                    BlockScores{p.embed(index), scores, p.entries(kIndexDim, kRatio), kIndexHeads, kRatio});
                p.append(ChooseBlocks{scores, chosen, kRatio});
                const Cache cache = p.cache(kHeads.kv_heads, kHeads.head_dim);
                p.append(Attention{.q = p.embed(q),
                                   .y = y,
                                   .cache = cache,
                                   .shape = kHeads,
                                   .scale = 0.0625f,
                                   .keys = {Keys::blocks, chosen, kRatio}});
            }
            return y;
        };
    };
    return c;
}

// The shapes of deepseek4: the entries of small blocks that a token attends to do not grow with the context,
// but their scores do, and so do the entries of large blocks, all of which are seen.
inline OpCase speed_entries(uint32_t rows, uint64_t position) {
    static constexpr uint32_t kHeads = 64, kDim = 512, kWindow = 128, kLayers = 4, kIndexHeads = 64,
                              kIndexDim = 128, kRatio = 4, kLargeRatio = 128, kChosen = 512;
    OpCase c;
    c.name = "entries of blocks";
    c.rows = rows;
    c.position = position;
    c.declare = [](Fixture& f) -> OpCase::Build {
        const Weight q = f.input(kHeads * kDim), index = f.input(kIndexHeads * kIndexDim),
                     weight = f.input(kIndexHeads);
        return [=](PlanBuilder& p) {
            const Slot chosen = p.slot(kChosen), scores = p.slot(uint32_t(p.plan().sizing.context / kRatio)),
                       y = p.slot(kHeads * kDim);
            for (uint32_t layer = 0; layer < kLayers; ++layer) {
                p.append(BlockScores{p.embed(index), scores, p.entries(kIndexDim, kRatio), kIndexHeads,
                                     kRatio, p.embed(weight)});
                p.append(ChooseBlocks{scores, chosen, kRatio});
                for (const uint32_t ratio : {kRatio, kLargeRatio})
                    p.append(Attention{.q = p.embed(q),
                                       .y = y,
                                       .cache = p.latents(kDim, kDim, kWindow),
                                       .shape = {kHeads, 1, kDim},
                                       .scale = 0.0442f,
                                       .window = kWindow,
                                       .keys = {.kind = Keys::entries,
                                                .chosen = ratio == kRatio ? chosen : Slot{},
                                                .entries = p.entries(kDim, ratio)}});
            }
            return y;
        };
    };
    return c;
}

inline OpCase speed_experts(const Format& format, uint32_t rows) {
    constexpr uint32_t kExperts = 64, kUsed = 8, kDim = 2048, kHidden = 768;
    OpCase c;
    c.name = fmt::format("experts {}", format.name);
    c.rows = rows;
    c.declare = [=, &format](Fixture& f) -> OpCase::Build {
        const Weight x = f.input(kDim), router = f.matrix(*find_format("F32"), kExperts, kDim);
        const Weight gate = f.matrix(format, kHidden, kDim, kExperts), up = f.copy(gate);
        const Weight down = f.matrix(format, kDim, kHidden, kExperts);
        return [=](PlanBuilder& p) {
            const Slot in = p.embed(x), y = p.embed(x);
            p.experts_add(y, in, p.route(in, router, kUsed, Gating::softmax, true, 1.0f), {gate, up, down});
            return y;
        };
    };
    return c;
}

// Cases in the formats that the backend has kernels for: others would be timed as F16 once more.
inline std::vector<OpCase> speed_cases(const Backend& backend) {
    std::vector<OpCase> cases;
    for (const uint32_t rows : {1u, kSpeedRows}) {
        for (const Format* format : all_formats())
            if (backend.has_kernels(*format)) cases.push_back(speed_linear(*format, rows));
        for (const Format* format : all_formats()) {
            const bool common = format->name == "Q4_K" || format->name == "Q6_K" || format->name == "Q8_0";
            if (common || (rows == 1 && backend.has_kernels(*format)))
                cases.push_back(speed_gated(*format, rows));
        }
        for (const char* name : {"Q4_K", "MXFP4"}) cases.push_back(speed_experts(*find_format(name), rows));
    }
    for (const uint64_t position : {4095u, 65535u}) {
        cases.push_back(speed_blocks(1, position));
        cases.push_back(speed_entries(1, position));
    }
    for (const CacheType type : {CacheType::f16, CacheType::q8_0}) {
        cases.push_back(speed_attention(type, 1, 8191));
        cases.push_back(speed_attention(type, kSpeedRows, 0));
    }
    return cases;
}

}  // namespace redline
