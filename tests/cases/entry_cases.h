// The op cases of what DeepSeek V4 has: streams that are mixed by weights made doubly stochastic, entries of
// blocks and attention to them, experts by token.
#pragma once

#include "cases/block_cases.h"
#include "cases/latent_cases.h"

namespace redline {

// With no rounds streams are only read. Compared are the weights of reading, of adding or of mixing.
inline OpCase stream_weights_case(uint32_t streams, uint32_t rounds, uint32_t rows, uint32_t compared = 0) {
    OpCase c;
    c.name = fmt::format("stream_weights {}, {} rounds, result {} rows {}", streams, rounds, compared, rows);
    c.rows = rows;
    c.declare = [=](Fixture& f) -> OpCase::Build {
        const uint32_t wide = rounds > 0 ? (2 + streams) * streams : streams;
        const Weight x = f.input(wide), base = f.vector(wide),
                     scale = f.vector(rounds > 0 ? std::vector{0.7f, -1.2f, 0.9f} : std::vector{1.3f});
        return [=](PlanBuilder& p) {
            const Slot read = p.slot(streams), add = rounds > 0 ? p.slot(streams) : Slot{},
                       mix = rounds > 0 ? p.slot(streams * streams) : Slot{};
            p.append(StreamWeights{p.embed(x), scale, base, read, add, mix, rounds, 1e-6f});
            return std::array{read, add, mix}[compared];
        };
    };
    return c;
}

inline OpCase stream_blend_case(uint32_t streams, uint32_t width, uint32_t rows) {
    OpCase c;
    c.name = fmt::format("stream_blend {} of {} rows {}", streams, width, rows);
    c.rows = rows;
    c.declare = [=](Fixture& f) -> OpCase::Build {
        const Weight x = f.input(width), w = f.input(streams), mix = f.input(streams * streams),
                     from = f.input(streams * width);
        return [=](PlanBuilder& p) {
            const Slot y = p.slot(streams * width);
            p.append(StreamBlend{p.embed(x), p.embed(w), p.embed(mix), p.embed(from), y, streams});
            return y;
        };
    };
    return c;
}

inline OpCase block_pool_case(const BlocksCase& b, uint32_t width, bool overlaps, uint32_t rows,
                              uint64_t position) {
    OpCase c;
    c.name = fmt::format("block_pool {}{}", width, overlaps ? " overlapping" : "");
    c.declare = [=](Fixture& f) -> OpCase::Build {
        const uint32_t wide = width * (overlaps ? 2 : 1);
        const Weight x = f.input(wide), gate = f.input(wide), bias = f.vector(wide * b.ratio);
        return [=](PlanBuilder& p) {
            const Slot y = p.slot(width);
            const Cache state = p.state(BlockPool::state_floats(width, overlaps));
            p.append(BlockPool{p.embed(x), p.embed(gate), bias, y, state, b.ratio, overlaps});
            return y;
        };
    };
    return with_blocks(std::move(c), b, rows, position);
}

// Keys have a row for each block.
inline OpCase weighted_scores_case(const BlocksCase& b, uint32_t rows, uint64_t position) {
    OpCase c;
    c.name = fmt::format("block_scores {} weighted heads of {}", b.shape.heads, b.shape.head_dim);
    c.declare = [=](Fixture& f) -> OpCase::Build {
        const uint32_t d = b.shape.head_dim, heads = b.shape.heads;
        const Weight key = f.input(d), q = f.input(heads * d), weight = f.input(heads);
        return [=](PlanBuilder& p) {
            const Cache cache = p.entries(d, b.ratio);
            p.append(LatentStore{p.embed(key), {}, cache});
            const Slot scores = p.slot(uint32_t(p.plan().sizing.context / b.ratio));
            p.append(BlockScores{p.embed(q), scores, cache, heads, b.ratio, p.embed(weight)});
            return scores;
        };
    };
    return with_blocks(std::move(c), b, rows, position);
}

// Scores are of either sign. With none chosen all entries are seen; with a ratio of 0 there are none.
inline OpCase entry_attention_case(const BlocksCase& b, uint64_t window, bool sinks, uint32_t rows,
                                   uint64_t position) {
    OpCase c;
    const uint32_t heads = b.shape.heads, d = b.shape.head_dim;
    c.name = fmt::format("entry_attention {} heads of {}, window {}{}, {} blocks", heads, d, window,
                         sinks ? " sinks" : "", b.chosen);
    const uint64_t tokens = position + rows + 3 + b.sequences * kFurtherTokens;
    c.declare = [=](Fixture& f) -> OpCase::Build {
        const Weight q = f.input(heads * d), token = f.input(d), entry = f.input(d),
                     score = f.input(b.ratio > 0 ? std::max<uint64_t>(1, tokens / b.ratio) : 1),
                     sink = sinks ? f.vector(heads) : Weight{};
        return [=](PlanBuilder& p) {
            const Cache cache = p.latents(d, d, window);
            p.append(LatentStore{p.embed(token), {}, cache});
            Slot chosen;
            Cache entries;
            if (b.ratio > 0) {
                entries = p.entries(d, b.ratio);
                p.append(LatentStore{p.embed(entry), {}, entries});
            }
            if (b.chosen > 0) {
                chosen = p.slot(b.chosen);
                p.append(ChooseBlocks{p.embed(score), chosen, b.ratio});
            }
            const Slot y = p.slot(heads * d);
            const float scale = score_size(b.cache) / std::sqrt(float(d));
            p.append(Attention{.q = p.embed(q),
                               .y = y,
                               .cache = cache,
                               .shape = {heads, 1, d},
                               .scale = scale,
                               .window = uint32_t(window),
                               .sinks = sink,
                               .keys = {.kind = Keys::entries, .chosen = chosen, .entries = entries}});
            return y;
        };
    };
    return with_blocks(std::move(c), b, rows, position);
}

// A part of each head turns, back where frequencies are negative.
inline OpCase part_rope_case(bool back, uint32_t rows, uint64_t position) {
    OpCase c;
    c.name = fmt::format("rope of a part{} rows {} at {}", back ? " back" : "", rows, position);
    c.rows = rows;
    c.position = position;
    c.context = position + rows;
    c.declare = [=](Fixture& f) -> OpCase::Build {
        const Weight x = f.input(3 * 20);
        return [=](PlanBuilder& p) {
            RopeSpec rope{false, {1.0, 0.2, 0.03, 0.001}};
            for (double& frequency : rope.inverse_frequency) frequency *= back ? -1.0 : 1.0;
            const Slot y = p.embed(x);
            p.append(Rope{y, 3, 20, p.add_rope(rope), 12});
            return y;
        };
    };
    return c;
}

// By the factors the weights say who was taken. `times`: logits are so many times as large.
inline OpCase table_route_case(uint32_t experts, uint32_t used, uint32_t rows, float times = 1.0f) {
    OpCase c;
    c.name = fmt::format("route to {} of {} by token, logits times {} rows {}", used, experts, times, rows);
    c.rows = rows;
    c.declare = [=](Fixture& f) -> OpCase::Build {
        std::vector<float> table;
        for (uint64_t token = 0; token < f.capacity(); ++token)
            for (uint32_t k = 0; k < used; ++k) table.push_back(float((token * 7 + k * 3) % experts));
        const Weight x = f.input(32), w = f.matrix(*find_format("F32"), experts, 32), by = f.vector(table),
                     all = f.vector(std::vector<float>(32, times)), factor = f.vector(experts);
        return [=](PlanBuilder& p) {
            const Slot in = p.embed(x);
            p.append(each::multiply(in, all));
            const auto routing =
                p.route(in, w, used, Gating::sqrt_softplus, true, 1.5f, {}, BiasOf::choice, {}, by);
            p.append(ScaleByExpert{routing.scales, routing.ids, factor});
            return routing.scales;
        };
    };
    return c;
}

inline void add_entry_cases(std::vector<OpCase>& cases) {
    for (const uint32_t rows : {1u, 17u}) {
        for (const uint32_t compared : {0u, 1u, 2u})
            cases.push_back(stream_weights_case(4, 20, rows, compared));
        cases.push_back(stream_weights_case(3, 1, rows, 2));
        cases.push_back(stream_weights_case(8, 4, rows, 2));
        cases.push_back(stream_weights_case(4, 0, rows));
        cases.push_back(stream_blend_case(4, 130, rows));
        cases.push_back(stream_blend_case(3, 77, rows));
        for (const bool overlaps : {false, true}) {
            cases.push_back(block_pool_case({4, 0, {}}, 12, overlaps, rows, 0));
            cases.push_back(block_pool_case({128, 0, {}}, 70, overlaps, rows, 250));
            cases.push_back(block_pool_case({4, 0, {}, CacheType::f16, 3}, 20, overlaps, rows + 2, 10));
        }
        for (const bool back : {false, true}) cases.push_back(part_rope_case(back, rows, 33));
        cases.push_back(table_route_case(11, 3, rows));
        cases.push_back(table_route_case(70, 6, rows));
        cases.push_back(table_route_case(70, 6, rows, 20.0f));
        cases.push_back(grouped_route_case(48, {}, Gating::sqrt_softplus, rows));
    }
    for (const CacheType type : {CacheType::f16, CacheType::q8_0, CacheType::f32})
        for (const uint32_t rows : {1u, 3u, 40u}) {
            cases.push_back(weighted_scores_case({4, 0, {5, 1, 64}, type}, rows, 40));
            cases.push_back(entry_attention_case({4, 7, {6, 1, 64}, type}, 9, true, rows, 60));
            cases.push_back(entry_attention_case({16, 0, {20, 1, 128}, type}, 33, true, rows, 150));
        }
    cases.push_back(weighted_scores_case({8, 0, {12, 1, 32}, CacheType::f16, 3}, 9, 20));
    for (const uint32_t sequences : {0u, 3u})
        cases.push_back(weighted_scores_case({4, 0, {21, 1, 128}, CacheType::f16, sequences}, 3, 350));
    cases.push_back(entry_attention_case({0, 0, {4, 1, 32}}, 7, true, 5, 20));
    cases.push_back(entry_attention_case({4, 3, {5, 1, 20}}, 6, false, 9, 30));
    cases.push_back(entry_attention_case({4, 5, {3, 1, 512}}, 128, true, 2, 170));
    cases.push_back(entry_attention_case({4, 40, {17, 1, 512}}, 128, true, 1, 260));
    for (const uint32_t ratio : {4u, 128u})
        cases.push_back(entry_attention_case({ratio, ratio == 4 ? 6u : 0, {9, 1, 64}, CacheType::f16, 3}, 40,
                                             true, 9, 260));
}

}  // namespace redline
