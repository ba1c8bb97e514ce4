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
        RL_TRY(launch_product(launcher, view, {op_.w, view.slot(op_.x), logits, view.rows}));
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

// Launches over (token, place), or over tokens: cut so that none takes long and the grid is not too high.
Status launch_experts(Launcher& launcher, const View& view, const std::string& module,
                      const std::string& kernel, args::ExpertArgs args, uint32_t places,
                      double flops_per_token) {
    const double fit = std::min(Launcher::kFlopsPerLaunch / flops_per_token, double(kMostBlocks / places));
    const uint32_t step = std::max(1u, uint32_t(std::min(fit, 1e6)));
    for (uint32_t first = 0; first < view.rows; first += step) {
        const uint32_t tokens = std::min(step, view.rows - first);
        args.first_token = first;
        RL_TRY(launcher.launch(module, kernel,
                               {row_blocks(args.rows, 1, launcher.device()), tokens * places, 1, kThreads},
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
    explicit ExpertLinearKernel(const ExpertLinear& op) : op_(op) {}

    Status launch(Launcher& launcher, const View& view) const override {
        args::ExpertArgs args = expert_args(view, op_.w, op_.x, op_.y, op_.ids, op_.used);
        args.per_expert = op_.per_expert;
        args.scales = op_.scales ? view.slot(op_.scales) : nullptr;
        const std::string module = view.weights[op_.w].layout->name;
        return launch_experts(launcher, view, module, "expert_" + module, args, op_.scales ? 1 : op_.used,
                              2.0 * op_.used * double(args.rows) * double(args.cols));
    }

private:
    ExpertLinear op_;
};

class ExpertGatedKernel : public HipKernel {
public:
    explicit ExpertGatedKernel(const ExpertGated& op) : op_(op) {}

    Status launch(Launcher& launcher, const View& view) const override {
        args::ExpertArgs args = expert_args(view, op_.gate, op_.x, op_.y, op_.ids, op_.used);
        args.up = view.weights[op_.up].matrix();
        args.act = uint32_t(op_.act);
        const std::string module = view.weights[op_.gate].layout->name;
        return launch_experts(launcher, view, module, "expert_gated_" + module, args, op_.used,
                              4.0 * op_.used * double(args.rows) * double(args.cols));
    }

private:
    ExpertGated op_;
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
        return has_layout(o->w) ? std::make_unique<ExpertLinearKernel>(*o) : nullptr;
    if (const auto* o = std::get_if<ExpertGated>(&op)) {
        if (plan.weight(o->gate).tensor.format != plan.weight(o->up).tensor.format) return nullptr;
        return has_layout(o->gate) ? std::make_unique<ExpertGatedKernel>(*o) : nullptr;
    }
    return nullptr;
}

}  // namespace redline::hip
