#include "plan/handing.h"

#include <algorithm>

namespace redline {

namespace {

bool writes(const Op& op, Slot slot) {
    const std::vector<Slot> written = access(op).writes;
    return std::find(written.begin(), written.end(), slot) != written.end();
}

}  // namespace

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

}  // namespace redline
