// Attention to chosen blocks of a sequence: an indexer has a key for each complete block of `ratio` tokens,
// scores them for each query, and the query sees the best blocks and the tokens behind the last complete one;
// or it sees an entry for each of the best blocks, which was made of its tokens, and the last tokens.
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

// An entry of each block: y[t] = per element the mean of x over the tokens of t's block up to t, weighted by
// the softmax of gate + bias over these tokens; at a block's last token its entry. `overlaps`: x, gate and
// bias have two parts side by side, each as wide as y, and the mean is over the tokens of the block before
// with their first parts and those of t's block with their second. The state has of what is summed up so far
// the largest gate, the sum of weights and the sum of weighted elements, each for all elements; with overlaps
// of the first parts of this block, of those of the one before, and of the second parts.
struct BlockPool {
    static constexpr std::string_view kName = "block_pool";
    Slot x;
    Slot gate;
    Weight bias;  // (ratio, width of x): by a token's place in its block
    Slot y;
    Cache state;
    uint32_t ratio = 0;
    bool overlaps = false;

    // Floats of a state for entries of a width.
    static uint64_t state_floats(uint64_t width, bool overlaps) { return width * (overlaps ? 9 : 3); }
    Access access() const { return {{x, gate}, {y}, true, true}; }
    void visit_indices(auto&& visit) { visit(x, gate, bias, y, state); }
    void list(OpFacts& f) const;
    Cost cost(const Plan& plan, const StepShape& step) const;
};

// y[t][b] = the sum over heads of weights[h] * max(q[h] . key of block b, 0), of the complete blocks that t
// sees; 0 for others. The key of a block lies in the row of its last token.
struct BlockScores {
    static constexpr std::string_view kName = "block_scores";
    Slot q;       // (rows, heads * width of the cache's rows)
    Slot y;       // (rows, blocks of a context)
    Cache cache;  // of latents, all of which are the key; with a row for each token or each block
    uint32_t heads = 0;
    uint32_t ratio = 0;
    Slot weights = {};  // (rows, heads); absent: 1

    Access access() const {
        return weights ? Access{{q, weights}, {y}, true, false} : Access{{q}, {y}, true, false};
    }
    void visit_indices(auto&& visit) { visit(q, y, cache, weights); }
    void list(OpFacts& f) const;
    Cost cost(const Plan& plan, const StepShape& step) const;
};

// The blocks with the largest scores among the complete ones, as whole numbers in ascending order; of equal
// scores those of the first blocks. Behind them -1.
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

// Causal, of all heads on the same rows of latents, all of which are keys and values: those of the last
// tokens, as many as the cache's window has, and, where there are entries of blocks, those of the first
// chosen, as many as there are complete blocks, or of all complete ones.
struct EntryAttention {
    static constexpr std::string_view kName = "entry_attention";
    Slot q;              // (rows, heads * width of the caches' rows)
    Slot y;              // likewise
    Cache cache;         // of tokens, with a window
    Cache entries = {};  // with a row for each block; absent: none are seen
    Slot chosen = {};    // as ChooseBlocks leaves them; absent: all
    Weight sinks = {};   // (heads): an extra logit per head whose probability is dropped
    uint32_t heads = 0;
    float scale = 0.0f;

    Access access() const {
        return chosen ? Access{{q, chosen}, {y}, true, false} : Access{{q}, {y}, true, false};
    }
    void visit_indices(auto&& visit) { visit(q, y, cache, entries, chosen, sinks); }
    void list(OpFacts& f) const;
    Cost cost(const Plan& plan, const StepShape& step) const;
};

}  // namespace redline
