// Plans on a GPU: what executables of both backends have in common. Those of a group share the memory of
// their steps; kernels leave rows for each other; results are read, and traces are made.
//
// A backend's executable Self derives from StepExecutable<Self, Gpu>, and says by the struct Gpu:
//   Device, Memory, Buffer, Weights, Caches, Kernel
//   Resources, with weights, caches, device and memory: what a plan is recorded with
//   Workspace(device), with arena, scratch and output, and allocate(memory, bytes), which makes the others
//   kScratch, kStaging, enter(device) and host(buffer), as Caches wants them
//   kMostHanded: up to so many rows are left as halfs
//   picks_best(device); picked_bytes(plan): the scratch of picking the best outputs
//   View, from StepView, which is told of rows by take_row(slot), leave_row(slot), take_few(slot, parts,
//     leaver) and leave_few(slot)
// Self has the four parts of a trace:
//   begin_trace(params): gives the step's view, with its inputs on the device
//   trace(view, step): runs a step of the plan; the seconds that it took
//   read_back(slot, bytes, mirror, to): copies a slot to mirror's byte `to`
//   end_trace(params, view): makes the results
#pragma once

#include "backends/gpu/step_memory.h"
#include "plan/guard.h"

#include <memory>

namespace redline::gpu {

template <class Self, class Gpu>
class StepExecutable : public Executable {
public:
    using Device = typename Gpu::Device;
    using Memory = typename Gpu::Memory;
    using Buffer = typename Gpu::Buffer;
    using Resources = typename Gpu::Resources;
    using View = typename Gpu::View;
    using GpuKernel = typename Gpu::Kernel;
    using Group = std::vector<std::unique_ptr<Self>>;

    // Plans that nothing is recorded of yet.
    static Result<Group> make(PlanGroup plans, const Resources& with, Record mode) {
        RL_TRY(Gpu::enter(with.device));
        Group made;
        for (BoundPlan& plan : plans) {
            made.emplace_back(new Self(std::move(plan), with, mode));
            if (!with.memory.guarded()) continue;
            made.back()->arena_gaps_ = guard_arena(made.back()->bound_.plan);
            RL_TRY(share({&made.back(), 1}, with));
        }
        if (!with.memory.guarded()) RL_TRY(share(made, with));
        return made;
    }
    static std::vector<std::unique_ptr<Executable>> given_out(Group made) {
        return {std::make_move_iterator(made.begin()), std::make_move_iterator(made.end())};
    }

    std::span<const float> output() const override {
        return results_.output(bound_.plan, Gpu::host(workspace_->output));
    }
    std::span<const float> hidden() const override {
        return results_.hidden(bound_.plan, Gpu::host(workspace_->output));
    }
    bool mixes() const override { return redline::mixes(bound_); }
    uint32_t most_best() const override {
        return bound_.picks_best && can_pick_best(bound_.plan) && Gpu::picks_best(with_.device) ? kMostBest
                                                                                                : 0;
    }
    std::span<const Scored> best() const override { return results_.best(); }

    Status run_traced(const StepParams& params, const TraceSink& sink) override {
        results_.begin(bound_.plan, params, most_best());
        RL_TRY(Gpu::enter(with_.device));
        const StepShape shape{params.tokens.size(), params.outputs.size(), params.kv_len()};
        const Buffer mirror = RL_TRY(with_.memory.allocate(most_written_bytes(bound_.plan, shape),
                                                           Gpu::kStaging, "traced activations"));
        Self& self = static_cast<Self&>(*this);
        const View view = RL_TRY(self.begin_trace(params));
        for (size_t i = 0; i < bound_.kernels.size(); ++i) {
            if (params.cancel && params.cancel->load(std::memory_order_relaxed)) return error("interrupted");
            const Step& step = bound_.plan.steps[i];
            const double seconds = RL_TRY(self.trace(view, i));
            TraceStep traced{&step, seconds, cost(step.op, bound_.plan, shape), {}};
            uint64_t to = 0;
            for (const Slot s : access(step.op).writes) {
                const uint64_t elements = redline::rows_of(bound_.plan, s, shape) * view.width(s);
                RL_TRY(self.read_back(s, elements * 4, mirror, to));
                traced.written.push_back(
                    {reinterpret_cast<const float*>(Gpu::host(mirror) + to), size_t(elements)});
                to += elements * 4;
            }
            sink(traced);
        }
        return self.end_trace(params, view);
    }

protected:
    StepExecutable(BoundPlan bound, const Resources& with, Record mode)
        : bound_(std::move(bound)), with_(with), mode_(mode), handed_(bound_.plan) {}

    // The step as all of its kernels see it; a backend adds where its memory is.
    View view_of_all(uint32_t rows, StepKind kind) const {
        return {{bound_.plan, with_.weights, with_.caches, rows, std::min(rows, bound_.plan.max_outputs),
                 of_several(kind) ? StepKind::several : kind}};
    }
    // The same as one kernel sees it, with the rows that it takes from another and leaves for another: one
    // row in int8, or a few as halfs where both kernels of a pair do so.
    View view_of(const View& all, size_t index) const {
        View seen = all;
        const Step& step = bound_.plan.steps[index];
        if (all.rows == 1) {
            if (step.takes && bound_.plan.slot(step.takes).handed_one) seen.take_row(step.takes);
            if (step.leaves && bound_.plan.slot(step.leaves).handed_one) seen.leave_row(step.leaves);
        } else if (all.rows <= Gpu::kMostHanded) {
            const uint32_t taken = handed_.template parts<GpuKernel>(bound_, step.takes, all);
            if (handed_.template parts<GpuKernel>(bound_, step.leaves, all) > 0) seen.leave_few(step.leaves);
            if (taken > 0)
                seen.take_few(step.takes, taken, handed_.template leaver<GpuKernel>(bound_, step.takes));
        }
        return seen;
    }
    const GpuKernel& kernel(size_t index) const {
        return static_cast<const GpuKernel&>(*bound_.kernels[index]);
    }

    BoundPlan bound_;
    const Resources with_;
    const Record mode_;
    std::shared_ptr<typename Gpu::Workspace> workspace_;
    StepResults results_;

private:
    // Gives all of them one workspace. Those of guarded memory have gaps of their own in it.
    static Status share(std::span<const std::unique_ptr<Self>> group, const Resources& with) {
        StepBytes bytes;
        for (const auto& one : group)
            bytes.template add<GpuKernel>(one->bound_,
                                          one->most_best() > 0 ? Gpu::picked_bytes(one->bound_.plan) : 0);
        const auto made = std::make_shared<typename Gpu::Workspace>(with.device);
        made->arena = RL_TRY(with.memory.allocate(bytes.arena, Gpu::kScratch, "activations"));
        made->scratch = RL_TRY(with.memory.allocate(bytes.scratch, Gpu::kScratch, "scratch"));
        RL_TRY(made->allocate(with.memory, bytes));
        for (const auto& one : group) {
            if (with.memory.guarded()) RL_TRY(with.memory.set_gaps(made->arena, one->arena_gaps_));
            one->workspace_ = made;
        }
        return {};
    }

    std::vector<ByteRange> arena_gaps_;  // of guarded memory
    HandedSlots handed_;
};

}  // namespace redline::gpu
