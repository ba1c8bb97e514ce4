// Mixture of experts: Route picks experts per row; ExpertLinear and ExpertGated run the picked ones.
#include "steps.h"

#include <algorithm>

namespace redline::vulkan {

namespace {

class RouteKernel : public VulkanKernel {
public:
    RouteKernel(const Route& op, const Plan& plan)
        : op_(op), experts_(uint32_t(plan.weight(op.w).tensor.shape.rows)) {}

    uint64_t scratch(const Plan& plan) const override {
        return aligned(uint64_t(experts_) * 4 * plan.max_rows);
    }

    Status record(Recorder& recorder, const View& view) const override {
        recorder.claim_scratch();
        const Binding logits = view.scratch_at(0, uint64_t(experts_) * 4 * view.rows);
        Product product{op_.w, logits, view.rows};
        product.stride = experts_;
        // The choice must not depend on how many rows are routed together: always the kernel of few rows, in
        // f32.
        Activations x(op_.x, {});
        constexpr Path kWay = Path::floats;
        RL_TRY(x.prepare(recorder, view, std::span(&kWay, 1)));
        RL_TRY(record_product(recorder, view, product, x, kWay));
        recorder.barrier();
        const args::RouteArgs push = {
            experts_, op_.used, uint32_t(op_.gating), op_.normalise, op_.selection_bias ? 1u : 0u, op_.scale};
        return recorder.dispatch({"route", 5, 1, {recorder.device().subgroup(), experts_, op_.used}},
                                 {logits, view.slot(op_.ids), view.slot(op_.scales), view.step,
                                  view.vector(op_.selection_bias, view.step)},
                                 push, {view.rows});
    }

private:
    Route op_;
    uint32_t experts_;
};

args::ExpertArgs expert_args(const PlacedWeight& w, const WeightPart& part, const Shape& shape,
                             uint32_t used) {
    args::ExpertArgs push = {};
    push.rows = uint32_t(shape.rows);
    push.cols = uint32_t(shape.cols);
    push.units = w.units(part);
    push.experts = uint32_t(shape.count);
    push.used = used;
    push.first_flat = uint32_t(part.first);
    push.flat_rows = uint32_t(part.rows);
    return push;
}

// Dot products in int8 for every number of rows: experts' rows come one by one.
bool by_dots(const Device& device, const Tensor& tensor) {
    return device.use_dot() && weight_layout(*tensor.format)->quantized() &&
           fits_shared(device, tensor.shape.cols);
}

class ExpertLinearKernel : public VulkanKernel {
public:
    ExpertLinearKernel(const ExpertLinear& op, const Plan& plan, const Device& device)
        : op_(op), dots_(by_dots(device, plan.weight(op.w).tensor)) {}

    Precision precision(uint64_t) const override {
        return dots_ ? Precision::int8_activations : Precision::f32;
    }

    Status record(Recorder& recorder, const View& view) const override {
        const PlacedWeight& w = view.weight(op_.w);
        const Shape& shape = view.plan.weight(op_.w).tensor.shape;
        const std::vector<uint32_t> constants = {kThreads, uint32_t(shape.cols)};
        for (size_t i = 0; i < w.parts.size(); ++i) {
            if (i > 0 && op_.scales) recorder.barrier();  // each part adds to the same sums
            args::ExpertArgs push = expert_args(w, w.parts[i], shape, op_.used);
            push.per_expert = op_.per_expert;
            push.weighted = op_.scales ? 1 : 0;
            const uint64_t entries = uint64_t(view.rows) * (op_.scales ? 1 : op_.used);
            RL_TRY(recorder.dispatch(
                {fmt::format("expert_{}.{}", dots_ ? "dot" : "vec", w.layout->name), 6, 1, constants},
                {w.parts[i].buffer, view.slot(op_.x), view.slot(op_.y), view.step, view.slot(op_.ids),
                 op_.scales ? view.slot(op_.scales) : view.step},
                push, {vector_groups(shape.rows, 1, recorder.device()), entries},
                2.0 * double(view.rows) * op_.used * double(shape.rows) * double(shape.cols)));
        }
        return {};
    }

private:
    ExpertLinear op_;
    bool dots_;
};

class ExpertGatedKernel : public VulkanKernel {
public:
    ExpertGatedKernel(const ExpertGated& op, const Plan& plan, const Device& device)
        : op_(op), dots_(by_dots(device, plan.weight(op.gate).tensor)) {}

    Precision precision(uint64_t) const override {
        return dots_ ? Precision::int8_activations : Precision::f32;
    }

    Status record(Recorder& recorder, const View& view) const override {
        const PlacedWeight &gate = view.weight(op_.gate), &up = view.weight(op_.up);
        const Shape& shape = view.plan.weight(op_.gate).tensor.shape;
        const std::vector<uint32_t> constants = {kThreads, uint32_t(shape.cols)};
        for (size_t i = 0; i < gate.parts.size(); ++i) {
            args::ExpertArgs push = expert_args(gate, gate.parts[i], shape, op_.used);
            push.act = uint32_t(op_.act);
            RL_TRY(recorder.dispatch(
                {fmt::format("expert_gated_{}.{}", dots_ ? "dot" : "vec", gate.layout->name), 5, 2,
                 constants},
                {gate.parts[i].buffer, up.parts[i].buffer, view.slot(op_.x), view.slot(op_.y), view.step,
                 view.slot(op_.ids)},
                push, {vector_groups(shape.rows, 1, recorder.device()), uint64_t(view.rows) * op_.used},
                4.0 * double(view.rows) * op_.used * double(shape.rows) * double(shape.cols)));
        }
        return {};
    }

private:
    ExpertGated op_;
    bool dots_;
};

}  // namespace

std::unique_ptr<Kernel> make_expert_kernel(const Op& op, const Plan& plan, const Device& device) {
    const auto has_layout = [&](Weight w) { return weight_layout(*plan.weight(w).tensor.format) != nullptr; };
    if (const auto* o = std::get_if<Route>(&op))
        return has_layout(o->w) ? std::make_unique<RouteKernel>(*o, plan) : nullptr;
    if (const auto* o = std::get_if<ExpertLinear>(&op))
        return has_layout(o->w) ? std::make_unique<ExpertLinearKernel>(*o, plan, device) : nullptr;
    if (const auto* o = std::get_if<ExpertGated>(&op)) {
        if (plan.weight(o->gate).tensor.format != plan.weight(o->up).tensor.format) return nullptr;
        return has_layout(o->gate) ? std::make_unique<ExpertGatedKernel>(*o, plan, device) : nullptr;
    }
    return nullptr;
}

}  // namespace redline::vulkan
