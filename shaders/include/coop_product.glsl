// A tile of BM rows by BN tokens on matrix units, both as halfs in shared memory; sums in f32. The next tile of BK
// columns is read while the present one is multiplied. Needs args.cols % 32 == 0. Wants coop.glsl, halves[] and, with
// rows and tokens counted from the tile's first: weight_row(r), a row in the weight's buffer; x_row(n, t), a row of the
// activations, asked for word n of this invocation; and put(r, t, sum). All rows must exist, those past the end too.
shared uvec4 w_tile[BM * STRIDE];
shared uvec4 x_tile[BN * STRIDE];
shared float results[ACROSS * DOWN * TM * TN];

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
        const uint row = weight_row(i / (BK / 32u));
        fetch_unit(0u, row * units + min(column / 32u + i % (BK / 32u), units - 1u), ahead.w[n]);
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
            [[unroll]] for (uint k = 0; k < 4; ++k) w_tile[r * STRIDE + u * 4u + k] = decoded[k];
    }
    [[unroll]] for (uint n = 0; n < X_EACH; ++n) {
        const uint i = n * THREADS + gl_LocalInvocationID.x;
        const uint t = i / (BK / 8u), k = i % (BK / 8u);
        if (X_WORDS % THREADS == 0u || i < X_WORDS)
            x_tile[t * STRIDE + k] = column + k * 8u < args.cols ? ahead.x[n] : uvec4(0u);
    }
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
            coopmat<float16_t, gl_ScopeSubgroup, TM, TK, gl_MatrixUseA> w[FM];
            [[unroll]] for (uint i = 0; i < FM; ++i)
                coopMatLoad(w[i], w_tile, (across * FM + i) * TM * STRIDE + k / 8u, STRIDE,
                            gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint j = 0; j < FN; ++j) {
                coopmat<float16_t, gl_ScopeSubgroup, TK, TN, gl_MatrixUseB> x;
                coopMatLoad(x, x_tile, (down * FN + j) * TN * STRIDE + k / 8u, STRIDE,
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
    const uint own = gl_SubgroupID * TM * TN;
    [[unroll]] for (uint i = 0; i < FM; ++i)
        [[unroll]] for (uint j = 0; j < FN; ++j) {
            coopMatStore(sums[i * FN + j], results, own, TM, gl_CooperativeMatrixLayoutColumnMajor);
            subgroupMemoryBarrierShared();
            subgroupBarrier();
            [[unroll]] for (uint n = 0; n < TM * TN / SUBGROUP; ++n) {
                const uint e = n * SUBGROUP + gl_SubgroupInvocationID;
                put((across * FM + i) * TM + e % TM, (down * FN + j) * TN + e / TM, results[own + e]);
            }
            subgroupMemoryBarrierShared();
            subgroupBarrier();
        }
}
