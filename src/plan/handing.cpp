#include "plan/handing.h"

#include <algorithm>

namespace redline {

namespace {

bool holds(const std::vector<Slot>& slots, Slot slot) {
    return std::find(slots.begin(), slots.end(), slot) != slots.end();
}
bool writes(const Op& op, Slot slot) {
    return holds(access(op).writes, slot);
}
bool reads(const Op& op, Slot slot) {
    return holds(access(op).reads, slot);
}

}  // namespace

bool read_later(const Plan& plan, size_t first, Slot slot) {
    for (size_t i = first; i < plan.steps.size(); ++i) {
        if (reads(plan.steps[i].op, slot)) return true;
        if (writes(plan.steps[i].op, slot)) return false;
    }
    return plan.output == slot;
}

std::vector<HandedRow> handed_rows(const Plan& plan,
                                   const std::function<std::optional<TakenRow>(size_t)>& takes,
                                   const std::function<bool(size_t)>& gives) {
    std::vector<HandedRow> rows;
    std::vector<bool> left(plan.steps.size());
    for (size_t to = 0; to < plan.steps.size(); ++to) {
        const std::optional<TakenRow> taken = takes(to);
        if (!taken || plan.slot(taken->x).of_outputs || plan.slot(taken->x).width % 32 != 0) continue;
        size_t from = to;
        while (from > 0 && !writes(plan.steps[from - 1].op, taken->x)) --from;
        if (from-- == 0 || left[from] || !gives(from)) continue;
        left[from] = true;
        rows.push_back({from, to, plan.slot(taken->x).width / 32, taken->norm});
    }
    return rows;
}

const RopeStore* turned_by(const Plan& plan, size_t attention) {
    const auto* own = std::get_if<Attention>(&plan.steps[attention].op);
    const auto* before = attention > 0 ? std::get_if<RopeStore>(&plan.steps[attention - 1].op) : nullptr;
    if (!own || !before || own->q != before->q || own->cache != before->cache) return nullptr;
    const size_t after = attention + 1;
    return read_later(plan, after, before->q) || read_later(plan, after, before->k) ? nullptr : before;
}

}  // namespace redline
