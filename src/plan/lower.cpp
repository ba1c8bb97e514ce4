#include "plan/backend.h"

namespace redline {

namespace {

bool is_fused(const Op& op) {
    if (const auto* linear = std::get_if<Linear>(&op))
        return linear->norm || linear->bias || linear->accumulate;
    return std::holds_alternative<LinearGroup>(op) || std::holds_alternative<Gated>(op) ||
           std::holds_alternative<RopeStore>(op) || std::holds_alternative<ExpertGated>(op);
}

// Names the weight of an op for the message that it is not supported.
std::string weight_of(const Op& op, const Plan& plan) {
    Weight w;
    if (const auto* o = std::get_if<Linear>(&op)) w = o->w;
    if (const auto* o = std::get_if<Embed>(&op)) w = o->table;
    if (const auto* o = std::get_if<ExpertLinear>(&op)) w = o->w;
    if (const auto* o = std::get_if<Route>(&op)) w = o->w;
    if (!w) return {};
    const Tensor& tensor = plan.weight(w).tensor;
    return fmt::format(" of {} ({}, {} x {})", tensor.name, tensor.format->name, tensor.shape.rows,
                       tensor.shape.cols);
}

}  // namespace

Result<BoundPlan> lower(const Plan& plan, Backend& backend, bool fuse) {
    BoundPlan bound;
    PlanBuilder out = PlanBuilder::like(plan);

    // Ops still to place, last first, so that a decomposition's parts take the place of their op.
    std::vector<Step> pending(plan.steps.rbegin(), plan.steps.rend());
    std::vector<Step> placed;
    while (!pending.empty()) {
        Step step = std::move(pending.back());
        pending.pop_back();
        std::unique_ptr<Kernel> kernel;
        if (fuse || !is_fused(step.op)) kernel = backend.kernel_for(step.op, out.plan());
        if (kernel) {
            placed.push_back(std::move(step));
            bound.kernels.push_back(std::move(kernel));
            continue;
        }
        const size_t before = out.plan().steps.size();
        if (!decompose(step.op, out))
            return error("{} has no kernel for {}{}", backend.device().name, op_name(step.op),
                         weight_of(step.op, plan));
        const auto& parts = out.plan().steps;
        for (size_t i = parts.size(); i > before; --i) {
            pending.push_back(parts[i - 1]);
            pending.back().layer = step.layer;
        }
    }
    bound.plan = out.plan();
    bound.plan.steps = std::move(placed);
    assign_arena(bound.plan);
    return bound;
}

Result<std::unique_ptr<Backend>> open_backend(std::string_view name, const BackendOptions& options) {
    std::string known;
    for (const BackendEntry* entry : all_backends()) {
        if (entry->name == name) return entry->open(options);
        known += fmt::format("{}{}", known.empty() ? "" : ", ", entry->name);
    }
    return error("no backend is called {}; this build has: {}", name, known);
}

}  // namespace redline
