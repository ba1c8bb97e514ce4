// Products of up to 64 tokens on matrix units, at the pace at which the weights are read: many small work-groups, each of
// which has BM rows of the weight, all tokens, and one of gl_NumWorkGroups.y shares of the columns. It decodes BK columns
// at a time to halfs in shared memory, while the next are read. Its subgroups stand ACROSS its rows and DEEP in a tile's
// columns, each with FM x FN matrices of TM x TN. The work-group that is done last of those with the same rows adds up what
// all left in partials[], share after share: the order of sums depends on the constants and the grid alone.
//   Wants args of FewArgs, half_units.glsl, halves[], partials[] and partials4[], counters[], and put(r, t, sum) or, with
// PAIRED, where the upper half of a tile's rows are of a second matrix, put(r, t, sum, other), with r counted in the
// weight's part.
const uint FM = BM / (ACROSS * TM), FN = BN / TN, SUBGROUPS = ACROSS * DEEP;
const uint THREADS = SUBGROUPS * SUBGROUP;
const uint STRIDE = BK / 8 + 1;  // of a row of a tile, in uvec4 (8 factors), padded against bank conflicts
#ifdef PAIRED
const uint PAIR = 2;
#else
const uint PAIR = 1;
#endif
const uint X_TILE = BM * STRIDE;  // where the activations' tile begins
const uint RESULT = TM * TN / 4;  // of a subgroup's matrix of sums, in uvec4
const uint TILES = (BM + BN) * STRIDE, RESULTS = SUBGROUPS * PAIR * RESULT;
shared uvec4 both_tiles[TILES > RESULTS ? TILES : RESULTS];
shared bool is_last;

const uint PIECES = BM * (BK / PIECE), W_EACH = (PIECES + THREADS - 1) / THREADS;  // of the weight's tile
const uint X_WORDS = BN * (BK / 8), X_EACH = (X_WORDS + THREADS - 1) / THREADS;    // of the activations'
const uint ROWS = BM / PAIR;                                                       // of a matrix in a tile
const uint SUMS = ROWS * BN;                                                       // of a work-group, or pairs of them
const uint PUT_DOWN = ACROSS * TM * TN, SUMS_EACH = (PUT_DOWN + THREADS - 1) / THREADS;  // of these at a time
const uint MOST_SHARES = 8;

struct Ahead {
    uint w[W_EACH][RAW];
    uvec4 x[X_EACH];
};
uint tokens, end_column;

// The number in the weight's buffer of piece i of the tile. Past the last row or column it is one that is there.
uint few_piece(uint i, uint column) {
    const uint pieces = args.cols / PIECE, row = min(gl_WorkGroupID.x * ROWS + i / (BK / PIECE) % ROWS, args.rows - 1u);
    return row * pieces + min(column / PIECE + i % (BK / PIECE), pieces - 1u);
}
// Without branches but that of which matrix it is, so that the loads overlap with whatever stands around them.
void fetch(uint column, out Ahead ahead) {
    [[unroll]] for (uint n = 0; n < W_EACH; ++n) {
        const uint i = min(n * THREADS + gl_LocalInvocationID.x, PIECES - 1u), piece = few_piece(i, column);
#ifdef PAIRED
        if (i >= PIECES / 2u)
            fetch_piece(1u, piece, ahead.w[n]);
        else
#endif
            fetch_piece(0u, piece, ahead.w[n]);
    }
    const uint words = args.cols / 8u;
    [[unroll]] for (uint n = 0; n < X_EACH; ++n) {
        const uint i = min(n * THREADS + gl_LocalInvocationID.x, X_WORDS - 1u);
        ahead.x[n] = halves[min(i / (BK / 8u), tokens - 1u) * words + min(column / 8u + i % (BK / 8u), words - 1u)];
    }
}
void store(uint column, Ahead ahead) {
    [[unroll]] for (uint n = 0; n < W_EACH; ++n) {
        const uint i = n * THREADS + gl_LocalInvocationID.x;
        uvec4 decoded[PIECE / 8];
        piece_halves(few_piece(min(i, PIECES - 1u), column), ahead.w[n], decoded);
        const uint at = i / (BK / PIECE) * STRIDE + i % (BK / PIECE) * (PIECE / 8u);
        if (PIECES % THREADS == 0u || i < PIECES)
            [[unroll]] for (uint k = 0; k < PIECE / 8u; ++k) both_tiles[at + k] = decoded[k];
    }
    [[unroll]] for (uint n = 0; n < X_EACH; ++n) {
        const uint i = n * THREADS + gl_LocalInvocationID.x, k = i % (BK / 8u);
        if (X_WORDS % THREADS == 0u || i < X_WORDS)
            both_tiles[X_TILE + i / (BK / 8u) * STRIDE + k] = column + k * 8u < end_column ? ahead.x[n] : uvec4(0u);
    }
}

// First row in the tile of matrix i of a subgroup, which has as many of both halves.
uint matrix_row(uint across, uint i) {
    return i / (FM / PAIR) * ROWS + (across * (FM / PAIR) + i % (FM / PAIR)) * TM;
}

#define MATRIX coopmat<float, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator>

// Number n of a work-group's sums: they are counted matrix after matrix, as subgroups put them down, and so that those of
// four rows of one token follow each other.
void put_sum(uint n, float sums[PAIR]) {
    const uint matrix = n / PUT_DOWN, within = n % PUT_DOWN, e = within % (TM * TN);
    const uint r = matrix_row(within / (TM * TN), matrix / FN) + e % TM, t = matrix % FN * TN + e / TM;
    const uint row = gl_WorkGroupID.x * ROWS + r;
    if (row >= args.rows || t >= tokens) return;
#ifdef PAIRED
    put(row, t, sums[0], sums[1]);
#else
    put(row, t, sums[0]);
#endif
}
uint partial(uint share, uint p, uint n) {
    return ((gl_WorkGroupID.x * gl_NumWorkGroups.y + share) * PAIR + p) * SUMS + n;
}

// True in the work-group that comes here last of those with its rows: it sees what the others wrote to `partials`.
bool last_of_shares() {
    memoryBarrierBuffer();
    barrier();
    if (gl_LocalInvocationID.x == 0u) {
        const uint at = gl_WorkGroupID.x;
        is_last = atomicAdd(counters[at], 1u) == gl_NumWorkGroups.y - 1u;
        if (is_last) counters[at] = 0u;
        memoryBarrierBuffer();
    }
    barrier();
    memoryBarrierBuffer();
    return is_last;
}
// The shares' sums of four rows of a token are under way at once.
void merge_shares() {
    const uint shares = gl_NumWorkGroups.y;
    for (uint n = gl_LocalInvocationID.x * 4u; n < SUMS; n += THREADS * 4u) {
        vec4 sums[PAIR];
        [[unroll]] for (uint p = 0; p < PAIR; ++p) {
            vec4 some[MOST_SHARES];
            [[unroll]] for (uint s = 0; s < MOST_SHARES; ++s) some[s] = partials4[partial(min(s, shares - 1u), p, n) / 4u];
            sums[p] = some[0];
            [[unroll]] for (uint s = 1; s < MOST_SHARES; ++s)
                if (s < shares) sums[p] += some[s];
        }
        [[unroll]] for (uint k = 0; k < 4; ++k) {
            float one[PAIR];
            [[unroll]] for (uint p = 0; p < PAIR; ++p) one[p] = sums[p][k];
            put_sum(n + k, one);
        }
    }
}

void few_products() {
    const uint across = gl_SubgroupID % ACROSS, deep = gl_SubgroupID / ACROSS;
    const uint tiles = (args.cols + BK - 1u) / BK, each = (tiles + gl_NumWorkGroups.y - 1u) / gl_NumWorkGroups.y;
    uint column = gl_WorkGroupID.y * each * BK;
    end_column = min(column + each * BK, args.cols);
    MATRIX sums[FM * FN];
    [[unroll]] for (uint i = 0; i < FM * FN; ++i) sums[i] = MATRIX(0.0);
    Ahead ahead;
    fetch(column, ahead);
    for (; column < end_column; column += BK) {
        store(column, ahead);
        barrier();
        fetch(column + BK, ahead);
        [[unroll]] for (uint k = 0; k < BK / DEEP; k += TK) {
            const uint at = (deep * (BK / DEEP) + k) / 8u;
            coopmat<float16_t, gl_ScopeSubgroup, TM, TK, gl_MatrixUseA> w[FM];
            [[unroll]] for (uint i = 0; i < FM; ++i)
                coopMatLoad(w[i], both_tiles, matrix_row(across, i) * STRIDE + at, STRIDE, gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint j = 0; j < FN; ++j) {
                coopmat<float16_t, gl_ScopeSubgroup, TK, TN, gl_MatrixUseB> x;
                coopMatLoad(x, both_tiles, X_TILE + j * TN * STRIDE + at, STRIDE, gl_CooperativeMatrixLayoutColumnMajor);
                [[unroll]] for (uint i = 0; i < FM; ++i) sums[i * FN + j] = coopMatMulAdd(w[i], x, sums[i * FN + j]);
            }
        }
        barrier();
    }
    // Every loop here has a constant count: see subgroup_product.glsl. With one that has not, a step of 64 rows took 1.7
    // times as long (an H200, Llama-3.1-8B Q4_K_M).
    const uint mine = gl_SubgroupID * PAIR * RESULT;
    [[unroll]] for (uint i = 0; i < FM / PAIR; ++i)
        [[unroll]] for (uint j = 0; j < FN; ++j) {
            [[unroll]] for (uint p = 0; p < PAIR; ++p)
                coopMatStore(sums[(i + p * (FM / PAIR)) * FN + j], both_tiles, mine + p * RESULT, TM / 4u,
                             gl_CooperativeMatrixLayoutColumnMajor);
            barrier();
            [[unroll]] for (uint some = 0; some < SUMS_EACH; ++some) {
                const uint e = some * THREADS + gl_LocalInvocationID.x, n = (i * FN + j) * PUT_DOWN + e;
                if (PUT_DOWN % THREADS != 0u && e >= PUT_DOWN) continue;
                float all[PAIR];
                [[unroll]] for (uint p = 0; p < PAIR; ++p) {
                    all[p] = 0.0;
                    [[unroll]] for (uint d = 0; d < DEEP; ++d) {
                        const uint at = ((d * ACROSS + e / (TM * TN)) * PAIR + p) * RESULT;
                        all[p] += uintBitsToFloat(both_tiles[at + e % (TM * TN) / 4u][e % 4u]);
                    }
                    if (gl_NumWorkGroups.y > 1u) partials[partial(gl_WorkGroupID.y, p, n)] = all[p];
                }
                if (gl_NumWorkGroups.y == 1u) put_sum(n, all);
            }
            barrier();
        }
    if (gl_NumWorkGroups.y > 1u && last_of_shares()) merge_shares();
}
