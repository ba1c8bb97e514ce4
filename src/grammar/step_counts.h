// How many steps lead from each state of a graph to an end: strings that must fit a pattern and a length are
// followed state by state, and no step may be taken from which the length cannot be met.
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
    // Counts up to `farthest` are told apart. Nothing: there are too many.
    static std::optional<StepCounts> create(const StepGraph& graph, uint32_t farthest);

    // True when an end is at least `least` and at most `most` steps away.
    bool reaches(uint32_t state, uint32_t least, uint32_t most) const;
    // From this count on, the states that are so far from an end repeat with a period, which is part of it.
    uint32_t settled() const { return uint32_t(columns_.size()); }
    uint32_t period() const { return period_; }  // 0: none within `farthest`

private:
    uint32_t column(uint64_t steps) const;

    std::vector<std::vector<uint64_t>> columns_;  // by steps: a bit for each state
    uint32_t period_ = 0;
};

}  // namespace redline
