// Ops on residuals of several streams (hyper-connections, arXiv 2409.19606, and the manifold-constrained
// kind, arXiv 2512.24880). A row has its streams side by side, all of one width.
#pragma once

#include "plan/ops/facts.h"

namespace redline {

enum class StreamKind : uint8_t {
    mix,   // y = scale * the sum over streams of weights * x
    add,   // each stream of y += scale * (its weight + offset) * x
    dot,   // y[i] = scale * the product of stream i of x and of the weights
    turn,  // stream i of y = that of x + the sum over j of weight i * streams + j * stream j of x
};

// A product of streams with weights. Streams are those of x, or of y where they are added to.
struct StreamProduct {
    static constexpr std::string_view kName = "stream_product";
    StreamKind kind = StreamKind::mix;
    Slot x;        // streams; one stream's width where it is added to each
    Slot weights;  // mix: one for each element of x, or for each stream; add: one for each stream, or absent,
                   // which counts as zeros; dot: as wide as x; turn: (rows, streams, streams)
    Slot y;        // mix: of one stream's width, and x itself where there is but one; dot: a number for each
    uint32_t streams = 0;
    float scale = 1.0f;
    // add alone: the streams before `first` stay as they are; if it replaces, y is not read and counts as
    // zeros.
    bool replaces = false;
    float offset = 0.0f;
    uint32_t first = 0;

    std::string_view name() const;
    uint64_t width(const Plan& plan) const;  // of a stream
    // True when a weight of a mix is one for a whole stream of several elements.
    bool by_stream(const Plan& plan) const;
    Access access() const {
        Access a{{x}, {y}};
        if (weights) a.reads.push_back(weights);
        if (kind == StreamKind::add && !replaces) a.reads.push_back(y);
        return a;
    }
    void visit_indices(auto&& visit) { visit(x, weights, y); }
    void list(OpFacts& f) const;
};

constexpr uint32_t kMostStreams = 8;  // the most that StreamWeights and StreamBlend can have

// The weights by which streams are read, a block's result is added to them, and they are mixed. They are
// computed from z = scale * x + base; reading, adding and mixing (indexed by the stream that is read, then
// the one that is written) have a scale each:
//   read = sigmoid + eps, add = 2 * sigmoid, mix = softmax over the streams that are written, + eps.
// Then mix is made nearly doubly stochastic (Sinkhorn and Knopp): each element is divided by the sum of its
// column (of the streams that are read) + eps, and `rounds` - 1 times by that of its row and of its column.
struct StreamWeights {
    static constexpr std::string_view kName = "stream_weights";
    Slot x;         // (rows, (2 + streams) * streams), or (rows, streams) where streams are only read
    Weight scale;   // three, or one
    Weight base;    // as wide as x
    Slot read;      // (rows, streams)
    Slot add = {};  // like `read`; it and `mix` are absent where streams are only read
    Slot mix = {};  // (rows, streams * streams)
    uint32_t rounds = 0;
    float eps = 0.0f;

    Access access() const { return add ? Access{{x}, {read, add, mix}} : Access{{x}, {read}}; }
    void visit_indices(auto&& visit) { visit(x, scale, base, read, add, mix); }
    void list(OpFacts& f) const;
};

// Stream j of y = its weight * x + the sum over streams i of mix[i][j] * stream i of `from`.
struct StreamBlend {
    static constexpr std::string_view kName = "stream_blend";
    Slot x;        // of one stream's width
    Slot weights;  // a number for each stream
    Slot mix;      // (rows, streams * streams)
    Slot from;
    Slot y;
    uint32_t streams = 0;

    Access access() const { return {{x, weights, mix, from}, {y}}; }
    void visit_indices(auto&& visit) { visit(x, weights, mix, from, y); }
    void list(OpFacts& f) const;
};

#define RL_STREAM_OPS(CORE, FUSED) CORE(StreamProduct) CORE(StreamWeights) CORE(StreamBlend)

}  // namespace redline
