// The op cases of residuals of several streams, and of attention to chosen blocks.
#pragma once

#include "measure/op_case.h"

#include <cmath>

namespace redline {

struct StreamsCase {
    uint32_t streams, width;
    bool one_each = false;  // weights are of streams, not of elements
    bool replaces = false;
    float offset = 0.0f;
    uint32_t first = 0;
    bool alike = false;  // without weights
};

inline OpCase stream_mix_case(const StreamsCase& s, uint32_t rows) {
    OpCase c;
    c.name = fmt::format("stream_mix {} of {}{} rows {}", s.streams, s.width, s.one_each ? " by stream" : "",
                         rows);
    c.rows = rows;
    c.declare = [=](Fixture& f) -> OpCase::Build {
        const Weight x = f.input(s.streams * s.width),
                     w = f.input(s.one_each ? s.streams : s.streams * s.width);
        return [=](PlanBuilder& p) {
            const Slot from = p.embed(x), weights = p.embed(w), y = s.streams == 1 ? from : p.slot(s.width);
            p.append(each::sigmoid(weights));
            p.append(StreamProduct{StreamKind::mix, from, weights, y, s.streams, 0.7f});
            return y;
        };
    };
    return c;
}

inline OpCase stream_add_case(const StreamsCase& s, uint32_t rows) {
    OpCase c;
    c.name = fmt::format("stream_add {} of {}{}{} offset {} from {} rows {}", s.streams, s.width,
                         s.replaces ? " replacing" : "", s.alike ? " alike" : "", s.offset, s.first, rows);
    c.rows = rows;
    c.declare = [=](Fixture& f) -> OpCase::Build {
        const Weight x = f.input(s.width), w = f.input(s.streams), to = f.input(s.streams * s.width);
        return [=](PlanBuilder& p) {
            const Slot weights = p.embed(w), y = s.replaces ? p.slot(s.streams * s.width) : p.embed(to);
            p.append(each::signed_root(weights));
            p.append(StreamProduct{StreamKind::add, p.embed(x), s.alike ? Slot() : weights, y, s.streams,
                                   2.0f, s.replaces, s.offset, s.first});
            return y;
        };
    };
    return c;
}

inline OpCase stream_turn_case(const StreamsCase& s, uint32_t rows) {
    OpCase c;
    c.name = fmt::format("stream_turn {} of {} rows {}", s.streams, s.width, rows);
    c.rows = rows;
    c.declare = [=](Fixture& f) -> OpCase::Build {
        const Weight x = f.input(s.streams * s.width), w = f.input(s.streams * s.streams);
        return [=](PlanBuilder& p) {
            const Slot y = p.slot(s.streams * s.width);
            p.append(StreamProduct{StreamKind::turn, p.embed(x), p.embed(w), y, s.streams});
            return y;
        };
    };
    return c;
}

// The streams of one factor are all the same.
inline OpCase stream_dot_case(const StreamsCase& s, uint32_t rows) {
    OpCase c;
    c.name = fmt::format("stream_dot {} of {} rows {}", s.streams, s.width, rows);
    c.rows = rows;
    c.declare = [=](Fixture& f) -> OpCase::Build {
        const Weight a = f.input(s.streams * s.width), b = f.input(s.width);
        return [=](PlanBuilder& p) {
            const Slot y = p.slot(s.streams);
            p.append(StreamProduct{StreamKind::dot, p.embed(a),
                                   p.parts_of(p.embed(b), s.streams, s.width, 0, 0), y, s.streams, 0.3f});
            return y;
        };
    };
    return c;
}

struct BlocksCase {
    uint32_t ratio, chosen;
    HeadShape shape;
    CacheTypes cache = {};
    uint32_t sequences = 0;
};

inline OpCase with_blocks(OpCase c, const BlocksCase& b, uint32_t rows, uint64_t position) {
    c.name += fmt::format(" of {}, cache {} rows {} at {}, {} sequences", b.ratio, cache_types_name(b.cache),
                          rows, position, b.sequences);
    c.rows = rows;
    c.position = position;
    c.cache = b.cache;
    c.sequences = b.sequences;
    c.context = position + rows + 3 + b.sequences * kFurtherTokens;
    return c;
}

inline OpCase block_mean_case(const BlocksCase& b, uint32_t width, uint32_t rows, uint64_t position) {
    OpCase c;
    c.name = fmt::format("block_mean {}", width);
    c.declare = [=](Fixture& f) -> OpCase::Build {
        const Weight x = f.input(width);
        return [=](PlanBuilder& p) {
            const Slot y = p.slot(width);
            p.append(BlockMean{p.embed(x), y, p.state(width), b.ratio});
            return y;
        };
    };
    return with_blocks(std::move(c), b, rows, position);
}

// Keys of blocks turn by the position of their first token.
inline OpCase block_scores_case(const BlocksCase& b, uint32_t rows, uint64_t position) {
    OpCase c;
    c.name = fmt::format("block_scores {} heads of {}", b.shape.heads, b.shape.head_dim);
    c.declare = [=](Fixture& f) -> OpCase::Build {
        const uint32_t d = b.shape.head_dim;
        const Weight key = f.input(d), q = f.input(b.shape.heads * d);
        return [=](PlanBuilder& p) {
            RopeSpec rope{true, {1.0, 0.3, 0.01}};
            rope.block = b.ratio;
            const Slot keys = p.embed(key);
            p.append(Rope{keys, 1, d, p.add_rope(rope)});
            const Cache cache = p.latents(d, d);
            p.append(LatentStore{keys, {}, cache});
            const Slot scores = p.slot(uint32_t(p.plan().sizing.context / b.ratio));
            p.append(BlockScores{p.embed(q), scores, cache, b.shape.heads, b.ratio});
            return scores;
        };
    };
    return with_blocks(std::move(c), b, rows, position);
}

// Many scores are equal with `tied`.
inline OpCase block_attention_case(const BlocksCase& b, uint32_t rows, uint64_t position, bool tied = false) {
    OpCase c;
    const HeadShape& s = b.shape;
    c.name = fmt::format("block_attention {} heads of {}, {} kv, {} blocks{}", s.heads, s.head_dim,
                         s.kv_heads, b.chosen, tied ? " tied" : "");
    const uint32_t blocks = uint32_t((position + rows + 3 + b.sequences * kFurtherTokens) / b.ratio);
    c.declare = [=](Fixture& f) -> OpCase::Build {
        const Weight q = f.input(s.heads * s.head_dim), k = f.input(s.kv_heads * s.head_dim),
                     v = f.input(s.kv_heads * s.head_dim), score = f.input(blocks);
        std::vector<float> few(blocks);
        for (size_t i = 0; i < few.size(); ++i) few[i] = float(i * 7 % 3);
        const Weight plateaus = f.vector(few), none = f.vector(std::vector<float>(blocks));
        return [=](PlanBuilder& p) {
            const Cache cache = p.cache(s.kv_heads, s.head_dim);
            p.append(KvStore{p.embed(k), p.embed(v), cache, s});
            const Slot scores = p.embed(score), chosen = p.slot(b.chosen), y = p.slot(s.heads * s.head_dim);
            if (tied) p.append(each::multiply(scores, none));
            if (tied) p.append(each::add_bias(scores, plateaus));
            if (!tied) p.append(each::squared_relu(scores));
            p.append(ChooseBlocks{scores, chosen, b.ratio});
            const float scale = score_size(b.cache) / std::sqrt(float(s.head_dim));
            p.append(Attention{.q = p.embed(q),
                               .y = y,
                               .cache = cache,
                               .shape = s,
                               .scale = scale,
                               .keys = {Keys::blocks, chosen, b.ratio}});
            return y;
        };
    };
    return with_blocks(std::move(c), b, rows, position);
}

inline OpCase convolve_apart_case(uint32_t taps, uint32_t apart, uint32_t width, uint32_t rows,
                                  uint64_t position, uint32_t sequences = 0) {
    OpCase c;
    c.name = fmt::format("convolution {} of {}, {} apart rows {} at {}, {} sequences", width, taps, apart,
                         rows, position, sequences);
    c.rows = rows;
    c.position = position;
    c.sequences = sequences;
    c.context = position + rows + 3 + sequences * kFurtherTokens;
    c.declare = [=](Fixture& f) -> OpCase::Build {
        const bool all = taps > 2;  // else there is a gate behind it, but neither one before it nor silu
        const Weight x = f.input(width), gate = f.input(width), w = f.vector(width * taps);
        return [=](PlanBuilder& p) {
            const Cache state = p.state(uint64_t(width) * (taps - 1) * apart);
            const Slot in = p.embed(x), by = p.embed(gate);
            return p.convolve(state, in, w, taps, all, all ? by : Slot{}, all ? Slot{} : by, apart);
        };
    };
    return c;
}

inline OpCase lookup_case(uint32_t width, uint32_t rows) {
    OpCase c;
    c.name = fmt::format("lookup {} rows {}", width, rows);
    c.rows = rows;
    c.declare = [=](Fixture& f) -> OpCase::Build {
        const Weight x = f.input(width);
        return [=](PlanBuilder& p) {
            const Slot y = p.embed(x);
            p.append(each::add(y, p.look_up(width), 1.0f));
            return y;
        };
    };
    return c;
}

inline void add_block_cases(std::vector<OpCase>& cases) {
    for (const uint32_t rows : {1u, 17u}) {
        cases.push_back(stream_mix_case({3, 77}, rows));
        cases.push_back(stream_mix_case({4, 130, true}, rows));
        cases.push_back(stream_mix_case({1, 33}, rows));
        cases.push_back(stream_mix_case({1, 33, true}, rows));
        cases.push_back(stream_add_case({3, 77}, rows));
        cases.push_back(stream_add_case({4, 130, false, true}, rows));
        cases.push_back(stream_add_case({4, 65, false, false, 1.0f}, rows));
        cases.push_back(stream_add_case({4, 130, false, false, 0.5f, 1, true}, rows));
        cases.push_back(stream_turn_case({4, 130}, rows));
        cases.push_back(stream_turn_case({3, 77}, rows));
        cases.push_back(stream_turn_case({1, 40}, rows));
        cases.push_back(stream_dot_case({3, 77}, rows));
        cases.push_back(stream_dot_case({4, 513}, rows));
        cases.push_back(block_mean_case({4, 0, {}}, 12, rows, 0));
        cases.push_back(block_mean_case({5, 0, {}}, 150, rows, 33));
        cases.push_back(convolve_apart_case(4, 3, 70, rows, 0));
        cases.push_back(convolve_apart_case(3, 2, 150, rows, 21));
        cases.push_back(convolve_apart_case(2, 5, 9, rows + 2, 10, 3));
        cases.push_back(lookup_case(77, rows));
    }
    cases.push_back(block_mean_case({3, 0, {}, CacheType::f16, 3}, 12, 20, 10));
    for (const CacheType type : {CacheType::f16, CacheType::q8_0, CacheType::f32})
        for (const uint32_t rows : {1u, 3u, 40u}) {
            cases.push_back(block_scores_case({4, 0, {5, 1, 64}, type}, rows, 40));
            cases.push_back(block_attention_case({4, 7, {6, 2, 64}, type}, rows, 10));
            cases.push_back(block_attention_case({16, 3, {4, 1, 32}, type}, rows, 150));
        }
    // Heads of all sizes that kernels are built for, and more keys than one work-group takes.
    for (const CacheType type : {CacheType::f16, CacheType::q8_0, CacheType::f32}) {
        cases.push_back(block_attention_case({7, 30, {9, 1, 96}, type, 2}, 3, 250));
        cases.push_back(block_attention_case({16, 20, {10, 2, 256}, type}, 1, 400));
        cases.push_back(block_attention_case({16, 12, {4, 2, 512}, type}, 2, 240));
    }
    for (const uint32_t rows : {1u, 3u, 40u})
        cases.push_back(
            block_attention_case({4, 7, {6, 2, 64}, {CacheType::q8_0, CacheType::f16}}, rows, 10));
    cases.push_back(block_attention_case({5, 4, {4, 2, 20}, CacheType::bf16, 3}, 9, 30));
    cases.push_back(block_scores_case({5, 0, {2, 1, 12}, CacheType::f16, 3}, 9, 20));
    cases.push_back(block_scores_case({16, 0, {4, 1, 128}}, 2, 1100));
    for (const bool tied : {false, true}) {
        cases.push_back(block_attention_case({4, 5, {6, 2, 20}}, 30, 60, tied));
        cases.push_back(block_attention_case({3, 40, {12, 1, 256}}, 2, 700, tied));
        cases.push_back(block_attention_case({5, 4, {4, 2, 24}, CacheType::f16, 3}, 9, 30, tied));
    }
}

}  // namespace redline
