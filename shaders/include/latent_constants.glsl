// How work is shared in latent_tiles.glsl. Wants THREADS, WIDTH of a row, RANK of a value, QUERIES.
const uint SLICES = 8;
const uint CELL_KEYS = 4;
const uint CELL_QUERIES = QUERIES < 4 ? QUERIES : 4;
const uint CELLS = THREADS / SLICES;
const uint KEY_CELLS = CELLS * CELL_QUERIES / QUERIES;
const uint KEYS = KEY_CELLS * CELL_KEYS;                // of a tile
const uint KEY_FOURS = (WIDTH + 3) / 4;
const uint FOURS = (RANK + 3) / 4;                      // of a value
const uint WIDE = FOURS < THREADS ? FOURS : THREADS;    // fours of a value that invocations have at a time
const uint COLUMNS = (FOURS + THREADS - 1) / THREADS;   // of one invocation
const uint SUMS = COLUMNS * QUERIES;
const uint TURNS = THREADS / WIDE;
const uint KEY_LOADS = 2, VALUE_LOADS = 8;              // on their way: of each key of a cell, of values
const uint CHANCES = KEYS < 128 ? 128 : KEYS;           // room of a query
const uint SUMMED = QUERIES < 2 ? QUERIES : 2;          // queries whose sums come together at a time
const uint MERGE_LOADS = 8;                             // of partial results
