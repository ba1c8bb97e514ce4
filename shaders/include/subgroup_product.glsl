// tile_product() of coop_product.glsl with matrices of TM x TN that subgroups hold.
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
        const uint next = next_tile(column);
        fetch(next, ahead);
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
        barrier();
        store(next, ahead);
        barrier();
    }
    // Every loop here has a constant count: were one left as a loop, NVIDIA's compiler would index `sums` by a variable,
    // keep them in memory, and multiply ten times slower.
    const uint own = gl_SubgroupID * RESULT;
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
