// Which row of a cache a token lies in: token p in row p % args.capacity. There are as many rows as tokens, or
// enough for all that a window of args.window tokens sees.
uint stored_row(uint token) {
    return token < args.capacity ? token : token % args.capacity;
}
#ifdef CACHE_READS
uint cache_round;  // the first token of the ring's round in which this work-group's keys begin
void begin_round(uint first_token) {
    cache_round = args.window > 0u ? first_token / args.capacity * args.capacity : 0u;
}
// Of a token in this round or the next; the smaller of two unsigned numbers is the row that exists.
uint row_of(uint token) {
    const uint in_round = token - cache_round;
    return min(in_round, in_round - args.capacity);
}
#endif
