#include "plan/cut.h"

#include <algorithm>
#include <set>

namespace redline {

namespace {

std::string step_text(const Plan& plan, size_t step) {
    return fmt::format("step {} ({} of layer {})", step, op_name(plan.steps[step].op),
                       plan.steps[step].layer);
}

// Whether a step from number `first` on, or the host, reads what the slot holds before it.
bool read_later(const Plan& plan, size_t first, Slot slot) {
    const auto has = [&](const std::vector<Slot>& slots) {
        return std::find(slots.begin(), slots.end(), slot) != slots.end();
    };
    for (size_t i = first; i < plan.steps.size(); ++i) {
        const Access used = access(plan.steps[i].op);
        if (has(used.reads)) return true;
        if (has(used.writes)) return false;
    }
    return plan.output == slot;
}

Result<Slot> crossing(const Plan& plan, size_t before) {
    std::vector<Slot> slots;
    std::set<size_t> writers;
    for (int32_t i = 0; i < int32_t(plan.slots.size()); ++i) {
        const size_t writer = last_writer(plan, before, {i});
        if (writer == before || !read_later(plan, before, {i})) continue;
        slots.push_back({i});
        writers.insert(writer);
    }
    std::string from;
    for (const size_t step : writers) from += (from.empty() ? "" : ", ") + step_text(plan, step);
    const std::string at = "a plan cannot be cut before " + step_text(plan, before);
    if (slots.size() != 1)
        return error("{}: one slot can cross, {} do{}{}", at, slots.size(),
                     from.empty() ? "" : ", written by ", from);
    if (plan.slot(slots[0]).of_outputs) return error("{}: {} leaves the rows of outputs only", at, from);
    return slots[0];
}

// Moves ops to a part: what they use is numbered in the order of its first use.
class Mover {
public:
    Mover(const Plan& whole, PlanPart& part) : whole_(whole), part_(part) {}

    Op moved(Op op) {
        std::visit(
            [this](auto& o) { o.visit_indices([this](auto&... index) { (this->renumber(index), ...); }); },
            op);
        return op;
    }
    void renumber(Slot& slot) { renumber(slot, slots_, whole_.slots, part_.plan.slots); }
    void renumber(Weight& weight) { renumber(weight, part_.weights, whole_.weights, part_.plan.weights); }
    void renumber(Cache& cache) { renumber(cache, part_.caches, whole_.caches, part_.plan.caches); }
    void renumber(uint32_t& rope) {
        Rope index{int32_t(rope)};
        renumber(index, ropes_, whole_.ropes, part_.plan.ropes);
        rope = uint32_t(index.index);
    }

private:
    struct Rope {
        int32_t index = -1;
        explicit operator bool() const { return index >= 0; }
        bool operator==(const Rope&) const = default;
    };

    template <typename Index, typename Info>
    void renumber(Index& index, std::vector<Index>& kept, const std::vector<Info>& from,
                  std::vector<Info>& to) {
        if (!index) return;
        const auto found = std::find(kept.begin(), kept.end(), index);
        const Index own{int32_t(found - kept.begin())};
        if (found == kept.end()) {
            kept.push_back(index);
            to.push_back(from[size_t(index.index)]);
        }
        index = own;
    }

    const Plan& whole_;
    PlanPart& part_;
    std::vector<Slot> slots_;
    std::vector<Rope> ropes_;
};

// Steps [first, last); `input` and `output` are slots of the whole plan.
PlanPart part_of(const Plan& whole, size_t first, size_t last, Slot input, Slot output) {
    PlanPart part;
    Plan& plan = part.plan;
    plan.sizing = whole.sizing;
    plan.max_rows = whole.max_rows;
    plan.max_outputs = last < whole.steps.size() ? whole.max_rows : whole.max_outputs;
    Mover mover(whole, part);
    mover.renumber(input);
    plan.input = input;
    if (first > 0) plan.steps.push_back({Input{input}, whole.steps[first].layer});
    for (size_t i = first; i < last; ++i)
        plan.steps.push_back({mover.moved(whole.steps[i].op), whole.steps[i].layer});
    mover.renumber(output);
    plan.output = output;
    for (const Step& step : plan.steps) {
        const Status fits = check(step.op, plan);
        RL_CHECK(fits.ok(), "cutting a plan: {}", fits.error().message);
    }
    assign_arena(plan);
    return part;
}

// The last part uses no cache of an earlier one.
Status check_caches(const Plan& whole, size_t before, std::span<const PlanPart> parts) {
    const std::vector<Cache>& own = parts.back().caches;
    for (const PlanPart& earlier : parts.first(parts.size() - 1))
        for (const Cache cache : earlier.caches)
            if (std::find(own.begin(), own.end(), cache) != own.end())
                return error("a plan cannot be cut before {}: cache {} is used on both sides",
                             step_text(whole, before), cache.index);
    return {};
}

}  // namespace

Result<std::vector<PlanPart>> cut(const Plan& plan, const std::vector<size_t>& before) {
    std::vector<PlanPart> parts;
    size_t first = 0;
    Slot input = plan.input;
    for (size_t i = 0; i <= before.size(); ++i) {
        const bool is_last = i == before.size();
        const size_t last = is_last ? plan.steps.size() : before[i];
        if (last <= first || (!is_last && last >= plan.steps.size()))
            return error("a plan of {} steps can be cut before steps {} to {}, not before step {}",
                         plan.steps.size(), first + 1, plan.steps.size() - 1, last);
        const Slot output = is_last ? plan.output : RL_TRY(crossing(plan, last));
        parts.push_back(part_of(plan, first, last, input, output));
        if (i > 0) RL_TRY(check_caches(plan, first, parts));
        first = last;
        input = output;
    }
    return parts;
}

}  // namespace redline
