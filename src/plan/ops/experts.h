// Mixtures of experts.
#pragma once

#include "plan/ops/products.h"
#include "plan/ops/rows.h"

namespace redline {

// sparse_mixer (arXiv 2409.12136): an expert's weight is its share of a softmax over the logits of the
// experts not chosen before it, of which those are left out that lie below its logit by more than kMixerReach
// of their size. sqrt_softplus: the root of log(1 + e^logit).
enum class Gating : uint8_t { softmax, sigmoid, softmax_of_selected, sparse_mixer, sqrt_softplus };
constexpr float kMixerReach = 0.02f;

// A router's bias is added either to the softmax weights, for the choice alone, or to the logits.
enum class BiasOf : uint8_t { choice, logits };

// Experts stand in `count` groups of equal size; only experts of the `used` best groups are candidates. A
// group's score is that of its best expert, or the sum of its two best.
struct ExpertGroups {
    uint32_t count = 1, used = 1;
    bool by_two = false;
};

// Chooses the `used` best experts of each row and their weights; with a table, the experts listed for the
// row's token, in that order. Numbers in the table that are no experts are clamped to the nearest one.
struct Route {
    static constexpr std::string_view kName = "route";
    Slot x;
    Weight w;     // (experts, x width)
    Slot ids;     // (rows, used) int32, best first; ties: the lower id
    Slot scales;  // (rows, used)
    uint32_t used = 0;
    Gating gating = Gating::softmax;
    bool normalise = true;
    float scale = 1.0f;
    Weight bias = {};  // (experts)
    BiasOf bias_of = BiasOf::choice;
    ExpertGroups groups = {};
    Weight table = {};  // (tokens, used), whole numbers
    Norm norm = {};     // fused: the router reads x_scale * norm(x)
    float x_scale = 1.0f;

    // Sigmoids of large logits are all 1 in floats, so that logits decide wherever nothing is added to the
    // sigmoids.
    bool chosen_by_logits() const {
        return gating == Gating::sigmoid && groups.count <= 1 && !(bias && bias_of == BiasOf::choice);
    }

    Access access() const { return {{x}, {ids, scales}}; }
    void visit_indices(auto&& visit) { visit(x, w, ids, scales, bias, table, norm.gain); }
    void list(OpFacts& f) const;
    bool decompose(PlanBuilder& out) const;
};

struct ScaleByExpert {  // the weight of each chosen expert e times factor[e]
    static constexpr std::string_view kName = "scale_by_expert";
    Slot scales;    // (rows, used)
    Slot ids;       // (rows, used)
    Weight factor;  // (experts)

    Access access() const { return {{scales, ids}, {scales}}; }
    void visit_indices(auto&& visit) { visit(scales, ids, factor); }
    void list(OpFacts& f) const;
};

struct AddExpertBias {  // per row and chosen expert: y += bias[e], or with scales the sum over experts of
                        // scale * bias[e]
    static constexpr std::string_view kName = "add_expert_bias";
    Slot y;       // (rows, used * width); (rows, width) when `scales` is given
    Weight bias;  // (experts, width)
    Slot ids;     // (rows, used)
    Slot scales = {};
    uint32_t used = 0;

    Access access() const;
    void visit_indices(auto&& visit) { visit(y, bias, ids, scales); }
    void list(OpFacts& f) const;
};

// The expert that every row uses, in addition to the chosen ones.
struct SharedExpert {
    Weight router = {};  // (1, width): its sigmoid weights the expert; absent: the weight is 1
    Weight gate = {};    // (hidden, width), like `up`
    Weight up = {};
    Weight down = {};  // (width, hidden)
    Slot ids = {};     // (rows, 1), like `scale`; present with a router
    Slot scale = {};
    Slot hidden = {};  // (rows, hidden)
    Act act = Act::silu;

    explicit operator bool() const { return bool(gate); }
    void visit_indices(auto&& visit) { visit(router, gate, up, down, ids, scale, hidden); }
};

struct ExpertBlock {  // x += the experts that norm(x) goes to, weighted
    static constexpr std::string_view kName = "expert_block";
    RmsNorm norm;
    Route route;  // reads norm.y, like `gated`
    Product gated;
    Product linear;            // reads what gated writes, adds into norm.x
    SharedExpert shared = {};  // reads norm.y, adds into norm.x

    Access access() const;
    Operand operand() const { return {norm.x, norm.norm}; }
    void visit_indices(auto&& visit) {
        norm.visit_indices(visit);
        route.visit_indices(visit);
        gated.visit_indices(visit);
        linear.visit_indices(visit);
        shared.visit_indices(visit);
    }
    void list(OpFacts& f) const;
    Cost cost(const Plan& plan, const StepShape& shape) const;
    bool decompose(PlanBuilder& out) const;
};

#define RL_EXPERT_OPS(CORE, FUSED) CORE(Route) CORE(ScaleByExpert) CORE(AddExpertBias) FUSED(ExpertBlock)

}  // namespace redline
