// Which row of a cache a token lies in: token p of a sequence in row p % args.sequence_rows of those that the sequence has,
// as many as it has tokens, or enough for all that a window of args.window tokens sees. Of a sequence alone they are the
// first; else they lie in pages. Wants STEP_KIND of RL_STEP_*, and step.glsl.
uint list_of(uint row) {
    return step_pages + step_word(step_places + 2u * row + 1u) + args.first_page;
}
uint in_page(uint list, uint row) {
    return step_word(list + row / RL_PAGE_ROWS) * RL_PAGE_ROWS + row % RL_PAGE_ROWS;
}
// Of the token of a row of the step.
uint stored_row(uint row) {
    const uint token = STEP_KIND == RL_STEP_ALONE ? step_position + row : step_word(step_places + 2u * row);
    const uint own = token < args.sequence_rows ? token : token % args.sequence_rows;
    return STEP_KIND == RL_STEP_ALONE ? own : in_page(list_of(row), own);
}
#ifdef CACHE_READS
uint cache_round;  // the first token of the ring's round in which this work-group's keys begin
uint page_list;    // of its sequence
// Where what a query sees begins, whose own key is the last before `end`.
uint first_seen(uint end) {
    if (args.window == 0u || end <= args.window) return 0u;
    return args.chunks != 0u ? (end - 1u) / args.window * args.window : end - args.window;
}
// Keys from a token on, of the sequence that a row of the step is of.
void begin_keys(uint row, uint first_token) {
    cache_round = args.window > 0u ? first_token / args.sequence_rows * args.sequence_rows : 0u;
    if (STEP_KIND != RL_STEP_ALONE) page_list = list_of(row);
}
// Of a token in this round or the next; the smaller of two unsigned numbers is the row that exists.
uint row_of(uint token) {
    const uint in_round = token - cache_round, own = min(in_round, in_round - args.sequence_rows);
    return STEP_KIND == RL_STEP_ALONE ? own : in_page(page_list, own);
}
#endif
