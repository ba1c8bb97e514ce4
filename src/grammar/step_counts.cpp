#include "grammar/step_counts.h"

#include <algorithm>
#include <map>

namespace redline {
namespace {

constexpr size_t kMostBits = size_t(1) << 28;
constexpr uint64_t kMostWork = 300'000'000;  // edges followed

}  // namespace

std::optional<StepCounts> StepCounts::create(const StepGraph& graph, uint32_t farthest) {
    const size_t size = graph.states.size(), words = (size + 63) / 64;
    uint64_t edges = 1;
    for (const StepGraph::State& state : graph.states) edges += state.next.size();
    StepCounts made;
    std::map<std::vector<uint64_t>, uint32_t> known;
    std::vector<uint64_t> column(words);
    for (size_t i = 0; i < size; ++i)
        if (graph.states[i].ends) column[i / 64] |= uint64_t(1) << (i % 64);
    for (uint64_t steps = 0; steps <= farthest; ++steps) {
        const auto [found, added] = known.try_emplace(column, uint32_t(steps));
        if (!added) {
            made.period_ = uint32_t(steps) - found->second;
            return made;
        }
        made.columns_.push_back(column);
        if (steps * words * 64 > kMostBits || steps * edges > kMostWork) return {};
        std::vector<uint64_t> next(words);
        for (size_t i = 0; i < size; ++i)
            for (const uint32_t to : graph.states[i].next)
                if ((column[to / 64] >> (to % 64) & 1) != 0) {
                    next[i / 64] |= uint64_t(1) << (i % 64);
                    break;
                }
        column = std::move(next);
    }
    return made;
}

uint32_t StepCounts::column(uint64_t steps) const {
    if (steps < columns_.size()) return uint32_t(steps);
    return uint32_t(columns_.size() - period_ + (steps - columns_.size()) % period_);
}

bool StepCounts::reaches(uint32_t state, uint32_t least, uint32_t most) const {
    // Without a period counts beyond the columns are never queried.
    const uint64_t last =
        std::min<uint64_t>(most, period_ > 0 ? uint64_t(least) + columns_.size() : columns_.size() - 1);
    for (uint64_t steps = least; steps <= last; ++steps)
        if ((columns_[column(steps)][state / 64] >> (state % 64) & 1) != 0) return true;
    return false;
}

}  // namespace redline
