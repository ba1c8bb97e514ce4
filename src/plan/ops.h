// The vocabulary of a decoder. Sizes are in elements; `rows` is the number of tokens in a step. Every slot
// element is 32 bits: a float, or an int32 for expert ids. A core op must be offered by every backend; the
// others decompose.
#pragma once

#include "base/result.h"
#include "formats/tensor.h"
#include "plan/types.h"

#include <array>
#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

namespace redline {

// Index of an activation buffer of the plan.
struct Slot {
    int32_t index = -1;
    explicit operator bool() const { return index >= 0; }
    bool operator==(const Slot&) const = default;
};

// Index of a key-value cache of the plan: layers that name the same one share it.
struct Cache {
    int32_t index = -1;
    explicit operator bool() const { return index >= 0; }
    bool operator==(const Cache&) const = default;
};

// Index of a weight in the model's list; absent when negative.
struct Weight {
    int32_t index = -1;
    explicit operator bool() const { return index >= 0; }
    bool operator==(const Weight&) const = default;
};

enum class Gating : uint8_t { softmax, sigmoid, softmax_of_selected };

struct Norm {  // root-mean-square norm; absent when gain is null
    Weight gain;
    float eps = 0.0f;
    explicit operator bool() const { return bool(gain); }
};

// Rotary embedding: pair i of a head turns by position * inverse_frequency[i]; cos and sin are times
// magnitude.
struct RopeSpec {
    bool half_split = false;  // pairs (i, i + n) as in NEOX; else (2i, 2i + 1)
    std::vector<double> inverse_frequency;
    double magnitude = 1.0;
};

struct HeadShape {
    uint32_t heads = 0;
    uint32_t kv_heads = 0;
    uint32_t head_dim = 0;
};

// ---- core ops ----

struct Embed {  // y[t] = scale * table[token[t]]
    Weight table;
    Slot y;
    float scale = 1.0f;
};

struct RmsNorm {  // each `width` consecutive elements of a row on their own: the row, or a head
    Slot x;
    Norm norm;
    uint32_t width = 0;
    Slot y;
};

struct Linear {               // y (+)= w * norm(x) + bias
    Slot x;                   // (rows, w.cols)
    Weight w;                 // (w.rows, w.cols), any format
    Slot y;                   // (rows, w.rows)
    Norm norm = {};           // fused
    Weight bias = {};         // fused: (w.rows)
    bool accumulate = false;  // fused: add into y, for the residual
};

struct AddBias {  // y[t] += bias
    Slot y;
    Weight bias;
};

struct Add {  // y += x
    Slot x;
    Slot y;
};

struct ActMul {  // y = act(gate) * up
    Slot gate;
    Slot up;
    Slot y;
    Act act = Act::silu;
};

struct Rope {  // in place, on each head of width head_dim
    Slot x;
    uint32_t heads = 0;
    uint32_t head_dim = 0;
    uint32_t rope = 0;  // index into Plan::ropes
};

struct KvStore {  // cache[position of row] = k, v
    Slot k;       // (rows, kv_heads * head_dim)
    Slot v;
    Cache cache;
    HeadShape shape;
};

struct Attention {  // causal: a row sees the cache up to its own position, at most `window` tokens when > 0
    Slot q;         // (rows, heads * head_dim)
    Slot y;         // (rows, heads * head_dim)
    Cache cache;
    HeadShape shape;
    float scale = 0.0f;
    float softcap = 0.0f;  // > 0: c * tanh(score / c)
    uint32_t window = 0;
    Weight sinks = {};  // (heads): an extra logit per head whose probability is dropped
};

struct Route {  // the `used` best experts of each row and their weights
    Slot x;
    Weight w;     // (experts, x width)
    Slot ids;     // (rows, used) int32, best first; ties: the lower id
    Slot scales;  // (rows, used)
    uint32_t used = 0;
    Gating gating = Gating::softmax;
    bool normalise = true;
    float scale = 1.0f;
    Weight selection_bias = {};  // (experts): moves the choice, not the weights
};

struct ExpertLinear {  // per row and chosen expert e: w[e] * x
    Slot x;            // (rows, w.cols), or (rows, used * w.cols) when per_expert
    Weight w;          // (experts, w.rows, w.cols)
    Slot ids;          // (rows, used)
    Slot y;            // (rows, used * w.rows); (rows, w.rows) when `scales` is given
    uint32_t used = 0;
    bool per_expert = false;
    Slot scales = {};  // given: y += sum over experts of scale * (w[e] * x)
};

struct SelectRows {  // the rows whose output is wanted, in order
    Slot x;
    Slot y;
};

// ---- fused ops ----

struct LinearGroup {  // up to three Linear of one x
    struct Part {
        Weight w;
        Weight bias;
        Slot y;
    };
    Slot x;
    std::array<Part, 3> parts;
    uint32_t count = 0;
    Norm norm = {};
};

struct Gated {  // y = act(gate * norm(x)) * (up * norm(x))
    Slot x;
    Weight gate;
    Weight up;
    Slot y;
    Act act = Act::silu;
    Norm norm = {};
};

struct RopeStore {  // per-head norms of q and k when given, rope on both, k and v into the cache
    Slot q;
    Slot k;
    Slot v;
    Cache cache;
    HeadShape shape;
    uint32_t rope = 0;
    Norm q_norm = {};
    Norm k_norm = {};
};

struct ExpertGated {  // per chosen expert: act(gate[e] * x) * (up[e] * x)
    Slot x;
    Weight gate;
    Weight up;
    Slot ids;
    Slot y;  // (rows, used * gate.rows)
    uint32_t used = 0;
    Act act = Act::silu;
};

using Op = std::variant<Embed, RmsNorm, Linear, AddBias, Add, ActMul, Rope, KvStore, Attention, Route,
                        ExpertLinear, SelectRows, LinearGroup, Gated, RopeStore, ExpertGated>;

std::string_view op_name(const Op& op);

struct Plan;
struct StepShape {  // what an op's cost depends on
    uint64_t rows = 1;
    uint64_t outputs = 1;
    uint64_t kv_len = 1;
};

struct Cost {
    uint64_t weight_bytes = 0;  // read once per step
    uint64_t cache_bytes = 0;
    uint64_t flops = 0;
};

// Which slots an op reads and writes (a slot that is accumulated into is in both).
struct Access {
    std::vector<Slot> reads;
    std::vector<Slot> writes;
    bool reads_cache = false;
    bool writes_cache = false;
};

Access access(const Op& op);
// Shapes and formats fit; an error names the op and what differs.
Status check(const Op& op, const Plan& plan);
Cost cost(const Op& op, const Plan& plan, const StepShape& shape);

}  // namespace redline
