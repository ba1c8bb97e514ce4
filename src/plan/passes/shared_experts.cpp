#include "plan/passes/shared_experts.h"

#include <algorithm>

namespace redline {

namespace {

// Reads the steps of a plan one by one, each as the expected op.
class Following {
public:
    Following(const Plan& plan, size_t first) : plan_(plan), first_(first), at_(first) {}

    template <typename T>
    const T* next() {
        if (at_ == plan_.steps.size() || plan_.steps[at_].layer != plan_.steps[first_].layer) return nullptr;
        const T* const op = std::get_if<T>(&plan_.steps[at_].op);
        if (op) ++at_;
        return op;
    }
    // The gated product, or that with one matrix.
    const Product* next(By by, bool gated) {
        const Product* const op = next<Product>();
        return op && op->by() == by && op->act.has_value() == gated && (gated || op->count == 1) ? op
                                                                                                 : nullptr;
    }
    size_t end() const { return at_; }

private:
    const Plan& plan_;
    size_t first_, at_;
};

// Matches a shared expert with a sigmoid router for it alone, or without one.
SharedExpert shared_expert(Following& steps, Slot x, Slot into) {
    const auto* route = steps.next<Route>();
    const By by = route ? By::expert : By::row;
    const Product* gated = steps.next(by, true);
    const Product* down = steps.next(by, false);
    if (!gated || !down || gated->x != x || gated->norm || down->x != gated->y() || down->y() != into ||
        !down->accumulate || down->norm || down->bias())
        return {};
    SharedExpert shared = {{}, gated->w(0), gated->w(1), down->w(), {}, {}, gated->y(), *gated->act};
    if (!route) return shared;
    const bool by_sigmoid = route->x == x && route->used == 1 && route->gating == Gating::sigmoid &&
                            !route->normalise && route->scale == 1.0f && !route->bias && !route->table &&
                            !route->norm && route->groups.count == 1;
    const bool fits = gated->experts.ids == route->ids && !gated->bias(0) && !gated->bias(1) &&
                      down->experts.ids == route->ids && down->experts.scales == route->scales;
    if (!by_sigmoid || !fits) return {};
    shared.router = route->w;
    shared.ids = route->ids;
    shared.scale = route->scales;
    return shared;
}

ExpertBlock block_of(Following& steps, const Plan& plan) {
    const auto* norm = steps.next<RmsNorm>();
    const auto* route = steps.next<Route>();
    const Product* gated = steps.next(By::expert, true);
    const Product* down = steps.next(By::expert, false);
    if (!norm || !route || !gated || !down) return {};
    const bool fits = norm->width == plan.slot(norm->x).width && !norm->gate && !norm->adds &&
                      norm->scale == 1.0f && norm->y != norm->x && route->x == norm->y && !route->norm &&
                      gated->x == norm->y && gated->experts.ids == route->ids && down->x == gated->y() &&
                      down->experts.per_expert && down->experts.ids == route->ids &&
                      down->experts.scales == route->scales && down->y() == norm->x;
    if (!fits) return {};
    ExpertBlock block{*norm, *route, *gated, *down};
    block.shared = shared_expert(steps, norm->y, norm->x);
    // A gate of several matrices would be taken for several experts.
    if (block.shared && plan.weight(block.shared.gate).tensor.shape.count > 1) return {};
    return block;
}

bool reads_any(const Plan& plan, size_t first, const std::vector<Slot>& slots) {
    const auto is_one = [&](Slot s) { return std::find(slots.begin(), slots.end(), s) != slots.end(); };
    for (size_t i = first; i < plan.steps.size(); ++i) {
        const Access used = access(plan.steps[i].op);
        if (std::any_of(used.reads.begin(), used.reads.end(), is_one)) return true;
    }
    return is_one(plan.output) || is_one(plan.hidden);
}

}  // namespace

Plan with_shared_experts(Plan plan, std::vector<size_t>* starts) {
    std::vector<Step> steps;
    for (size_t i = 0; i < plan.steps.size();) {
        Following following(plan, i);
        const ExpertBlock block = block_of(following, plan);
        if (starts) starts->push_back(i);
        if (!block.shared || reads_any(plan, following.end(), block.access().scratch)) {
            steps.push_back(plan.steps[i++]);
            continue;
        }
        steps.push_back({block, plan.steps[i].layer});
        i = following.end();
    }
    plan.steps = std::move(steps);
    return plan;
}

}  // namespace redline
