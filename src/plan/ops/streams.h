// Ops on residuals of several streams (hyper-connections, arXiv 2409.19606). A row has its streams side by
// side, all of one width.
#pragma once

#include "plan/ops/facts.h"

namespace redline {

struct StreamMix {  // y = scale * the sum over streams of weights * x
    static constexpr std::string_view kName = "stream_mix";
    Slot x;
    Slot weights;  // a number for each element of x, or for each stream
    Slot y;        // of one stream's width; with one stream it may be x
    uint32_t streams = 0;
    float scale = 1.0f;

    Access access() const { return {{x, weights}, {y}}; }
    void visit_indices(auto&& visit) { visit(x, weights, y); }
    void list(OpFacts& f) const;
};

struct StreamAdd {  // each stream of y += scale * (its weight + offset) * x
    static constexpr std::string_view kName = "stream_add";
    Slot x;        // of one stream's width
    Slot weights;  // a number for each stream; absent: they are zeros
    Slot y;
    uint32_t streams = 0;
    float scale = 1.0f;
    bool replaces = false;  // y is not read, as if it were zeros
    float offset = 0.0f;
    uint32_t first = 0;  // the streams before this one stay as they are

    Access access() const {
        Access a{{x}, {y}};
        if (weights) a.reads.push_back(weights);
        if (!replaces) a.reads.push_back(y);
        return a;
    }
    void visit_indices(auto&& visit) { visit(x, weights, y); }
    void list(OpFacts& f) const;
};

struct StreamTurn {  // stream i of y = that of x + the sum over j of weight i * streams + j * stream j of x
    static constexpr std::string_view kName = "stream_turn";
    Slot x;
    Slot weights;  // (rows, streams, streams)
    Slot y;
    uint32_t streams = 0;

    Access access() const { return {{x, weights}, {y}}; }
    void visit_indices(auto&& visit) { visit(x, weights, y); }
    void list(OpFacts& f) const;
};

struct StreamDot {  // y[i] = scale * the product of stream i of a and of b
    static constexpr std::string_view kName = "stream_dot";
    Slot a;
    Slot b;
    Slot y;  // a number for each stream
    float scale = 1.0f;

    Access access() const { return {{a, b}, {y}}; }
    void visit_indices(auto&& visit) { visit(a, b, y); }
    void list(OpFacts& f) const;
};

}  // namespace redline
