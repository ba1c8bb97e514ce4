#include "places/remote_bytes.h"

#include "places/remote_messages.h"

namespace redline {

namespace {

// Calls `visit` with all fields of a plan; both directions have the same list.
void visit_plan(auto& plan, const auto& visit) {
    visit(plan.overlaps, plan.layers_wait, plan.slots, plan.ropes, plan.weights, plan.caches, plan.sizing);
    visit(plan.max_rows, plan.max_outputs, plan.input, plan.lookup, plan.output, plan.hidden,
          plan.arena_bytes);
}

bool is_within(const Plan& plan, Slot slot) {
    return !slot || size_t(slot.index) < plan.slots.size();
}
bool is_within(const Plan& plan, Weight weight) {
    return !weight || size_t(weight.index) < plan.weights.size();
}
bool is_within(const Plan& plan, Cache cache) {
    return !cache || size_t(cache.index) < plan.caches.size();
}
bool is_within(const Plan& plan, uint32_t rope) {
    return rope == kNoRope || rope < plan.ropes.size();
}

// check() looks at shapes, and trusts numbers.
bool is_within(const Plan& plan, Op op) {
    const auto* product = std::get_if<Product>(&op);
    if (product && product->count > product->parts.size()) return false;
    bool within = true;
    std::visit(
        [&](auto& o) {
            o.visit_indices([&](auto&... index) { within = (is_within(plan, index) && ... && within); });
        },
        op);
    return within;
}

}  // namespace

void pack_plan(Packer& out, const Plan& plan) {
    visit_plan(plan, [&](const auto&... fields) { out.add(fields...); });
    out.add(uint64_t(plan.steps.size()));
    for (const Step& step : plan.steps) out.add(step.op, step.layer, step.barrier, step.leaves, step.takes);
}

Result<Plan> unpack_plan(Unpacker& in) {
    Plan plan;
    visit_plan(plan, [&](auto&... fields) { in.get(fields...); });
    for (auto left = in.next<uint64_t>(); left > 0; --left) {
        RL_TRY(in.status());
        Step step{Input{}};
        in.get(step.op, step.layer, step.barrier, step.leaves, step.takes);
        plan.steps.push_back(std::move(step));
    }
    RL_TRY(in.status());
    for (const Slot slot : {plan.input, plan.lookup, plan.output, plan.hidden})
        if (!is_within(plan, slot)) return error("a plan of another rank names what it does not have");
    for (const Step& step : plan.steps) {
        if (!is_within(plan, step.op) || !is_within(plan, step.leaves) || !is_within(plan, step.takes))
            return error("a plan of another rank names what it does not have");
        RL_TRY(check(step.op, plan));
    }
    return plan;
}

void RemoteStep::pack(Packer& out) const {
    out.add(executable, number, tokens, rows, outputs, has_pages, pages, best, best_among, input, lookups,
            states, row_states);
}

void RemoteStep::unpack(Unpacker& in) {
    in.get(executable, number, tokens, rows, outputs, has_pages, pages, best, best_among, input, lookups,
           states, row_states);
}

RemoteStep RemoteStep::of(uint64_t executable, uint64_t number, const StepParams& params) {
    RemoteStep step{executable, number};
    const auto copy = [](auto& to, const auto& from) { to.assign(from.begin(), from.end()); };
    copy(step.tokens, params.tokens);
    copy(step.rows, params.rows);
    copy(step.outputs, params.outputs);
    step.has_pages = !params.pages.empty();
    for (const std::span<const uint32_t> list : params.pages)
        step.pages.emplace_back(list.begin(), list.end());
    step.best = params.best;
    step.best_among = params.best_among;
    copy(step.input, params.input);
    copy(step.lookups, params.lookups);
    copy(step.states, params.states);
    copy(step.row_states, params.row_states);
    return step;
}

// Sequences, rows and pages that are not there would be read out of bounds.
Status RemoteStep::check(const Plan& plan) const {
    bool fits = !tokens.empty() && tokens.size() <= plan.max_rows && rows.size() == tokens.size() &&
                outputs.size() <= plan.max_outputs;
    const auto in_list = [&](uint32_t sequence, const auto& list) {
        return list.empty() || sequence < list.size();
    };
    for (const Row& row : rows) fits = fits && in_list(row.sequence, pages) && in_list(row.sequence, states);
    for (const uint32_t output : outputs) fits = fits && output < tokens.size();
    fits = fits && (row_states.empty() || row_states.size() == tokens.size());
    fits = fits && lookups.size() == plan.lookup_floats(tokens.size());
    if (!fits) return error("a step of another rank does not fit the plan");
    return {};
}

}  // namespace redline
