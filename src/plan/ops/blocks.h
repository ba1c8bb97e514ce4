// Attention to chosen blocks of a sequence: an indexer has a key for each complete block of `ratio` tokens,
// scores them for each query, and the query sees the best blocks and the tokens behind the last complete one.
#pragma once

#include "plan/ops/attention.h"
#include "plan/ops/facts.h"

namespace redline {

// y[t] = the mean of x over the tokens of t's block up to t, each as a part of the whole block: at a block's
// last token its mean. The state is the sum so far.
struct BlockMean {
    static constexpr std::string_view kName = "block_mean";
    Slot x;
    Slot y;
    Cache state;
    uint32_t ratio = 0;

    Access access() const { return {{x}, {y}, true, true}; }
    void visit_indices(auto&& visit) { visit(x, y, state); }
    void list(OpFacts& f) const;
};

// y[t][b] = the sum over heads of max(q[h] . key of block b, 0), of the complete blocks that t sees; 0 for
// others. The key of a block lies in the row of its last token.
struct BlockScores {
    static constexpr std::string_view kName = "block_scores";
    Slot q;       // (rows, heads * width of the cache's rows)
    Slot y;       // (rows, blocks of a context)
    Cache cache;  // of latents, all of which are the key
    uint32_t heads = 0;
    uint32_t ratio = 0;

    Access access() const { return {{q}, {y}, true, false}; }
    void visit_indices(auto&& visit) { visit(q, y, cache); }
    void list(OpFacts& f) const;
    Cost cost(const Plan& plan, const StepShape& step) const;
};

// The blocks with the largest scores among the complete ones, as whole numbers in ascending order; of equal
// scores those of the first blocks. Behind them -1. Scores are not negative.
struct ChooseBlocks {
    static constexpr std::string_view kName = "choose_blocks";
    Slot scores;  // (rows, blocks of a context)
    Slot y;       // (rows, most that are chosen)
    uint32_t ratio = 0;

    Access access() const { return {{scores}, {y}}; }
    void visit_indices(auto&& visit) { visit(scores, y); }
    void list(OpFacts& f) const;
};

// Causal, on the tokens of the chosen blocks and those behind the last complete one.
struct BlockAttention {
    static constexpr std::string_view kName = "block_attention";
    Slot q;  // (rows, heads * head_dim)
    Slot chosen;
    Slot y;  // (rows, heads * head_dim)
    Cache cache;
    HeadShape shape;
    float scale = 0.0f;
    uint32_t ratio = 0;

    Access access() const { return {{q, chosen}, {y}, true, false}; }
    void visit_indices(auto&& visit) { visit(q, chosen, y, cache); }
    void list(OpFacts& f) const;
    Cost cost(const Plan& plan, const StepShape& step) const;
};

}  // namespace redline
