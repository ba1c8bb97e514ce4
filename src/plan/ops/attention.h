// Attention, whatever the keys are that a row sees, and the ops before it: rope, and the storing of keys and
// values.
#pragma once

#include "plan/ops/facts.h"

namespace redline {

// Rotary embedding: pair i of a head is rotated by position * inverse_frequency[i]; cos and sin are
// multiplied by `magnitude`.
struct RopeSpec {
    bool half_split = false;  // pairs (i, i + n) as in NEOX; else (2i, 2i + 1)
    std::vector<double> inverse_frequency;
    double magnitude = 1.0;
    // > 0: the magnitude is multiplied by 1 + growth * log(1 + (position + ahead) / period), in whole
    // periods.
    double growth = 0.0;
    uint64_t period = 0;
    uint64_t ahead = 0;
    // Positions are rounded down to a multiple of it, so that a block of so many tokens is rotated alike.
    uint32_t block = 1;

    double magnitude_at(uint64_t position) const;
    // The table of one position: cosines of all pairs, then their sines.
    size_t table_floats() const { return 2 * inverse_frequency.size(); }
    void fill_table(uint64_t position, float* table) const;
};

struct HeadShape {
    uint32_t heads = 0;
    uint32_t kv_heads = 0;
    uint32_t head_dim = 0;
};

struct Rope {  // in place, on each head of width head_dim
    static constexpr std::string_view kName = "rope";
    Slot x;
    uint32_t heads = 0;
    uint32_t head_dim = 0;
    uint32_t rope = 0;   // index into Plan::ropes
    uint32_t first = 0;  // first element of a head that is rotated

    Access access() const { return {{x}, {x}}; }
    void visit_indices(auto&& visit) { visit(x, rope); }
    void list(OpFacts& f) const;
};

struct KvStore {  // cache[position of row] = k, v
    static constexpr std::string_view kName = "kv_store";
    Slot k;  // (rows, kv_heads * head_dim)
    Slot v;
    Cache cache;
    HeadShape shape;

    Access access() const { return {{k, v}, {}, false, true}; }
    void visit_indices(auto&& visit) { visit(k, v, cache); }
    void list(OpFacts& f) const;
};

struct RopeStore {  // per-head norms of q and k when given, rope on both, k and v into the cache
    static constexpr std::string_view kName = "rope_store";
    Slot q;
    Slot k;
    Slot v;
    Cache cache;
    HeadShape shape;
    uint32_t rope = 0;
    Norm q_norm = {};
    Norm k_norm = {};

    Access access() const { return {{q, k, v}, {q, k}, false, true}; }
    void visit_indices(auto&& visit) { visit(q, k, v, cache, rope, q_norm.gain, k_norm.gain); }
    void list(OpFacts& f) const;
    bool decompose(PlanBuilder& out) const;
};

// The first cache row that a query at a position sees: 0 without a window; a window's length back; or the
// start of the position's chunk, where windows are chunks.
constexpr uint64_t first_seen(uint64_t position, uint64_t window, bool chunks) {
    if (window == 0 || position < window) return 0;
    return chunks ? position - position % window : position + 1 - window;
}

// The keys that a row sees.
enum class Keys : uint8_t {
    all,      // those in the cache from first_seen() up to the row's position
    blocks,   // the tokens of the chosen blocks, and those behind the last complete one
    entries,  // of latents: those of the last tokens, as many as the window has, and an entry for each of the
              // chosen blocks (as many as there are complete blocks), or for all complete ones
    latents,  // all rows of a cache of latents
};

struct KeySet {
    Keys kind = Keys::all;
    Slot chosen = {};    // the output of ChooseBlocks; entries: absent, all complete blocks are seen
    uint32_t ratio = 0;  // blocks: tokens of one
    Cache entries = {};  // entries: with a row for each block; absent: only the window is seen
};

// Causal attention. Latents are the keys of one kv head, and their first parts are its values.
struct Attention {
    static constexpr std::string_view kName = "attention";
    Slot q;  // (rows, heads * head_dim)
    Slot y;  // (rows, heads * width of a value)
    Cache cache;
    HeadShape shape;
    float scale = 0.0f;
    float softcap = 0.0f;  // > 0: c * tanh(score / c)
    uint32_t window = 0;
    Weight sinks = {};  // (heads): an extra logit per head whose probability is dropped
    bool chunks = false;
    KeySet keys = {};

    std::string_view name() const;
    uint32_t value_dim(const Plan& plan) const;
    // The most keys that a row sees where there are so many tokens.
    uint64_t most_keys(const Plan& plan, uint64_t tokens) const;
    Access access() const {
        Access used = {{q}, {y}, true, false};
        if (keys.chosen) used.reads.push_back(keys.chosen);
        return used;
    }
    void visit_indices(auto&& visit) { visit(q, y, cache, sinks, keys.chosen, keys.entries); }
    void list(OpFacts& f) const;
    Cost cost(const Plan& plan, const StepShape& step) const;
};

// A layer's attention with the rope and cache store before it; the contents of q, k, and of v where it is
// normed, are undefined afterwards.
struct Attend {
    static constexpr std::string_view kName = "attend";
    RopeStore store;
    Attention attention;  // of store.q, to all keys of its cache
    float v_eps = 0.0f;   // fused: > 0 norms the values' heads, without a gain

    Access access() const {
        Access used = {{store.q, store.k, store.v}, {attention.y}, true, true, {store.q, store.k}};
        if (v_eps > 0.0f) used.scratch.push_back(store.v);
        return used;
    }
    void visit_indices(auto&& visit) {
        store.visit_indices(visit);
        attention.visit_indices(visit);
    }
    void list(OpFacts& f) const;
    Cost cost(const Plan& plan, const StepShape& step) const { return attention.cost(plan, step); }
    bool decompose(PlanBuilder& out) const;
};

#define RL_ATTENTION_OPS(CORE, FUSED) CORE(Rope) CORE(KvStore) CORE(Attention) FUSED(RopeStore) FUSED(Attend)

}  // namespace redline
