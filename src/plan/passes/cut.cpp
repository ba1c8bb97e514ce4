#include "plan/passes/cut.h"

#include <algorithm>
#include <set>

namespace redline {

namespace {

std::string step_text(const Plan& plan, size_t step) {
    return fmt::format("step {} ({} of layer {})", step, op_name(plan.steps[step].op),
                       plan.steps[step].layer);
}

// For each step, and for the end: the slots written before it that it, a later step, or the host reads
// unchanged.
std::vector<std::vector<Slot>> crossing_slots(const Plan& plan) {
    const size_t end = plan.steps.size();
    std::vector<size_t> written(plan.slots.size(), end);  // the first step that writes it
    std::vector<Access> used;
    for (size_t i = 0; i < end; ++i) {
        used.push_back(access(plan.steps[i].op));
        for (const Slot slot : used[i].writes)
            written[size_t(slot.index)] = std::min(written[size_t(slot.index)], i);
    }
    std::set<int32_t> read;
    for (const Slot left : {plan.output, plan.hidden})
        if (left) read.insert(left.index);
    std::vector<std::vector<Slot>> all(end + 1);
    for (size_t i = end;; --i) {
        for (const int32_t slot : read)
            if (written[size_t(slot)] < i) all[i].push_back({slot});
        if (i == 0) return all;
        for (const Slot slot : used[i - 1].writes) read.erase(slot.index);
        for (const Slot slot : used[i - 1].reads) read.insert(slot.index);
    }
}

bool of_all_rows(const Plan& plan, const std::vector<Slot>& slots) {
    return std::none_of(slots.begin(), slots.end(), [&](Slot s) { return plan.slot(s).of_outputs; });
}

// Slots of outputs alone must not cross a cut.
Status check_crossing(const Plan& plan, size_t before, const std::vector<Slot>& slots) {
    for (const Slot slot : slots)
        if (plan.slot(slot).of_outputs)
            return error("a plan cannot be cut before {}: {} leaves the rows of outputs only",
                         step_text(plan, before), step_text(plan, last_writer(plan, before, slot)));
    return {};
}

// The slots that cross between all layers: the residual, and in some architectures each layer's per-token
// input.
std::vector<Slot> lasting_slots(const Plan& plan, const std::vector<std::vector<Slot>>& crossing) {
    std::vector<size_t> between;
    for (size_t i = 1; i < plan.steps.size(); ++i)
        if (plan.steps[i].layer != plan.steps[i - 1].layer) between.push_back(i);
    if (between.size() < 2) return {};
    between.pop_back();  // behind the last layer is the output
    std::vector<Slot> lasting = crossing[between[0]];
    for (const size_t i : between)
        std::erase_if(lasting, [&](Slot slot) { return std::ranges::count(crossing[i], slot) == 0; });
    return lasting;
}

// The slots that each part takes and leaves, in the order of their numbers. A part takes what it reads
// without having written it, and leaves what a later part takes before another part writes it.
struct Flow {
    std::vector<std::vector<Slot>> takes, leaves;
};

Flow flow_of(const Plan& plan, const std::vector<size_t>& ends) {
    const size_t parts = ends.size();
    Flow flow{std::vector<std::vector<Slot>>(parts), std::vector<std::vector<Slot>>(parts)};
    std::vector<size_t> writer(plan.slots.size(), parts);  // the last part that wrote it; none yet
    std::vector<std::set<int32_t>> takes(parts), leaves(parts);
    for (size_t part = 0, step = 0; part < parts; ++part)
        for (; step < ends[part]; ++step) {
            const Access used = access(plan.steps[step].op);
            for (const Slot slot : used.reads) {
                const size_t from = writer[size_t(slot.index)];
                if (from == parts || from == part) continue;
                takes[part].insert(slot.index);
                leaves[from].insert(slot.index);
            }
            for (const Slot slot : used.writes) writer[size_t(slot.index)] = part;
        }
    // The host reads hidden rows of the last part, whoever wrote them.
    const size_t hidden_from = plan.hidden ? writer[size_t(plan.hidden.index)] : parts;
    if (hidden_from < parts - 1) {
        takes.back().insert(plan.hidden.index);
        leaves[hidden_from].insert(plan.hidden.index);
    }
    for (size_t part = 0; part < parts; ++part) {
        for (const int32_t slot : takes[part]) flow.takes[part].push_back({slot});
        for (const int32_t slot : leaves[part]) flow.leaves[part].push_back({slot});
    }
    return flow;
}

// The weights and caches that the parts of one place share, in the order of their first use.
struct Shared {
    std::vector<Weight> weights;
    std::vector<WeightInfo> weight_infos;
    std::vector<Cache> caches;
    std::vector<CacheInfo> cache_infos;
};

// Moves ops to a part: weights, caches, slots and ropes are renumbered in the order of their first use.
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
    // A slot of the part that holds the rows of these slots of the part side by side; of a single slot, that
    // slot itself.
    Slot side_by_side(const std::vector<Slot>& slots) {
        if (slots.size() == 1) return slots[0];
        uint32_t width = 0;
        for (const Slot slot : slots) width += part_.slot(slot).width;
        slots_.emplace_back();  // it has no counterpart in the whole plan
        part_.slots.push_back({width});
        return {int32_t(part_.slots.size() - 1)};
    }
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
        const Index renumbered{int32_t(found - kept.begin())};
        if (found == kept.end()) {
            kept.push_back(index);
            to.push_back(from[size_t(index.index)]);
        }
        index = renumbered;
    }

    const Plan& whole_;
    Plan& part_;
    Shared& shared_;
    std::vector<Slot> slots_;
    std::vector<Rope> ropes_;
};

// Copies between that slot and the others; `in`: from it to them.
void copy_between(Plan& part, Slot all, const std::vector<Slot>& slots, bool in, uint32_t layer) {
    if (slots.size() < 2) return;
    uint32_t at = 0;
    for (const Slot slot : slots) {
        const uint32_t width = part.slot(slot).width;
        part.steps.push_back({in ? CopyParts{all, slot, 1, width, at, width, 0, width}
                                 : CopyParts{slot, all, 1, width, 0, width, at, width},
                              layer});
        at += width;
    }
}

// Steps [first, last), without weights and caches; `takes` and `leaves` are slots of the whole plan.
Plan part_of(const Plan& whole, size_t first, size_t last, std::vector<Slot> takes, std::vector<Slot> leaves,
             Shared& shared) {
    Plan plan;
    plan.sizing = whole.sizing;
    plan.max_rows = whole.max_rows;
    plan.max_outputs = last < whole.steps.size() ? whole.max_rows : whole.max_outputs;
    Mover mover(whole, plan, shared);
    if (first == 0 && whole.input) takes = {whole.input};
    for (Slot& slot : takes) mover.renumber(slot);
    if (!takes.empty()) plan.input = mover.side_by_side(takes);
    if (first > 0 && plan.input) plan.steps.push_back({Input{plan.input}, whole.steps[first].layer});
    copy_between(plan, plan.input, takes, true, whole.steps[first].layer);
    for (size_t i = first; i < last; ++i)
        plan.steps.push_back({mover.moved(whole.steps[i].op), whole.steps[i].layer});
    for (const Step& step : plan.steps)
        if (const auto* lookup = std::get_if<Lookup>(&step.op)) plan.lookup = lookup->y;
    if (last == whole.steps.size()) {
        leaves = {whole.output};
        plan.hidden = whole.hidden;
        mover.renumber(plan.hidden);
    }
    for (Slot& slot : leaves) mover.renumber(slot);
    plan.output = mover.side_by_side(leaves);
    copy_between(plan, plan.output, leaves, false, whole.steps[last - 1].layer);
    return plan;
}

PlanPart with_shared(Plan plan, const Shared& shared, std::vector<Slot> takes, std::vector<Slot> leaves) {
    plan.weights = shared.weight_infos;
    plan.caches = shared.cache_infos;
    for (const Step& step : plan.steps) {
        const Status fits = check(step.op, plan);
        RL_CHECK(fits.ok(), "cutting a plan: {}", fits.error().message);
    }
    assign_arena(plan);
    return {std::move(plan), shared.weights, shared.caches, std::move(takes), std::move(leaves)};
}

// Each cache is used by one place only.
Status check_caches(const Plan& whole, size_t before, std::span<const Shared> all, const Shared& place) {
    for (const Shared& other : all)
        for (const Cache cache : other.caches)
            if (&other != &place && std::ranges::count(place.caches, cache) > 0)
                return error("a plan cannot be cut before {}: cache {} is used on both sides",
                             step_text(whole, before), cache.index);
    return {};
}

}  // namespace

namespace {

// Collects the indices of one kind that an op visits.
template <typename Index>
struct IndicesOf {
    std::vector<Index> found;
    void add(Index index) {
        if (index) found.push_back(index);
    }
    void add(const auto&) {}
};

template <typename Index>
std::vector<Index> indices_of(Op& op) {
    IndicesOf<Index> all;
    std::visit([&](auto& o) { o.visit_indices([&](auto&... index) { (all.add(index), ...); }); }, op);
    return all.found;
}

}  // namespace

std::vector<Weight> weights_of(Op op) {
    return indices_of<Weight>(op);
}

std::vector<Cache> caches_of(Op op) {
    return indices_of<Cache>(op);
}

Plan divided(const Plan& plan, std::vector<size_t>* cuts) {
    Plan out = plan;
    out.steps.clear();
    size_t end = 0;  // of a step's parts
    for (const Step& step : plan.steps) {
        const auto* block = std::get_if<ExpertBlock>(&step.op);
        const std::vector<Op> one = {step.op}, parts = block && block->shared ? block_parts(*block) : one;
        const size_t first = end;
        end += parts.size();
        bool whole = cuts != nullptr;
        for (size_t i = 0; cuts && i < cuts->size(); ++i)
            if (size_t& cut = (*cuts)[i]; first <= cut && cut < end) {
                whole &= cut == first;
                cut -= first - out.steps.size();
            }
        for (const Op& op : whole ? one : parts) out.steps.push_back({op, step.layer});
    }
    return out;
}

Result<std::vector<PlanPart>> cut(const Plan& plan, const std::vector<size_t>& before,
                                  std::vector<size_t> places) {
    if (places.empty())
        for (size_t i = 0; i <= before.size(); ++i) places.push_back(i);
    RL_CHECK(places.size() == before.size() + 1, "{} cuts for parts at {} places", before.size(),
             places.size());
    const std::vector<std::vector<Slot>> slots = crossing_slots(plan);
    std::vector<size_t> ends = before;
    ends.push_back(plan.steps.size());
    for (size_t i = 0; i < ends.size(); ++i)
        if (ends[i] <= (i == 0 ? 0 : ends[i - 1]) || (i + 1 < ends.size() && ends[i] >= plan.steps.size()))
            return error("a plan of {} steps can be cut before steps {} to {}, not before step {}",
                         plan.steps.size(), (i == 0 ? 0 : ends[i - 1]) + 1, plan.steps.size() - 1, ends[i]);
    for (const size_t at : before) RL_TRY(check_crossing(plan, at, slots[at]));
    Flow flow = flow_of(plan, ends);
    std::vector<Shared> shared(*std::max_element(places.begin(), places.end()) + 1);
    std::vector<Plan> plans;
    for (size_t i = 0, first = 0; i < ends.size(); first = ends[i++]) {
        if (i + 1 < ends.size() && flow.leaves[i].empty())
            return error("a plan cannot be cut before {}: no later step reads a slot written before it",
                         step_text(plan, ends[i]));
        plans.push_back(part_of(plan, first, ends[i], flow.takes[i], flow.leaves[i], shared[places[i]]));
        RL_TRY(check_caches(plan, first, shared, shared[places[i]]));
    }
    std::vector<PlanPart> parts;
    for (size_t i = 0; i < plans.size(); ++i)
        parts.push_back(with_shared(std::move(plans[i]), shared[places[i]], std::move(flow.takes[i]),
                                    std::move(flow.leaves[i])));
    return parts;
}

PlanPart beside(const Plan& plan, const PlanPart& place, bool same_weights) {
    Shared shared{place.weights, place.plan.weights, place.caches, place.plan.caches};
    if (!same_weights) {
        shared.weights.clear();
        shared.weight_infos = plan.weights;
        for (size_t i = 0; i < plan.weights.size(); ++i) shared.weights.push_back({int32_t(i)});
    }
    Plan part = part_of(plan, 0, plan.steps.size(), {}, {}, shared);
    return with_shared(std::move(part), shared, {}, {});
}

std::vector<Block> blocks(const Plan& plan, const std::vector<size_t>& also) {
    const std::vector<std::vector<Slot>> slots = crossing_slots(plan);
    const std::vector<Slot> lasting = lasting_slots(plan, slots);
    const auto is_end = [&](size_t step) {
        if (step == plan.steps.size()) return true;
        if (slots[step].empty() || !of_all_rows(plan, slots[step])) return false;
        if (plan.steps[step].layer != plan.steps[step - 1].layer) return true;
        return slots[step].size() == 1 || std::ranges::count(also, step) > 0 ||
               std::ranges::all_of(slots[step], [&](Slot s) { return std::ranges::count(lasting, s) > 0; });
    };
    std::vector<Block> all;
    size_t first = 0;
    for (size_t i = 1; i <= plan.steps.size(); ++i) {
        if (!is_end(i)) continue;
        all.push_back({first, i});
        first = i;
    }
    return all;
}

}  // namespace redline
