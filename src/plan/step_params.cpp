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

static void check_rows(const Plan& plan, std::span<const Row> rows) {
    for (size_t i = 0; i < rows.size(); ++i) {
        RL_CHECK(rows[i].sequence == 0, "row {} names sequence {}", i, rows[i].sequence);
        RL_CHECK(i == 0 || rows[i].position == rows[i - 1].position + 1,
                 "row {} is at position {}, the one before at {}", i, rows[i].position, rows[i - 1].position);
        RL_CHECK(rows[i].position < plan.sizing.context, "position {} is beyond the context of {}",
                 rows[i].position, plan.sizing.context);
    }
}

static void check_outputs(const Plan& plan, std::span<const uint32_t> outputs, size_t rows) {
    RL_CHECK(outputs.size() >= 1 && outputs.size() <= plan.max_outputs, "{} outputs asked of a plan for {}",
             outputs.size(), plan.max_outputs);
    for (size_t i = 0; i < outputs.size(); ++i)
        RL_CHECK(outputs[i] == rows - outputs.size() + i, "output {} of {} rows is row {}", i, rows,
                 outputs[i]);
}

void check_step(const Plan& plan, const StepParams& params) {
    const size_t rows = params.tokens.size();
    RL_CHECK(rows >= 1 && rows <= plan.max_rows, "{} rows sent to a plan for {}", rows, plan.max_rows);
    RL_CHECK(params.rows.size() == rows, "{} rows are described, {} sent", params.rows.size(), rows);
    check_rows(plan, params.rows);
    check_outputs(plan, params.outputs, rows);
    RL_CHECK(params.input.size() == plan.input_floats(rows), "{} floats sent to a plan for {}",
             params.input.size(), plan.input_floats(rows));
}

}  // namespace redline
