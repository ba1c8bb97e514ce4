// What varies from step to step: tokens, which sequence each belongs to, and where its caches lie.
#pragma once

#include "plan/plan.h"

#include <atomic>

namespace redline {

struct Row {
    uint32_t sequence = 0;
    uint32_t position = 0;  // in its sequence
};

// Where the states of a sequence lie in caches of states: those before a step, and those behind it. They may
// be the same.
struct StateRows {
    uint32_t from = 0, to = 0;
};

struct StepParams {
    std::span<const int32_t> tokens;    // at most plan.max_rows
    std::span<const Row> rows;          // one per token; those of a sequence stand together, in order
    std::span<const uint32_t> outputs;  // rows whose output is wanted, in order
    // Of each sequence that rows name, its list of pages, as CacheInfo::first_page counts them. None: there
    // is one sequence, which has the caches to itself, and its last rows have an output.
    std::span<const std::span<const uint32_t>> pages = {};
    const std::atomic<bool>* cancel = nullptr;  // when it turns true the step ends early with an error
    // > 0: only the so many largest of the first best_among outputs of the only row are wanted, at most
    // Executable::most_best(); output() then has nothing.
    uint32_t best = 0;
    uint32_t best_among = 0;
    std::span<const float> input = {};    // of a plan that has one: (rows, width)
    std::span<const float> lookups = {};  // likewise
    // Of each sequence that rows name. None: sequence s has row s.
    std::span<const StateRows> states = {};

    // The largest number of tokens that a row sees.
    uint64_t kv_len() const;
    StateRows states_of(size_t row) const {
        const uint32_t sequence = rows[row].sequence;
        return states.empty() ? StateRows{sequence, sequence} : states[sequence];
    }
    // Of the row's sequence; empty where there are none.
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

// What kernels have to be ready for, so that each can be recorded apart.
enum class StepKind : uint8_t {
    alone,   // one sequence without pages
    paged,   // one sequence, whose last rows have an output
    several  // any sequences, any outputs
};
StepKind kind_of(const StepParams& params);

// A step of one sequence: tokens at positions one after the other, the last of which have an output.
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

// Stops where a step is none that the plan can take: a mistake of the caller.
void check_step(const Plan& plan, const StepParams& params);

}  // namespace redline
