// The numbers of steps from each state of a graph to an end: strings that must match a pattern and a length
// are followed state by state, and a step is excluded when the length could not be met after it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace redline {

struct StepGraph {
    struct State {
        std::vector<uint32_t> next;
        bool ends = false;
    };
    std::vector<State> states;
};

class StepCounts {
public:
    // Distinguishes counts up to `farthest`. Empty: there are too many.
    static std::optional<StepCounts> create(const StepGraph& graph, uint32_t farthest);

    // True when an end is at least `least` and at most `most` steps away.
    bool reaches(uint32_t state, uint32_t least, uint32_t most) const;
    // From this count on, the set of states that far from an end repeats with period().
    uint32_t settled() const { return uint32_t(columns_.size()); }
    uint32_t period() const { return period_; }  // 0: none within `farthest`

private:
    uint32_t column(uint64_t steps) const;

    std::vector<std::vector<uint64_t>> columns_;  // by steps: a bit for each state
    uint32_t period_ = 0;
};

}  // namespace redline
