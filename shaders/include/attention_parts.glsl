// What kernels of attention share. A work-group takes QUERIES queries, (row, head) with heads of one kv head: z of the
// grid over kv heads, y over groups of queries, x over splits of the keys. Where rows may be of several sequences, or with
// ROWS_APART, a group is of one row. Wants args of AttentionArgs, GROUP (how many heads share a kv head), STEP_KIND and
// step.glsl.
#ifdef ROWS_APART
const bool BY_ROW = true;
#else
const bool BY_ROW = STEP_KIND >= RL_STEP_SEVERAL;
#endif
const float kNone = -1.0 / 0.0;
const uint LEAST_KEYS = 64;  // of a split: fewer are not worth a work-group

uint query_row(uint query) { return args.first_row + query / GROUP; }
uint query_head(uint query) { return gl_WorkGroupID.z * GROUP + query % GROUP; }
uint own_query(uint i) {
    if (!BY_ROW) return gl_WorkGroupID.y * QUERIES + i;
    const uint groups = (GROUP + QUERIES - 1u) / QUERIES;  // of a row
    return gl_WorkGroupID.y / groups * GROUP + gl_WorkGroupID.y % groups * QUERIES + i;
}
uint partial_of(uint query, uint split) {
    return (query_row(query) * args.heads + query_head(query)) * args.splits + split;
}
// For this work-group, with rows counted as the step does: where its rows end, and the position of its sequence's row 0.
uint end_row() {
    return BY_ROW ? min(query_row(own_query(0u)) + 1u, STEP_KIND == RL_STEP_MIXED ? step_lone_rows : step_rows) : step_rows;
}
uint first_position() {
    if (STEP_KIND < RL_STEP_SEVERAL) return step_position;
    const uint row = query_row(own_query(0u));
    return step_word(step_places + 2u * row) - row;
}

bool sees(uint query, uint key) {
    const uint row = query_row(query), position = first_position() + row;
    return row < end_row() && key <= position && (args.window == 0u || key + args.window > position) &&
           (args.chunks == 0u || key / args.window == position / args.window);
}
