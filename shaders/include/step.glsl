// What varies per token: written by the host before each step.
layout(set = 0, binding = STEP_BINDING, std430) readonly buffer StepBuffer {
    uint step_rows;
    uint step_position;  // of the first row
    uint step_first_output;
    uint step_outputs;
    uint step_best_among;  // best.comp: outputs that can be picked
    uint step_unused[59];
    int step_tokens[];
};

uint rows_in_step(uint rows_of) {
    return rows_of == RL_ROWS_OUTPUTS ? step_outputs : step_rows;
}
