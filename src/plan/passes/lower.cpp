#include "plan/far_backend.h"
#include "plan/kernel_key.h"
#include "plan/passes/cut.h"
#include "plan/passes/waits.h"
#include "plan/rank_link.h"
#include "plan/stored_weights.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace redline {

Precision loosest(const Precision& a, const Precision& b) {
    const auto of = [](const Rounding& x, const Rounding& y) {
        const uint32_t group = x.block == 0.0   ? y.group
                               : y.block == 0.0 ? x.group
                                                : std::max(x.group, y.group);
        return Rounding{std::max(x.unit, y.unit), std::max(x.block, y.block), group};
    };
    return {of(a.weights, b.weights), of(a.activations, b.activations), of(a.keys, b.keys),
            of(a.values, b.values)};
}

uint64_t rows_of(const Plan& plan, Slot slot, const StepShape& shape) {
    return plan.slot(slot).of_outputs ? shape.outputs : shape.rows;
}

uint64_t most_written_bytes(const Plan& plan, const StepShape& shape) {
    uint64_t most = 4;
    for (const Step& step : plan.steps) {
        uint64_t bytes = 0;
        for (const Slot s : access(step.op).writes) bytes += rows_of(plan, s, shape) * plan.slot(s).width * 4;
        most = std::max(most, bytes);
    }
    return most;
}

template <typename... Ops>
static bool is_any(const Op& op) {
    return (std::holds_alternative<Ops>(op) || ...);
}

bool mixes(const BoundPlan& bound) {
    for (size_t i = 0; i < bound.kernels.size(); ++i) {
        const Op& op = bound.plan.steps[i].op;
        if (is_any<Attention, Attend, BlockScores>(op) && !bound.kernels[i]->mixes()) return false;
    }
    return true;
}

// The sum of a slot's rows over ranks between two steps; null: there is none.
static RankSum* sum_between(std::span<RankSum> sums, Slot slot, size_t from, size_t to) {
    const auto found = std::ranges::find_if(sums, [&](const RankSum& sum) {
        return from < sum.before && sum.before <= to && std::ranges::count(sum.slots, slot) > 0;
    });
    return found == sums.end() ? nullptr : &*found;
}

// A sum over ranks leaves its row to the step behind it. Products with experts may read theirs before the
// launch in front of them is over.
static void hand_sum(Plan& plan, RankSum& sum, const Operand& taken, size_t to) {
    if (sum.before != to || !product_by(By::row, plan.steps[to].op)) return;
    const SlotInfo& rows = plan.slot(taken.x);
    if (rows.of_outputs || rows.width % 32 != 0 || rows.width > kMostHandedSum) return;
    const auto at = size_t(std::ranges::find(sum.slots, taken.x) - sum.slots.begin());
    sum.leaves.resize(sum.slots.size());
    sum.leaves[at] = plan.steps[to].takes = {int32_t(plan.slots.size())};
    plan.slots.push_back({rows.width, false, 0, true, true, false, taken.norm});
}

// Rows are handed to the first step that takes them; later steps with another norm read them as f32.
static void declare_handed_rows(BoundPlan& bound, const std::set<std::string>& refused,
                                std::span<RankSum> sums) {
    Plan& plan = bound.plan;
    for (size_t to = 0; to < plan.steps.size(); ++to) {
        const std::optional<Operand> taken = operand(plan.steps[to].op);
        if (!taken) continue;
        const Kernel& taker = *bound.kernels[to];
        const uint32_t width = plan.slot(taken->x).width;
        const size_t from = last_writer(plan, to, taken->x);
        if (plan.slot(taken->x).of_outputs || width % 32 != 0 || from == to) continue;
        const auto is_refused = [&] {
            return !refused.empty() && refused.contains(handed_verdict(bound, from, to));
        };
        if (RankSum* const sum = sum_between(sums, taken->x, from, to)) {
            if (taker.takes_int8() && !is_refused()) hand_sum(plan, *sum, *taken, to);
            continue;
        }
        const Kernel& leaver = *bound.kernels[from];
        const bool one = taker.takes_int8() && leaver.leaves_int8(),
                   few = plan.max_rows > 1 && taker.takes_few() && leaver.leaves_few();
        if (plan.steps[from].leaves || (!one && !few) || access(plan.steps[from].op).writes[0] != taken->x)
            continue;
        if (is_refused()) continue;
        plan.steps[from].leaves = plan.steps[to].takes = {int32_t(plan.slots.size())};
        plan.slots.push_back({width, false, 0, true, one, few, taken->norm});
    }
}

static void put_in_order(BoundPlan& bound) {
    bound.plan.overlaps = true;
    std::vector<Step> steps;
    std::vector<std::unique_ptr<Kernel>> kernels;
    for (const size_t i : order_of_fewest_waits(bound.plan)) {
        steps.push_back(std::move(bound.plan.steps[i]));
        kernels.push_back(std::move(bound.kernels[i]));
    }
    bound.plan.steps = std::move(steps);
    bound.kernels = std::move(kernels);
}

// ", whose cache is of q4_0; it has f16 and q8_0" for an op that has a kernel with another type of cache.
static std::string other_caches(const Op& op, const Plan& plan, Backend& backend) {
    const std::vector<Cache> caches = caches_of(op);
    const auto held = std::ranges::find_if(caches, [&](Cache c) { return !plan.cache(c).is_state(); });
    if (held == caches.end()) return "";
    std::vector<std::string_view> names;
    Plan other = plan;
    for (const CacheType type : kCacheTypes) {
        for (const Cache c : caches)
            if (!plan.cache(c).is_state()) other.caches[size_t(c.index)].types = type;
        if (backend.kernel_for(op, other)) names.push_back(cache_type_name(type));
    }
    if (names.empty()) return "";
    return fmt::format(" with a cache of {}, but with {}, alike for keys and values",
                       cache_types_name(plan.cache(*held).types), fmt::join(names, ", "));
}

// Places kernels for an op, or for the parts of its decomposition.
static Status place_op(Step first, PlanBuilder& out, Backend& backend, bool fuse, BoundPlan& bound,
                       std::vector<Step>& placed) {
    // Ops still to place, last first, so that a decomposition's parts take the place of their op.
    std::vector<Step> pending = {std::move(first)};
    while (!pending.empty()) {
        Step step = std::move(pending.back());
        pending.pop_back();
        const size_t before = out.plan().steps.size();
        if (fuse || !decompose(step.op, out)) {
            if (auto kernel = backend.kernel_for(step.op, out.plan())) {
                placed.push_back(std::move(step));
                bound.kernels.push_back(std::move(kernel));
                continue;
            }
            if (!decompose(step.op, out) && backend.refuses(step.op, out.plan()))
                return error("{} computes {}{} wrongly; the device cpu runs it", backend.device().name,
                             op_name(step.op), op_matrix(step.op, out.plan()));
            if (out.plan().steps.size() == before)
                return error("{} has no kernel for {}{}{}; the device cpu runs it", backend.device().name,
                             op_name(step.op), op_matrix(step.op, out.plan()),
                             other_caches(step.op, out.plan(), backend));
        }
        const auto& parts = out.plan().steps;
        for (size_t i = parts.size(); i > before; --i) {
            pending.push_back(parts[i - 1]);
            pending.back().layer = step.layer;
        }
    }
    return {};
}

Result<BoundPlan> lower(const Plan& plan, Backend& backend, bool fuse) {
    if (auto* const far = dynamic_cast<FarBackend*>(&backend)) return far->lower_there(plan, fuse);
    std::vector<RankSum> none;
    return lower_rank(plan, backend, fuse, none);
}

Result<BoundPlan> lower_rank(const Plan& plan, Backend& backend, bool fuse, std::vector<RankSum>& sums) {
    BoundPlan bound;
    Plan stored = plan;
    stored.weights = stored_weights(plan.weights, backend);
    PlanBuilder out = PlanBuilder::like(stored);
    std::vector<Step> placed;
    size_t sum = 0;
    for (size_t i = 0; i < stored.steps.size(); ++i) {
        while (sum < sums.size() && sums[sum].before <= i) sums[sum++].before = placed.size();
        RL_TRY(place_op(std::move(stored.steps[i]), out, backend, fuse, bound, placed));
    }
    RL_CHECK(sum == sums.size(), "a sum over ranks is behind the last step");
    bound.plan = out.plan();
    bound.plan.steps = std::move(placed);
    declare_handed_rows(bound, backend.refused(), sums);
    RL_CHECK(sums.empty() || !backend.overlaps(), "steps around sums over ranks would change places");
    if (backend.overlaps()) put_in_order(bound);
    assign_arena(bound.plan);
    // The slices that are searched differ with the width, so a verdict on one width does not cover another.
    const uint32_t outputs = bound.plan.output ? bound.plan.slot(bound.plan.output).width : 0;
    bound.picks_best = !backend.refused().contains(fmt::format("{} of {}", kBestKey, outputs));
    return bound;
}

std::string step_verdict(const BoundPlan& bound, size_t step) {
    return verdict_key(kernel_key(bound.plan.steps[step].op, bound.plan),
                       taken_text(bound.kernels[step]->taken()));
}

std::string handed_verdict(const BoundPlan& bound, size_t from, size_t to) {
    const std::string first = taken_text(bound.kernels[from]->taken()),
                      second = taken_text(bound.kernels[to]->taken());
    const bool both = !first.empty() && !second.empty();
    return verdict_key(handed_key(bound.plan.steps[from].op, bound.plan.steps[to].op, bound.plan),
                       first.empty() && second.empty()
                           ? std::string()
                           : fmt::format("{}{}{}", first, both ? "; " : "", second));
}

// Gives a kernel whose default is refused another variant that is not; false: all are.
static bool take_other(Kernel& kernel, const std::string& key, const Plan& plan,
                       const std::set<std::string>& refused) {
    std::vector<RowClass> classes = {RowClass::one};
    if (plan.max_rows > 1) classes = {RowClass::few, RowClass::some, RowClass::many};
    std::vector<Choices> choices;
    for (const RowClass rows : classes) choices.push_back(kernel.choices(rows));
    for (const Variant& other : other_variants(choices)) {
        for (const RowClass rows : classes) kernel.take(rows, other);
        const std::string taken = taken_text(kernel.taken());
        if (!taken.empty() && kernel.wanted() && !refused.contains(verdict_key(key, taken))) return true;
    }
    return false;
}

std::unique_ptr<Kernel> Backend::kernel_for(const Op& op, const Plan& plan) {
    std::unique_ptr<Kernel> kernel = make_kernel(op, plan);
    if (!kernel) return nullptr;
    if (!variants_.empty() || !refused_.empty()) {
        const std::string key = kernel_key(op, plan);
        for (const RowClass rows : kRowClassList)
            if (const auto found = variants_.find({key, rows}); found != variants_.end())
                kernel->take(rows, found->second);
        if (const std::string taken = taken_text(kernel->taken());
            !taken.empty() && refused_.contains(verdict_key(key, taken)))
            for (const RowClass rows : kRowClassList) kernel->take(rows, {});
        if (taken_text(kernel->taken()).empty() && refused_.contains(key) &&
            !take_other(*kernel, key, plan, refused_))
            return nullptr;
    }
    return kernel->wanted() ? std::move(kernel) : nullptr;
}

Choices Backend::choices_for(const Op& op, const Plan& plan, RowClass rows) {
    const std::unique_ptr<Kernel> kernel = refuses(op, plan) ? nullptr : make_kernel(op, plan);
    return kernel ? kernel->choices(rows) : Choices();
}

}  // namespace redline
