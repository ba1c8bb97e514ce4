// How few_tiles.glsl divides its work. Wants THREADS, HEAD_DIM and QUERIES.
const uint FOURS = HEAD_DIM / 4;
const uint KEYS = THREADS / 4;                              // of a tile
const uint PIECES = FOURS / 4;                              // fours of a key that an invocation has
const uint TURNS = THREADS / FOURS;                         // groups of invocations that take turns at values
const uint VALUES = (KEYS + TURNS - 1) / TURNS;             // of an invocation in a tile
const uint CHANCES = KEYS < 64 ? 128 : 2 * KEYS;            // room of a query
const uint SUMMED = QUERIES < 2 ? QUERIES : 2;              // queries whose sums come together at a time
const uint MERGE_LOADS = 8;                                 // of partial results
