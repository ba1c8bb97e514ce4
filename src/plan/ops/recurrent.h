// Layers that keep a state of a sequence instead of its keys and values. States lie in caches of states: a
// step reads the state before it from one row and writes the state behind it to another, or the same. A step
// that begins at position 0 reads none: the state is zero there.
#pragma once

#include "plan/ops/facts.h"

namespace redline {

constexpr uint32_t kMostTaps = 4;  // of a convolution

// A causal convolution, channel by channel: u = before * x, then
struct Convolve {
    static constexpr std::string_view kName = "convolve";
    Slot x;
    Weight w;  // (channels, taps), the oldest tap first
    Slot y;
    Cache state;
    uint32_t taps = 0;
    bool silu = false;
    Slot before = {}, behind = {};  // absent: 1
    uint32_t apart = 1;             // tokens from a tap to the next
    Weight bias = {};               // fused: (channels); only without `behind`

    uint32_t kept() const { return (taps - 1) * apart; }

    Access access() const;
    void visit_indices(auto&& visit) { visit(x, w, y, state, before, behind, bias); }
    void list(OpFacts& f) const;
    Cost cost(const Plan& plan, const StepShape& shape) const;
    bool decompose(PlanBuilder& out) const;
};

struct DeltaShape {
    uint32_t heads = 0;      // of values
    uint32_t key_heads = 0;  // of queries and keys
    uint32_t key_dim = 0;
    uint32_t value_dim = 0;
    // Assigns key heads to value heads: interleaved (h % key_heads), or consecutive value heads share one.
    bool in_turns = false;

    uint32_t keys() const { return key_heads * key_dim; }
    uint32_t values() const { return heads * value_dim; }
    uint32_t width() const { return 2 * keys() + values(); }
    uint32_t key_head(uint32_t head) const {
        return in_turns ? head % key_heads : head / (heads / key_heads);
    }
    uint64_t state_floats() const { return uint64_t(heads) * key_dim * value_dim; }
};

// The gated delta rule (arXiv 2412.06464), for each head and token, on a state S of (key_dim, value_dim):
//   q and k are made unit vectors, q is divided by sqrt(key_dim);
//   decay = exp(a * softplus(alpha + dt)), b = sigmoid(beta);
//   S = decay * S, then S += b * k (v - k S), y = q S.
struct DeltaNet {
    static constexpr std::string_view kName = "delta_net";
    static constexpr float kEps = 1e-6f;  // added to the sums of squares of q and k
    Slot qkv;                             // (rows, queries, then keys, then values)
    Slot beta;                            // (rows, heads)
    Slot alpha;                           // (rows, heads)
    Weight a;                             // (heads), not above 0
    Weight dt;                            // (heads)
    Slot y;                               // (rows, heads * value_dim)
    Cache state;                          // (heads, key_dim, value_dim)
    DeltaShape shape;

    Access access() const { return {{qkv, beta, alpha}, {y}, true, true}; }
    void visit_indices(auto&& visit) { visit(qkv, beta, alpha, a, dt, y, state); }
    void list(OpFacts& f) const;
    Cost cost(const Plan& plan, const StepShape& shape) const;
};

struct ScanShape {
    uint32_t heads = 0;
    uint32_t groups = 0;    // groups of heads that share in and out vectors
    uint32_t head_dim = 0;  // of inputs and results
    uint32_t state_dim = 0;

    uint32_t inner() const { return heads * head_dim; }
    uint32_t width() const { return inner() + 2 * groups * state_dim; }
    uint64_t state_floats() const { return uint64_t(inner()) * state_dim; }
};

// The state space of Mamba-2 (arXiv 2405.21060), for each head and token, on a state S of (head_dim,
// state_dim):
//   step = softplus(step + step_bias); S = exp(a * step) * S + step * x in; y = S out + through * x.
struct StateScan {
    static constexpr std::string_view kName = "state_scan";
    Slot x;            // (rows, inputs of all heads, then in, then out vectors of all groups)
    Slot step;         // (rows, heads)
    Weight a;          // (heads), not above 0
    Weight step_bias;  // (heads)
    Weight through;    // (heads)
    Slot y;            // (rows, heads * head_dim)
    Cache state;       // (heads, head_dim, state_dim)
    ScanShape shape;

    Access access() const { return {{x, step}, {y}, true, true}; }
    void visit_indices(auto&& visit) { visit(x, step, a, step_bias, through, y, state); }
    void list(OpFacts& f) const;
    Cost cost(const Plan& plan, const StepShape& shape) const;
};

#define RL_RECURRENT_OPS(CORE, FUSED) CORE(Convolve) CORE(DeltaNet) CORE(StateScan)

}  // namespace redline
