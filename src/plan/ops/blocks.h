// The choice of blocks of a sequence, and the entries of blocks, for attention to them. An indexer keeps a
// key for each complete block of `ratio` tokens and scores the blocks for each query; the query then sees the
// tokens of the best blocks and those behind the last complete block, or one pooled entry for each of the
// best blocks and the last tokens.
#pragma once

#include "plan/ops/facts.h"

namespace redline {

// y[t] = the sum of x over the tokens of t's block up to t, divided by the length of a whole block: at a
// block's last token its mean. The state is the sum so far.
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

// Pools each block into one entry: y[t] = per element the mean of x over the tokens of t's block up to t,
// weighted by the softmax of gate + bias over these tokens; at a block's last token this is its entry.
// `overlaps`: x, gate and bias have two parts side by side, each as wide as y, and the mean is over the
// tokens of the block before with their first parts and those of t's block with their second. The state
// holds, per element, the largest gate, the sum of weights and the sum of weighted elements so far; with
// overlaps these three for the first parts of this block, of the block before, and for the second parts.
struct BlockPool {
    static constexpr std::string_view kName = "block_pool";
    Slot x;
    Slot gate;
    Weight bias;  // (ratio, width of x): by a token's place in its block
    Slot y;
    Cache state;
    uint32_t ratio = 0;
    bool overlaps = false;

    // Floats of a state for entries of this width.
    static uint64_t state_floats(uint64_t width, bool overlaps) { return width * (overlaps ? 9 : 3); }
    Access access() const { return {{x, gate}, {y}, true, true}; }
    void visit_indices(auto&& visit) { visit(x, gate, bias, y, state); }
    void list(OpFacts& f) const;
    Cost cost(const Plan& plan, const StepShape& step) const;
};

// y[t][b] = the sum over heads of weights[h] * max(q[h] . key of block b, 0), for the complete blocks that t
// sees; 0 for others. The key of a block lies in the row of its last token.
struct BlockScores {
    static constexpr std::string_view kName = "block_scores";
    Slot q;       // (rows, heads * width of the cache's rows)
    Slot y;       // (rows, blocks of a context)
    Cache cache;  // of latents, the whole of which is the key; with a row for each token or each block
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
// scores the earlier block comes first. The rest of y is -1.
struct ChooseBlocks {
    static constexpr std::string_view kName = "choose_blocks";
    Slot scores;  // (rows, blocks of a context)
    Slot y;       // (rows, most blocks chosen)
    uint32_t ratio = 0;

    Access access() const { return {{scores}, {y}}; }
    void visit_indices(auto&& visit) { visit(scores, y); }
    void list(OpFacts& f) const {
        f.that(ratio > 0, "blocks must not be empty");
        f.that(f.width(scores) > 0 && f.width(y) > 0, "there is nothing to choose");
        f.that(scores != y, "y must be a separate slot");
        f.note(fmt::format(" {}, blocks of {}", f.width(y), ratio));
    }
};

#define RL_BLOCK_OPS(CORE, FUSED) CORE(BlockMean) CORE(BlockPool) CORE(BlockScores) CORE(ChooseBlocks)

}  // namespace redline
