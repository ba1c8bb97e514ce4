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

const RopeStore* turned_by(const Plan& plan, size_t attention) {
    const auto* own = std::get_if<Attention>(&plan.steps[attention].op);
    const auto* before = attention > 0 ? std::get_if<RopeStore>(&plan.steps[attention - 1].op) : nullptr;
    if (!own || !before || own->q != before->q || own->cache != before->cache) return nullptr;
    const size_t after = attention + 1;
    return read_later(plan, after, before->q) || read_later(plan, after, before->k) ? nullptr : before;
}

}  // namespace redline
