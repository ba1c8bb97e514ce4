#include "plan/step_params.h"

#include "base/result.h"

#include <algorithm>

namespace redline {

uint64_t StepParams::kv_len() const {
    uint64_t most = 0;
    for (const Row& row : rows) most = std::max<uint64_t>(most, row.position + uint64_t(1));
    return most;
}

SequenceStep::SequenceStep(std::span<const int32_t> tokens, uint64_t position, uint32_t outputs)
    : tokens_(tokens) {
    const uint32_t rows = uint32_t(tokens.size());
    for (uint32_t row = 0; row < rows; ++row) rows_.push_back({0, uint32_t(position + row)});
    for (uint32_t row = rows - outputs; row < rows; ++row) outputs_.push_back(row);
}

StepKind kind_of(const StepParams& params) {
    if (params.pages.empty()) return StepKind::alone;
    const bool last_rows = params.outputs[0] + params.outputs.size() == params.rows.size();
    const bool one = params.rows.front().sequence == params.rows.back().sequence;
    if (one && last_rows) return StepKind::paged;
    const std::vector<Segment> segments = segments_of(params.rows);
    const bool many = std::any_of(segments.begin(), segments.end(),
                                  [](const Segment& segment) { return segment.rows > kLoneRows; });
    return many ? StepKind::mixed : StepKind::several;
}

StepKind kind_of(const Plan& plan, const StepParams& params) {
    return plan.alike(params.rows.size()) ? StepKind::several : kind_of(params);
}

std::vector<Segment> segments_of(std::span<const Row> rows) {
    std::vector<Segment> segments;
    for (uint32_t row = 0; row < rows.size(); ++row) {
        if (row == 0 || rows[row].sequence != rows[row - 1].sequence) segments.push_back({row, 0});
        ++segments.back().rows;
    }
    return segments;
}

static void check_pages(const Plan& plan, std::span<const uint32_t> pages, uint64_t length) {
    for (const CacheInfo& cache : plan.caches) {
        const uint64_t rows = std::min(length, cache.sequence_rows),
                       used = (rows + kPageRows - 1) / kPageRows;
        RL_CHECK(pages.size() >= cache.first_page + used, "{} pages, {} are used", pages.size(),
                 cache.first_page + used);
        for (const uint32_t page : pages.subspan(cache.first_page, used))
            RL_CHECK(page < cache.tokens() / kPageRows, "page {} of a cache of {}", page,
                     cache.tokens() / kPageRows);
    }
}

static void check_rows(const Plan& plan, const StepParams& params) {
    const size_t sequences = std::max<size_t>(1, params.pages.size());
    RL_CHECK(sequences <= plan.sizing.sequences && (params.pages.empty() || plan.sizing.pages > 0),
             "{} lists of pages sent to a plan for {} sequences", params.pages.size(), plan.sizing.sequences);
    std::vector<bool> seen(sequences);
    for (const Segment& segment : segments_of(params.rows)) {
        const Row first = params.rows[segment.first];
        RL_CHECK(first.sequence < sequences && !seen[first.sequence], "rows of sequence {} begin with row {}",
                 first.sequence, segment.first);
        seen[first.sequence] = true;
        for (uint32_t i = 0; i < segment.rows; ++i)
            RL_CHECK(params.rows[segment.first + i].position == first.position + i,
                     "row {} is at position {}, its sequence's first at {}", segment.first + i,
                     params.rows[segment.first + i].position, first.position);
        const uint64_t end = uint64_t(first.position) + segment.rows;
        RL_CHECK(end <= plan.sizing.context, "position {} is beyond the context of {}", end,
                 plan.sizing.context);
        if (!params.pages.empty()) check_pages(plan, params.pages[first.sequence], end);
    }
}

static void check_states(const Plan& plan, const StepParams& params) {
    for (const CacheInfo& cache : plan.caches)
        for (const StateRows& rows : params.states)
            RL_CHECK(!cache.is_state() || (rows.from < cache.capacity && rows.to < cache.capacity),
                     "states {} to {} of a cache of {}", rows.from, rows.to, cache.capacity);
    RL_CHECK(params.states.empty() || params.states.size() == std::max<size_t>(1, params.pages.size()),
             "states of {} sequences are sent", params.states.size());
    RL_CHECK(params.row_states.empty() || params.row_states.size() == params.rows.size(),
             "states are kept of {} rows, {} are sent", params.row_states.size(), params.rows.size());
    for (const CacheInfo& cache : plan.caches)
        for (const uint32_t row : params.row_states)
            RL_CHECK(!cache.is_state() || row == kNoStates || row < cache.capacity,
                     "state {} of a cache of {}", row, cache.capacity);
}

static void check_outputs(const Plan& plan, const StepParams& params) {
    const std::span<const uint32_t> outputs = params.outputs;
    const size_t rows = params.rows.size();
    RL_CHECK(outputs.size() >= 1 && outputs.size() <= plan.max_outputs, "{} outputs asked of a plan for {}",
             outputs.size(), plan.max_outputs);
    for (size_t i = 0; i < outputs.size(); ++i)
        RL_CHECK(outputs[i] < rows && (i == 0 || outputs[i] > outputs[i - 1]), "output {} is row {} of {}", i,
                 outputs[i], rows);
    RL_CHECK(!params.pages.empty() || outputs[0] + outputs.size() == rows,
             "without pages, outputs are the last rows, not {} from row {} of {}", outputs.size(), outputs[0],
             rows);
}

void check_step(const Plan& plan, const StepParams& params) {
    const size_t rows = params.tokens.size();
    RL_CHECK(rows >= 1 && rows <= plan.max_rows, "{} rows sent to a plan for {}", rows, plan.max_rows);
    RL_CHECK(params.rows.size() == rows, "{} rows are described, {} sent", params.rows.size(), rows);
    check_rows(plan, params);
    check_outputs(plan, params);
    check_states(plan, params);
    RL_CHECK(params.input.size() == plan.input_floats(rows), "{} floats sent to a plan for {}",
             params.input.size(), plan.input_floats(rows));
    // When a plan was cut, only one part has lookups.
    RL_CHECK(!plan.lookup || params.lookups.size() == plan.lookup_floats(rows),
             "{} floats were looked up for a plan that takes {}", params.lookups.size(),
             plan.lookup_floats(rows));
}

}  // namespace redline
