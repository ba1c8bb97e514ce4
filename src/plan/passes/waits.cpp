#include "plan/passes/waits.h"

#include <algorithm>
#include <numeric>

namespace redline {
namespace {

bool share(const std::vector<Slot>& a, const std::vector<Slot>& b) {
    return std::any_of(a.begin(), a.end(),
                       [&](Slot slot) { return std::find(b.begin(), b.end(), slot) != b.end(); });
}

// Counts scratch slots as written, too.
Access whole_access(const Step& step) {
    Access used = access(step);
    used.writes.insert(used.writes.end(), used.scratch.begin(), used.scratch.end());
    return used;
}

bool must_wait(const Access& later, const Access& earlier) {
    return (later.reads_cache && earlier.writes_cache) ||
           (later.writes_cache && (earlier.reads_cache || earlier.writes_cache)) ||
           share(later.reads, earlier.writes) || share(later.writes, earlier.writes) ||
           share(later.writes, earlier.reads);
}

std::vector<Access> all_accesses(const Plan& plan) {
    std::vector<Access> all;
    for (const Step& step : plan.steps) all.push_back(whole_access(step));
    return all;
}

}  // namespace

bool begins_waiting_layer(const Plan& plan, size_t i) {
    return plan.layers_wait && i > 0 && plan.steps[i].layer != plan.steps[i - 1].layer;
}

std::vector<size_t> waits_before(const Plan& plan) {
    const std::vector<Access> used = all_accesses(plan);
    std::vector<size_t> waits(used.size());
    size_t first = 0;  // since the last wait
    for (size_t i = 0; i < used.size(); ++i) {
        waits[i] = i > 0 ? waits[i - 1] : 0;
        const auto meets = [&](const Access& earlier) { return must_wait(used[i], earlier); };
        if (!begins_waiting_layer(plan, i) &&
            std::none_of(used.begin() + ptrdiff_t(first), used.begin() + ptrdiff_t(i), meets))
            continue;
        ++waits[i];
        first = i;
    }
    return waits;
}

std::vector<size_t> order_of_fewest_waits(const Plan& plan) {
    const std::vector<Access> used = all_accesses(plan);
    std::vector<size_t> order(used.size()), waits(used.size());
    std::iota(order.begin(), order.end(), size_t(0));
    for (size_t begin = 0; begin < used.size();) {
        size_t end = begin;
        for (; end < used.size() && plan.steps[end].layer == plan.steps[begin].layer; ++end)
            for (size_t j = begin; j < end; ++j)
                if (must_wait(used[end], used[j])) waits[end] = std::max(waits[end], waits[j] + 1);
        std::stable_sort(order.begin() + ptrdiff_t(begin), order.begin() + ptrdiff_t(end),
                         [&](size_t a, size_t b) { return waits[a] < waits[b]; });
        begin = end;
    }
    return order;
}

}  // namespace redline
