// What varies per token: written by the host before each step.
layout(set = 0, binding = STEP_BINDING, std430) readonly buffer StepBuffer {
    uint step_rows;
    uint step_position;  // of the first row
    uint step_first_output;
    uint step_outputs;
    uint step_best_among;  // best.comp: outputs that can be picked
    uint step_output_rows; // of step_word(): rows that have an output; 0: those from step_first_output on
    uint step_places;      // of step_word(): per row its position, and where its sequence's pages begin behind step_pages
    uint step_pages;       // of step_word()
    uint step_segments;    // sequences that have rows
    uint step_states;      // of step_word(): per segment its first row, its rows, and where its states were and will be
    uint step_row_states;  // of step_word(): per row which state gets what is behind it; 0: see state_behind()
    uint step_tiles;       // of step_word(): of a mixed step, the rows of each tile: its first, and where it ends
    uint step_tile_count;
    uint step_lone_rows;   // of a mixed step: so many from the first on are in no tile
    uint step_unused[50];
    int step_tokens[];
};
uint step_word(uint at) {
    return uint(step_tokens[at - 64u]);
}

// The row of states that gets those of a row's sequence behind it, which is not its last; RL_NO_STATE: they are not kept.
uint state_behind(uint row) {
    return step_row_states == 0u ? RL_NO_STATE : step_word(step_row_states + row);
}

uint rows_in_step(uint rows_of) {
    return rows_of == RL_ROWS_OUTPUTS ? step_outputs : step_rows;
}
