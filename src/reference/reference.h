// The oracle: evaluates plans in double, one op after another, never optimised. Every value carries a bound
// on the error that 32-bit arithmetic with the declared precision may make, computed from the data by running
// error analysis, so that tests need no guessed tolerance.
#pragma once

#include "plan/backend.h"

#include <random>

namespace redline {

struct Bounded {
    double value = 0.0;
    double error = 0.0;  // |got - value| of a correct kernel is at most this
    // The same sums with every term's absolute value: the bound only proves something when it is small
    // against this.
    double magnitude = 0.0;
    // The likely error: independent roundings add up by their squares, so this is about the root mean square
    // of such errors, at most. Only known for products and results computed from them; negative: not known.
    double spread = -1.0;

    double likely() const { return spread < 0.0 ? error : spread; }
};

#define RL_EVAL(Core) void eval(const Core& op);
#define RL_NO_EVAL(Fused)

class Reference {
public:
    // `weights[i]` is weight i of the plan decoded to floats, experts and rows slowest first.
    Reference(const Plan& plan, std::vector<std::vector<float>> weights);

    // Evaluates a step. `precisions` are those that the kernels under test declare, one for each step of the
    // plan; empty: all are those of 32-bit floats. Fused ops are decomposed. Without `attends` attention is
    // skipped, for steps of which only the stored rows matter.
    void run(const StepParams& params, std::span<const Precision> precisions = {}, bool attends = true);
    // From here on every operand is rounded at random as far as kernels may, and no errors are bounded: this
    // yields the results that one correct backend could have. Routers choose the experts that those of
    // `exact` chose in the same steps: where two are nearly equal, a last bit decides, and all later values
    // differ.
    void round_at_random(uint32_t seed, const Reference& exact) {
        random_.emplace(seed);
        chosen_ = exact.chosen_;
    }
    // Evaluates one step of the plan on the current content of its slots and caches.
    void run_step(const StepParams& params, size_t step, const Precision& precision);
    // Replaces the content of a slot with values that later steps take as exact.
    void assign(Slot s, std::span<const float> values);
    // (rows, width) of the last step; ids are in `value`.
    std::span<const Bounded> slot(Slot s) const { return slots_[size_t(s.index)]; }
    std::span<const Bounded> output() const { return slot(plan_.output); }

private:
    RL_OPS(RL_EVAL, RL_NO_EVAL)
    template <typename Fused>
    void eval(const Fused&) {
        RL_CHECK(false, "a fused op reached the reference");
    }

    size_t rows_of(Slot s) const;
    size_t width(Slot s) const { return plan_.slot(s).width; }
    std::vector<Bounded>& target(Slot s);
    using Rows = std::vector<const Bounded*>;
    // Attention of one head's query to these keys and values; a value has `value_dim` elements.
    void attend_to(const Attention& op, const Bounded* q, uint32_t head, const Rows& keys, const Rows& values,
                   uint32_t value_dim, Bounded* out) const;
    // Sums the values, weighted by the softmax of the keys' `scores`, whose errors are at most `errors`.
    void weigh(const Attention& op, uint32_t head, const Rows& values, uint32_t value_dim,
               std::span<const double> scores, std::vector<double> errors, Bounded* out) const;
    // The first cache row of the sequence that a row belongs to.
    size_t begin_of(size_t row) const { return params_.rows[row].sequence * plan_.sizing.context; }
    // Element i of x after storing it in the type; blocks begin at multiples of kCacheBlock elements.
    Bounded cached(std::span<const Bounded> x, size_t i, CacheType type) const;
    // A random number of up to `most` in either direction when rounding at random; 0 when bounding errors.
    double nudge(double most) const;
    std::minstd_rand* random() const { return random_ ? &*random_ : nullptr; }
    // `seen`: for each position whether it is attended to; empty: all are.
    void attend(const Attention& op, size_t row, uint32_t head, const std::vector<bool>& seen,
                Bounded* out) const;
    // The positions that a row sees of those in the chosen blocks.
    std::vector<bool> seen_blocks(const Attention& op, size_t row) const;
    void attend_to_entries(const Attention& op);
    std::vector<size_t> experts_of(const Route& op, int32_t token) const;
    // The state of a row's sequence, reset to zeros at position 0.
    std::span<Bounded> state(Cache cache, size_t row);
    // Computes one head of a row, with its part of the state.
    void delta(const DeltaNet& op, size_t row, uint32_t head, Bounded* state, Bounded* out) const;

    Plan plan_;                 // core ops only
    std::vector<size_t> from_;  // for each step, the index of the given plan's step that it is part of
    std::vector<std::vector<float>> weights_;
    std::vector<std::vector<Bounded>> slots_;
    // Per cache: (sequences, context, kv_heads * head_dim).
    std::vector<std::vector<Bounded>> keys_, values_;
    // Per cache of states: (sequences, floats).
    std::vector<std::vector<Bounded>> states_;
    StepParams params_;
    bool attends_ = true;
    Precision precision_;  // of the step being evaluated
    mutable std::optional<std::minstd_rand> random_;
    std::vector<std::vector<size_t>> chosen_;  // by routers: a list of experts for each token
    size_t routed_ = 0;                        // tokens so far
};
#undef RL_EVAL
#undef RL_NO_EVAL

// The plan with every op decomposed into core ops.
struct Expanded {
    Plan plan;
    std::vector<size_t> from;  // for each step, the index of the given plan's step that it is part of
};
Expanded expand(const Plan& plan);

// The precisions that the kernels declare for a step.
std::vector<Precision> precisions(const BoundPlan& bound, const StepParams& params);

}  // namespace redline
