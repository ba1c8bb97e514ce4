// Mixture of experts: Route picks experts per row; ExpertLinear and ExpertGated run the picked ones.
#include "steps.h"

namespace redline::hip {

namespace {

class RouteKernel : public HipKernel {
public:
    RouteKernel(const Route& op, const Plan& plan)
        : op_(op), experts_(uint32_t(plan.weight(op.w).tensor.shape.rows)) {}

    uint64_t scratch(const Plan& plan) const override {
        return aligned(uint64_t(experts_) * 4 * plan.max_rows);
    }

    Status launch(Launcher& launcher, const View& view) const override {
        float* logits = view.scratch_at(0);
        // The choice must not depend on how many rows are routed together: always in f32.
        RL_TRY(launch_floats(launcher, view, op_.w, view.slot(op_.x), logits, view.rows));
        const args::RouteArgs args = {view.step,
                                      logits,
                                      view.vector(op_.selection_bias),
                                      view.ids(op_.ids),
                                      view.slot(op_.scales),
                                      experts_,
                                      op_.used,
                                      uint32_t(op_.gating),
                                      op_.normalise,
                                      op_.scale};
        return launcher.launch("vector", "route", {view.rows, 1, 1, kThreads}, args);
    }

private:
    Route op_;
    uint32_t experts_;
};

// Dot products in int8 when each block can quantize `activations` by itself.
bool by_dots(const Tensor& tensor, uint64_t activations) {
    return weight_layout(*tensor.format)->quantized() && own_bytes(activations) <= kMostShared;
}

// Launches over (token, place), or over tokens: cut so that none takes long and the grid is not too high.
// `activations`: that a block quantizes, or 0.
Status launch_experts(Launcher& launcher, const View& view, const std::string& module,
                      const std::string& kernel, args::ExpertArgs args, uint32_t places,
                      double flops_per_token, uint64_t activations) {
    const Device& device = launcher.device();
    const uint32_t threads = activations ? device.report().dot_threads() : kThreads;
    const uint32_t blocks = blocks_for(args.rows, threads / device.report().wave());
    const double fit = std::min(flops_per_launch(launcher.device().report()) / flops_per_token,
                                double(kMostBlocks / places));
    const uint32_t step = std::max(1u, uint32_t(std::min(fit, 1e6)));
    for (uint32_t first = 0; first < view.rows; first += step) {
        const uint32_t tokens = std::min(step, view.rows - first);
        args.first_token = first;
        RL_TRY(launcher.launch(module, kernel, {blocks, tokens * places, 1, threads, own_bytes(activations)},
                               args, flops_per_token * tokens));
    }
    return {};
}

args::ExpertArgs expert_args(const View& view, Weight w, Slot x, Slot y, Slot ids, uint32_t used) {
    const Shape& shape = view.plan.weight(w).tensor.shape;
    args::ExpertArgs args = {};
    args.step = view.step;
    args.w = view.weights[w].matrix();
    args.x = view.slot(x);
    args.y = view.slot(y);
    args.ids = view.ids(ids);
    args.rows = uint32_t(shape.rows);
    args.cols = uint32_t(shape.cols);
    args.experts = uint32_t(shape.count);
    args.used = used;
    return args;
}

class ExpertLinearKernel : public HipKernel {
public:
    ExpertLinearKernel(const ExpertLinear& op, const Plan& plan) : op_(op) {
        const Tensor& tensor = plan.weight(op.w).tensor;
        // Weighted, a block does all places of a token, which have rows of their own or share one.
        const uint64_t rows = op.scales && op.per_expert ? op.used : 1;
        if (by_dots(tensor, tensor.shape.cols * rows)) activations_ = tensor.shape.cols * rows;
    }

    Precision precision(uint64_t) const override {
        return activations_ ? Precision::int8_activations : Precision::f32;
    }

    Status launch(Launcher& launcher, const View& view) const override {
        args::ExpertArgs args = expert_args(view, op_.w, op_.x, op_.y, op_.ids, op_.used);
        args.per_expert = op_.per_expert;
        args.scales = op_.scales ? view.slot(op_.scales) : nullptr;
        const std::string module = view.weights[op_.w].layout->name;
        return launch_experts(launcher, view, module, (activations_ ? "expert_dot_" : "expert_") + module,
                              args, op_.scales ? 1 : op_.used,
                              2.0 * op_.used * double(args.rows) * double(args.cols), activations_);
    }

private:
    ExpertLinear op_;
    uint64_t activations_ = 0;  // that a block quantizes; 0: none
};

class ExpertGatedKernel : public HipKernel {
public:
    ExpertGatedKernel(const ExpertGated& op, const Plan& plan) : op_(op) {
        const Tensor& tensor = plan.weight(op.gate).tensor;
        if (by_dots(tensor, tensor.shape.cols)) activations_ = tensor.shape.cols;
    }

    Precision precision(uint64_t) const override {
        return activations_ ? Precision::int8_activations : Precision::f32;
    }

    Status launch(Launcher& launcher, const View& view) const override {
        args::ExpertArgs args = expert_args(view, op_.gate, op_.x, op_.y, op_.ids, op_.used);
        args.up = view.weights[op_.up].matrix();
        args.act = uint32_t(op_.act);
        const std::string module = view.weights[op_.gate].layout->name;
        return launch_experts(launcher, view, module,
                              (activations_ ? "expert_gated_dot_" : "expert_gated_") + module, args, op_.used,
                              4.0 * op_.used * double(args.rows) * double(args.cols), activations_);
    }

private:
    ExpertGated op_;
    uint64_t activations_ = 0;  // that a block quantizes; 0: none
};

}  // namespace

std::unique_ptr<Kernel> make_expert_kernel(const Op& op, const Plan& plan, const Device&) {
    const auto has_layout = [&](Weight w) { return weight_layout(*plan.weight(w).tensor.format) != nullptr; };
    if (const auto* o = std::get_if<Route>(&op)) {
        if (plan.weight(o->w).tensor.shape.rows > args::kMostExperts || o->used > args::kMostUsed)
            return nullptr;
        return has_layout(o->w) ? std::make_unique<RouteKernel>(*o, plan) : nullptr;
    }
    if (const auto* o = std::get_if<ExpertLinear>(&op))
        return has_layout(o->w) ? std::make_unique<ExpertLinearKernel>(*o, plan) : nullptr;
    if (const auto* o = std::get_if<ExpertGated>(&op)) {
        if (plan.weight(o->gate).tensor.format != plan.weight(o->up).tensor.format) return nullptr;
        return has_layout(o->gate) ? std::make_unique<ExpertGatedKernel>(*o, plan) : nullptr;
    }
    return nullptr;
}

}  // namespace redline::hip
