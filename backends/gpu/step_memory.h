// Executables of both GPU backends keep these alike: the sizes of the memory of steps, the results of a step,
// and the steps that hand rows to each other.
#pragma once

#include "backends/shared/best.h"
#include "backends/shared/products.h"
#include "backends/shared/step_inputs.h"
#include "plan/backend.h"

#include <map>

namespace redline::gpu {

constexpr uint32_t kRing = 2;  // steps whose inputs the host may have written

// Where the hidden rows begin in the results of a step, behind the output or the best of it.
inline uint64_t hidden_at(const Plan& plan) {
    return aligned(std::max(plan.slot_bytes(plan.output), best_bytes(plan)));
}

// The sizes of the memory that steps work in: enough for each of several plans.
struct StepBytes {
    uint64_t arena = 0, scratch = 0, inputs = 0, results = 0;

    // `picked`: of scratch, for picking the best outputs.
    template <class GpuKernel>
    void add(const BoundPlan& bound, uint64_t picked) {
        const Plan& plan = bound.plan;
        arena = std::max(arena, plan.arena_bytes);
        scratch = std::max(scratch, picked);
        for (const auto& kernel : bound.kernels)
            scratch = std::max(scratch, static_cast<const GpuKernel&>(*kernel).scratch(plan));
        const StepKind kind = plan.sizing.pages > 0 ? StepKind::mixed : StepKind::alone;
        inputs = std::max(inputs, StepLayout(plan, plan.max_rows, kind).bytes);
        results = std::max(results, hidden_at(plan) + (plan.hidden ? plan.slot_bytes(plan.hidden) : 0));
    }
};

// The results of the last step, where `at` is memory that the host reads.
class StepResults {
public:
    // `most_best`: outputs that the device can pick.
    void begin(const Plan& plan, const StepParams& params, uint32_t most_best) {
        check_step(plan, params);
        RL_CHECK(params.best <= most_best && params.best_among <= plan.slot(plan.output).width,
                 "the best {} of {} asked of a plan that picks {}", params.best, params.best_among,
                 most_best);
        rows_ = uint32_t(params.tokens.size());
        outputs_ = params.best > 0 ? 0 : uint32_t(params.outputs.size());
        best_.clear();
    }
    void read_best(const StepParams& params, const std::byte* at) {
        if (params.best > 0) best_ = best_in_order(at, params.outputs.size(), params.best_among);
    }
    uint32_t rows() const { return rows_; }
    uint32_t outputs() const { return outputs_; }
    std::span<const Scored> best() const { return best_; }
    std::span<const float> output(const Plan& plan, const std::byte* at) const {
        return {reinterpret_cast<const float*>(at), size_t(outputs_) * plan.slot(plan.output).width};
    }
    std::span<const float> hidden(const Plan& plan, const std::byte* at) const {
        if (!plan.hidden) return {};
        return {reinterpret_cast<const float*>(at + hidden_at(plan)),
                size_t(rows_) * plan.slot(plan.hidden).width};
    }

private:
    uint32_t rows_ = 0, outputs_ = 0;
    std::vector<Scored> best_;
};

// The steps that leave and take each handed slot.
class HandedSlots {
public:
    explicit HandedSlots(const Plan& plan) {
        for (size_t i = 0; i < plan.steps.size(); ++i) {
            if (plan.steps[i].leaves) steps_[plan.steps[i].leaves.index].from = i;
            if (plan.steps[i].takes) steps_[plan.steps[i].takes.index].to = i;
        }
    }
    template <class GpuKernel>
    const GpuKernel& leaver(const BoundPlan& bound, Slot slot) const {
        return static_cast<const GpuKernel&>(*bound.kernels[steps_.at(slot.index).from]);
    }
    // In how many parts each row of a step of few is left as halfs; 0: it is not, or the other kernel takes
    // none.
    template <class GpuKernel, class View>
    uint32_t parts(const BoundPlan& bound, Slot slot, const View& view) const {
        if (!slot || !bound.plan.slot(slot).handed_few) return 0;
        const auto& taker = static_cast<const GpuKernel&>(*bound.kernels[steps_.at(slot.index).to]);
        return taker.takes_halfs(view) ? leaver<GpuKernel>(bound, slot).parts_left(view) : 0;
    }

private:
    struct Pair {
        size_t from = 0, to = 0;
    };
    std::map<int32_t, Pair> steps_;
};

// A step as all kernels see it while they are launched or recorded.
template <class Weights, class Caches>
struct StepView {
    const Plan& plan;
    const Weights& weights;
    const Caches& caches;
    uint32_t rows = 1;                // of the class: at most this many tokens
    uint32_t outputs = 1;             // likewise
    StepKind kind = StepKind::alone;  // several for mixed steps, too

    uint32_t rows_of(Slot s) const { return plan.slot(s).of_outputs ? outputs : rows; }
    uint32_t segments() const { return StepLayout::most_segments(plan, rows, kind); }
    uint32_t width(Slot s) const { return plan.slot(s).width; }
};

}  // namespace redline::gpu
