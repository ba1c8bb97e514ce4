// The inputs of a step as backends with device memory send them: a header, the tokens, the rope tables, and
// what an Input takes. Kernels see them as StepBuffer in shaders/include/step.glsl, args::Step in
// backends/hip/kernels/args.h.
#pragma once

#include "plan/step_params.h"

namespace redline {

struct StepHeader {
    uint32_t rows;
    uint32_t position;      // of the first row
    uint32_t first_output;  // rows from it on have one
    uint32_t outputs;
    uint32_t best_among;
    uint32_t unused[59];
};
static_assert(sizeof(StepHeader) == 256);

// Where the parts of a step's inputs begin, in bytes, for steps of at most so many rows.
struct StepLayout {
    StepLayout(const Plan& plan, uint32_t rows);
    void write(const Plan& plan, const StepParams& params, std::byte* to) const;

    std::vector<uint64_t> ropes;  // per rope: of each row cosines, then sines
    uint64_t input = 0;
    uint64_t bytes = 0;
};

}  // namespace redline
