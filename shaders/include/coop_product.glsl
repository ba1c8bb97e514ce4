// A tile of BM rows by BN tokens on matrix units, both as FACTORs in shared memory; sums in f32. The next tile of BK
// columns is read while the present one is multiplied. Needs args.cols % 32 == 0. Wants coop.glsl, halves[] and, with
// rows and tokens counted from the tile's first: weight_row(r), a row in the weight's buffer; x_row(n, t), a row of the
// activations, asked for word n of this invocation; and put(r, t, sum). All rows must exist, those past the end too.
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

// What one invocation holds of the tile that comes next.
struct Ahead {
    uint w[W_EACH][RAW];
    uvec4 x[X_EACH];
};

// Without branches, so that the loads overlap with whatever stands around them. Past the last column both are
// whatever is at hand; store() makes activations zero there.
void fetch(uint column, out Ahead ahead) {
    const uint units = args.cols / 32u;
    [[unroll]] for (uint n = 0; n < W_EACH; ++n) {
        const uint i = min(n * THREADS + gl_LocalInvocationID.x, W_UNITS - 1u);
        const uint unit = weight_row(i / (BK / 32u)) * units + min(column / 32u + i % (BK / 32u), units - 1u);
#ifdef PAIRED
        // Alike for all of a subgroup.
        if (i >= W_UNITS / 2u)
            fetch_unit(1u, unit, ahead.w[n]);
        else
#endif
            fetch_unit(0u, unit, ahead.w[n]);
    }
    [[unroll]] for (uint n = 0; n < X_EACH; ++n) {
        const uint i = min(n * THREADS + gl_LocalInvocationID.x, X_WORDS - 1u);
        const uint k = i % (BK / 8u), row = x_row(n, i / (BK / 8u));
        ahead.x[n] = halves[row * (args.cols / 8u) + min(column / 8u + k, args.cols / 8u - 1u)];
    }
}

void store(uint column, Ahead ahead) {
    const uint units = args.cols / 32u;
    [[unroll]] for (uint n = 0; n < W_EACH; ++n) {
        const uint i = n * THREADS + gl_LocalInvocationID.x, r = i / (BK / 32u), u = i % (BK / 32u);
        uvec4 decoded[4];
        unit_halves(weight_row(r) * units + min(column / 32u + u, units - 1u), ahead.w[n], decoded);
        if (W_UNITS % THREADS == 0u || i < W_UNITS)
            [[unroll]] for (uint k = 0; k < 4; ++k) both_tiles[r * STRIDE + u * 4u + k] = decoded[k];
    }
    [[unroll]] for (uint n = 0; n < X_EACH; ++n) {
        const uint i = n * THREADS + gl_LocalInvocationID.x;
        const uint t = i / (BK / 8u), k = i % (BK / 8u);
        if (X_WORDS % THREADS == 0u || i < X_WORDS)
            both_tiles[X_TILE + t * STRIDE + k] = column + k * 8u < args.cols ? ahead.x[n] : uvec4(0u);
    }
}

// First row in the tile of a subgroup's matrix i.
uint matrix_row(uint across, uint i) {
#ifdef PAIRED
    return i < FM / 2u ? (across * (FM / 2u) + i) * TM : BM / 2u + (across * (FM / 2u) + i - FM / 2u) * TM;
#else
    return (across * FM + i) * TM;
#endif
}

void tile_product() {
    const uint across = gl_SubgroupID % ACROSS, down = gl_SubgroupID / ACROSS;
    coopmat<float, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator> sums[MATRICES_EACH];
    [[unroll]] for (uint i = 0; i < MATRICES_EACH; ++i)
        sums[i] = coopmat<float, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator>(0.0);
    Ahead ahead;
    fetch(0u, ahead);
    store(0u, ahead);
    barrier();
    for (uint column = 0; column < args.cols; column += BK) {
        const uint next = column + BK;
        fetch(min(next, args.cols - 32u) / BK * BK, ahead);
        [[unroll]] for (uint k = 0; k < BK; k += TK) {
            coopmat<FACTOR, gl_ScopeSubgroup, TM, TK, gl_MatrixUseA> w[FM];
            [[unroll]] for (uint i = 0; i < FM; ++i)
                coopMatLoad(w[i], both_tiles, matrix_row(across, i) * STRIDE + k / 8u, STRIDE,
                            gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint j = 0; j < FN; ++j) {
                coopmat<FACTOR, gl_ScopeSubgroup, TK, TN, gl_MatrixUseB> x;
                coopMatLoad(x, both_tiles, X_TILE + (down * FN + j) * TN * STRIDE + k / 8u, STRIDE,
                            gl_CooperativeMatrixLayoutColumnMajor);
                [[unroll]] for (uint i = 0; i < FM; ++i) sums[i * FN + j] = coopMatMulAdd(w[i], x, sums[i * FN + j]);
            }
        }
        if (next >= args.cols) break;
        barrier();
        store(next, ahead);
        barrier();
    }
    // Every loop here has a constant count: were one left as a loop, NVIDIA's compiler would index `sums` by a variable,
    // keep them in memory, and multiply ten times slower.
    const uint own = gl_SubgroupID * RESULT;
    barrier();  // the last tiles have been multiplied
    [[unroll]] for (uint i = 0; i < FM / PAIR; ++i)
        [[unroll]] for (uint j = 0; j < FN; ++j) {
            float first[TM * TN / SUBGROUP];
            [[unroll]] for (uint p = 0; p < PAIR; ++p) {
                coopMatStore(sums[(i + p * (FM / PAIR)) * FN + j], both_tiles, own, TM / 4u, gl_CooperativeMatrixLayoutColumnMajor);
                subgroupMemoryBarrierShared();
                subgroupBarrier();
                [[unroll]] for (uint n = 0; n < TM * TN / SUBGROUP; ++n) {
                    const uint e = n * SUBGROUP + gl_SubgroupInvocationID;
                    const float sum = uintBitsToFloat(both_tiles[own + e / 4u][e % 4u]);
                    const uint r = matrix_row(across, i) + e % TM, t = (down * FN + j) * TN + e / TM;
#ifdef PAIRED
                    if (p == 0u)
                        first[n] = sum;
                    else
                        put(r, t, first[n], sum);
#else
                    put(r, t, sum);
#endif
                }
                subgroupMemoryBarrierShared();
                subgroupBarrier();
            }
        }
}
