// The values that vary from step to step: tokens, the sequence that each belongs to, and where its caches
// lie.
#pragma once

#include "plan/plan.h"

#include <atomic>

namespace redline {

struct Row {
    uint32_t sequence = 0;
    uint32_t position = 0;  // in its sequence
};

// The rows of a sequence's states in caches of states, before and behind a step. They may be the same.
struct StateRows {
    uint32_t from = 0, to = 0;
};

constexpr uint32_t kNoStates = UINT32_MAX;

struct StepParams {
    std::span<const int32_t> tokens;    // at most plan.max_rows
    std::span<const Row> rows;          // one per token; those of a sequence stand together, in order
    std::span<const uint32_t> outputs;  // rows whose output is wanted, in order
    // For each sequence that rows name, its list of pages, counted as by CacheInfo::first_page. Empty: there
    // is one sequence, which has the caches to itself, and its last rows have an output.
    std::span<const std::span<const uint32_t>> pages = {};
    const std::atomic<bool>* cancel = nullptr;  // when it turns true the step ends early with an error
    // > 0: only this many largest of the first best_among outputs of each row are wanted, at most
    // Executable::most_best(); output() is then empty.
    uint32_t best = 0;
    uint32_t best_among = 0;
    std::span<const float> input = {};    // (rows, width), when the plan has an input
    std::span<const float> lookups = {};  // likewise
    // For each sequence that rows name. Empty: sequence s has row s.
    std::span<const StateRows> states = {};
    // For each row, the row of caches of states that gets its sequence's states behind it, or kNoStates: the
    // last row's go to StateRows::to. Empty: none are kept but those.
    std::span<const uint32_t> row_states = {};

    // The largest number of tokens that a row sees.
    uint64_t kv_len() const;
    StateRows states_of(size_t row) const {
        const uint32_t sequence = rows[row].sequence;
        return states.empty() ? StateRows{sequence, sequence} : states[sequence];
    }
    // The pages of the row's sequence; empty where there are none.
    std::span<const uint32_t> pages_of(size_t row) const {
        return pages.empty() ? std::span<const uint32_t>() : pages[rows[row].sequence];
    }
};

// Rows of a step that belong to one sequence.
struct Segment {
    uint32_t first = 0;
    uint32_t rows = 0;
};
std::vector<Segment> segments_of(std::span<const Row> rows);

// The kinds of step that kernels are recorded for separately.
enum class StepKind : uint8_t {
    alone,    // one sequence without pages
    paged,    // one sequence, whose last rows have an output
    several,  // any sequences, any outputs
    mixed     // likewise, and a sequence has more than kLoneRows rows
};
// Rows of a sequence, up to which attention in a step of several reads its keys once for each row.
constexpr uint32_t kLoneRows = 8;
inline bool of_several(StepKind kind) {
    return kind == StepKind::several || kind == StepKind::mixed;
}
StepKind kind_of(const StepParams& params);
// The same for this plan: where rows are to be alike, those of one sequence are computed like those of
// several.
StepKind kind_of(const Plan& plan, const StepParams& params);

// A step of one sequence: tokens at consecutive positions, the last of which have an output.
class SequenceStep {
public:
    SequenceStep(std::span<const int32_t> tokens, uint64_t position, uint32_t outputs);
    // Valid while this object is.
    operator StepParams() const { return {tokens_, rows_, outputs_}; }

private:
    std::span<const int32_t> tokens_;
    std::vector<Row> rows_;
    std::vector<uint32_t> outputs_;
};

// Stops the program where the plan cannot take the step, which is a mistake of the caller.
void check_step(const Plan& plan, const StepParams& params);

}  // namespace redline
