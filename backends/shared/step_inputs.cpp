#include "backends/shared/step_inputs.h"

#include <cstring>

namespace redline {

static uint64_t aligned(uint64_t bytes) {
    return (bytes + 255) / 256 * 256;
}

StepLayout::StepLayout(const Plan& plan, uint32_t rows) {
    bytes = aligned(sizeof(StepHeader) + uint64_t(rows) * sizeof(int32_t));
    for (const RopeSpec& rope : plan.ropes) {
        ropes.push_back(bytes);
        bytes += aligned(rows * rope.table_floats() * sizeof(float));
    }
    input = bytes;
    bytes += aligned(plan.input_floats(rows) * sizeof(float));
}

void StepLayout::write(const Plan& plan, const StepParams& params, std::byte* to) const {
    StepHeader header = {};
    header.rows = uint32_t(params.tokens.size());
    header.position = params.rows[0].position;
    header.first_output = params.outputs[0];
    header.outputs = uint32_t(params.outputs.size());
    header.best_among = params.best_among;
    std::memcpy(to, &header, sizeof(header));
    std::memcpy(to + sizeof(header), params.tokens.data(), params.tokens.size_bytes());
    if (!params.input.empty()) std::memcpy(to + input, params.input.data(), params.input.size_bytes());
    for (size_t r = 0; r < plan.ropes.size(); ++r) {
        auto* table = reinterpret_cast<float*>(to + ropes[r]);
        for (const Row& row : params.rows) {
            plan.ropes[r].fill_table(row.position, table);
            table += plan.ropes[r].table_floats();
        }
    }
}

}  // namespace redline
