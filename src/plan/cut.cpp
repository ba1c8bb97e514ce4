#include "plan/cut.h"

#include <algorithm>
#include <set>

namespace redline {

namespace {

std::string step_text(const Plan& plan, size_t step) {
    return fmt::format("step {} ({} of layer {})", step, op_name(plan.steps[step].op),
                       plan.steps[step].layer);
}

// Of each step, and of the end: the slots that it or a later one, or the host, reads as steps before it left
// them.
std::vector<std::vector<Slot>> crossing_slots(const Plan& plan) {
    const size_t end = plan.steps.size();
    std::vector<size_t> written(plan.slots.size(), end);  // by which step first
    std::vector<Access> used;
    for (size_t i = 0; i < end; ++i) {
        used.push_back(access(plan.steps[i].op));
        for (const Slot slot : used[i].writes)
            written[size_t(slot.index)] = std::min(written[size_t(slot.index)], i);
    }
    std::set<int32_t> read;
    if (plan.output) read.insert(plan.output.index);
    std::vector<std::vector<Slot>> all(end + 1);
    for (size_t i = end;; --i) {
        for (const int32_t slot : read)
            if (written[size_t(slot)] < i) all[i].push_back({slot});
        if (i == 0) return all;
        for (const Slot slot : used[i - 1].writes) read.erase(slot.index);
        for (const Slot slot : used[i - 1].reads) read.insert(slot.index);
    }
}

bool can_cross(const Plan& plan, const std::vector<Slot>& slots) {
    return slots.size() == 1 && !plan.slot(slots[0]).of_outputs;
}

// The only one of `slots`, which cross a cut.
Result<Slot> crossing(const Plan& plan, size_t before, const std::vector<Slot>& slots) {
    if (can_cross(plan, slots)) return slots[0];
    std::set<size_t> writers;
    for (const Slot slot : slots) writers.insert(last_writer(plan, before, slot));
    std::string from;
    for (const size_t step : writers) from += (from.empty() ? "" : ", ") + step_text(plan, step);
    const std::string at = "a plan cannot be cut before " + step_text(plan, before);
    if (slots.size() == 1) return error("{}: {} leaves the rows of outputs only", at, from);
    return error("{}: one slot can cross, {} do{}{}", at, slots.size(), from.empty() ? "" : ", written by ",
                 from);
}

// What the parts of one place have together, in the order of their first use.
struct Shared {
    std::vector<Weight> weights;
    std::vector<WeightInfo> weight_infos;
    std::vector<Cache> caches;
    std::vector<CacheInfo> cache_infos;
};

// Moves ops to a part: what they use is numbered in the order of its first use.
class Mover {
public:
    Mover(const Plan& whole, Plan& part, Shared& shared) : whole_(whole), part_(part), shared_(shared) {}

    Op moved(Op op) {
        std::visit(
            [this](auto& o) { o.visit_indices([this](auto&... index) { (this->renumber(index), ...); }); },
            op);
        return op;
    }
    void renumber(Slot& slot) { renumber(slot, slots_, whole_.slots, part_.slots); }
    void renumber(Weight& weight) { renumber(weight, shared_.weights, whole_.weights, shared_.weight_infos); }
    void renumber(Cache& cache) { renumber(cache, shared_.caches, whole_.caches, shared_.cache_infos); }
    void renumber(uint32_t& rope) {
        Rope index{int32_t(rope)};
        renumber(index, ropes_, whole_.ropes, part_.ropes);
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
    Plan& part_;
    Shared& shared_;
    std::vector<Slot> slots_;
    std::vector<Rope> ropes_;
};

// Steps [first, last), without weights and caches; `input` and `output` are slots of the whole plan.
Plan part_of(const Plan& whole, size_t first, size_t last, Slot input, Slot output, Shared& shared) {
    Plan plan;
    plan.sizing = whole.sizing;
    plan.max_rows = whole.max_rows;
    plan.max_outputs = last < whole.steps.size() ? whole.max_rows : whole.max_outputs;
    Mover mover(whole, plan, shared);
    mover.renumber(input);
    plan.input = input;
    if (first > 0) plan.steps.push_back({Input{input}, whole.steps[first].layer});
    for (size_t i = first; i < last; ++i)
        plan.steps.push_back({mover.moved(whole.steps[i].op), whole.steps[i].layer});
    mover.renumber(output);
    plan.output = output;
    return plan;
}

PlanPart with_shared(Plan plan, const Shared& shared) {
    plan.weights = shared.weight_infos;
    plan.caches = shared.cache_infos;
    for (const Step& step : plan.steps) {
        const Status fits = check(step.op, plan);
        RL_CHECK(fits.ok(), "cutting a plan: {}", fits.error().message);
    }
    assign_arena(plan);
    return {std::move(plan), shared.weights, shared.caches};
}

// No place but `own` has a cache of its.
Status check_caches(const Plan& whole, size_t before, std::span<const Shared> all, const Shared& own) {
    for (const Shared& other : all)
        for (const Cache cache : other.caches)
            if (&other != &own && std::find(own.caches.begin(), own.caches.end(), cache) != own.caches.end())
                return error("a plan cannot be cut before {}: cache {} is used on both sides",
                             step_text(whole, before), cache.index);
    return {};
}

}  // namespace

Result<std::vector<PlanPart>> cut(const Plan& plan, const std::vector<size_t>& before,
                                  std::vector<size_t> places) {
    if (places.empty())
        for (size_t i = 0; i <= before.size(); ++i) places.push_back(i);
    RL_CHECK(places.size() == before.size() + 1, "{} cuts for parts at {} places", before.size(),
             places.size());
    const std::vector<std::vector<Slot>> slots = crossing_slots(plan);
    std::vector<Shared> shared(*std::max_element(places.begin(), places.end()) + 1);
    std::vector<Plan> plans;
    size_t first = 0;
    Slot input = plan.input;
    for (size_t i = 0; i <= before.size(); ++i) {
        const bool is_last = i == before.size();
        const size_t last = is_last ? plan.steps.size() : before[i];
        if (last <= first || (!is_last && last >= plan.steps.size()))
            return error("a plan of {} steps can be cut before steps {} to {}, not before step {}",
                         plan.steps.size(), first + 1, plan.steps.size() - 1, last);
        const Slot output = is_last ? plan.output : RL_TRY(crossing(plan, last, slots[last]));
        plans.push_back(part_of(plan, first, last, input, output, shared[places[i]]));
        RL_TRY(check_caches(plan, first, shared, shared[places[i]]));
        first = last;
        input = output;
    }
    std::vector<PlanPart> parts;
    for (size_t i = 0; i < plans.size(); ++i)
        parts.push_back(with_shared(std::move(plans[i]), shared[places[i]]));
    return parts;
}

std::vector<Block> blocks(const Plan& plan) {
    const std::vector<std::vector<Slot>> slots = crossing_slots(plan);
    std::vector<Block> all;
    size_t first = 0;
    for (size_t i = 1; i <= plan.steps.size(); ++i) {
        if (i < plan.steps.size() && !can_cross(plan, slots[i])) continue;
        all.push_back({first, i});
        first = i;
    }
    return all;
}

}  // namespace redline
