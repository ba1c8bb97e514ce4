// A tile of BM rows by BN tokens on matrix units, both as FACTORs in shared memory; sums in f32, and in int8 of a block of
// columns in int32. The next tile of BK columns is read while the present one is multiplied: what is read is always stored,
// even behind the last column, or compilers would move the loads behind the product, where nothing is left to overlap with.
// Needs args.cols % 32 == 0.
// Wants coop.glsl, half_units.glsl, halves[] and, with rows and tokens counted from the tile's first: weight_row(r), a
// row in the weight's buffer; x_row(n, t), a row of the activations, asked for word n of this invocation; and put(r, t,
// sum). All rows must exist, those past the end too.
// PAIRED: the lower half of the tile's rows are of the first matrix, the upper half of the second, and what comes of
// rows r and BM / 2 + r goes to put(r, t, sum, other sum).
const uint X_TILE = BM * STRIDE;                      // where the activations' tile begins
const uint RESULT = TM * TN / 4;                      // of a subgroup's matrix of sums, in uvec4
const uint TILES = (BM + BN) * STRIDE, RESULTS = ACROSS * DOWN * RESULT;
shared uvec4 both_tiles[TILES > RESULTS ? TILES : RESULTS];  // both, and at the end results
#ifdef PAIRED
const uint PAIR = 2;
#else
const uint PAIR = 1;
#endif
#ifdef INT8_MATRICES
#include "int8_tile.glsl"
#endif

const uint PIECES = BM * (BK / PIECE), W_EACH = (PIECES + THREADS - 1) / THREADS;  // of the weight's tile

// What one invocation holds of the tile that comes next.
struct Ahead {
    uint w[W_EACH][RAW];
    uvec4 x[X_EACH];
#ifdef INT8_MATRICES
    uvec2 x_unit[X_EACH];
#endif
};

// In the weight's buffer, of piece i of the tile; past the last column whatever is at hand.
uint weight_piece(uint i, uint column) {
    const uint pieces = args.cols / PIECE;
    const uint k = column / PIECE + i % (BK / PIECE);
    return weight_row(i / (BK / PIECE)) * pieces + (WHOLE ? k : min(k, pieces - 1u));
}

// Without branches, so that the loads overlap with whatever stands around them. Past the last column both are
// whatever is at hand; store() makes activations zero there.
void fetch(uint column, out Ahead ahead) {
    [[unroll]] for (uint n = 0; n < W_EACH; ++n) {
        const uint i = min(n * THREADS + gl_LocalInvocationID.x, PIECES - 1u), piece = weight_piece(i, column);
#ifdef PAIRED
        // Alike for all of a subgroup.
        if (i >= PIECES / 2u)
            fetch_piece(1u, piece, ahead.w[n]);
        else
#endif
            fetch_piece(0u, piece, ahead.w[n]);
    }
    [[unroll]] for (uint n = 0; n < X_EACH; ++n) {
        const uint i = min(n * THREADS + gl_LocalInvocationID.x, X_WORDS - 1u), words = args.cols / PER_WORD;
        const uint k = column / PER_WORD + i % (BK / PER_WORD), row = x_row(n, i / (BK / PER_WORD));
        const uint at = row * words + (WHOLE ? k : min(k, words - 1u));
        ahead.x[n] = halves[at];
#ifdef INT8_MATRICES
        ahead.x_unit[n] = token_units[at / 2u];
#endif
    }
}

void store(uint column, Ahead ahead) {
    [[unroll]] for (uint n = 0; n < W_EACH; ++n) {
        const uint i = n * THREADS + gl_LocalInvocationID.x;
#ifdef INT8_MATRICES
        if (PIECES % THREADS == 0u || i < PIECES)
            put_weights(i / (BK / PIECE), i % (BK / PIECE), weight_piece(i, column), ahead.w[n]);
#else
        uvec4 decoded[PIECE / 8];
        piece_halves(weight_piece(i, column), ahead.w[n], decoded);
        const uint at = i / (BK / PIECE) * STRIDE + i % (BK / PIECE) * (PIECE / 8u);
        if (PIECES % THREADS == 0u || i < PIECES)
            [[unroll]] for (uint k = 0; k < PIECE / 8u; ++k) both_tiles[at + k] = decoded[k];
#endif
    }
    [[unroll]] for (uint n = 0; n < X_EACH; ++n) {
        const uint i = n * THREADS + gl_LocalInvocationID.x;
        const uint t = i / (BK / PER_WORD), k = i % (BK / PER_WORD);
        const bool inside = WHOLE || column + k * PER_WORD < args.cols;
        if (X_WORDS % THREADS == 0u || i < X_WORDS)
#ifdef INT8_MATRICES
            put_tokens(t, k, ahead.x[n], ahead.x_unit[n], inside);
#else
            both_tiles[X_TILE + t * STRIDE + k] = inside ? ahead.x[n] : uvec4(0u);
#endif
    }
}

// Where the tile behind `column` begins, or the last one.
uint next_tile(uint column) {
    return WHOLE ? min(column + BK, args.cols - BK) : min(column + BK, args.cols - 32u) / BK * BK;
}

#ifdef GROUP_MATRICES
#include "group_product.glsl"
#elif defined(INT8_DOTS)
#include "code_product.glsl"
#else
#include "subgroup_product.glsl"
#endif
