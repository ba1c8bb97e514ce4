// tile_product() of coop_product.glsl with matrices of TM x TN that subgroups hold.
// First row in the tile of a subgroup's matrix i.
uint matrix_row(uint across, uint i) {
#ifdef PAIRED
    return i < FM / 2u ? (across * (FM / 2u) + i) * TM : BM / 2u + (across * (FM / 2u) + i - FM / 2u) * TM;
#else
    return (across * FM + i) * TM;
#endif
}

#define SUMS coopmat<float, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator>
#define CODE_SUMS coopmat<int, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator>

void tile_product() {
    const uint across = gl_SubgroupID % ACROSS, down = gl_SubgroupID / ACROSS;
    SUMS sums[MATRICES_EACH];
    [[unroll]] for (uint i = 0; i < MATRICES_EACH; ++i) sums[i] = SUMS(0.0);
    Ahead ahead;
    fetch(0u, ahead);
    store(0u, ahead);
    barrier();
    for (uint column = 0; column < args.cols; column += BK) {
        const uint next = next_tile(column);
        fetch(next, ahead);
#ifdef INT8_MATRICES
        [[unroll]] for (uint b = 0; b < BLOCKS; ++b) {
            coopmat<FACTOR, gl_ScopeSubgroup, TM, TK, gl_MatrixUseA> w[FM * (BLOCK / TK)];
            SUMS w_scale[FM], w_offset[FM];
            [[unroll]] for (uint i = 0; i < FM; ++i) {
                const uint row = matrix_row(across, i);
                [[unroll]] for (uint k = 0; k < BLOCK / TK; ++k)
                    coopMatLoad(w[i * (BLOCK / TK) + k], both_tiles, row * STRIDE + (b * BLOCK + k * TK) / STEP, STRIDE,
                                gl_CooperativeMatrixLayoutRowMajor);
                // With a stride of 0 all columns are the same, below all rows.
                coopMatLoad(w_scale[i], w_scales, (b * BM + row) / 4u, 0, gl_CooperativeMatrixLayoutColumnMajor);
#ifdef FORMAT_OFFSET
                coopMatLoad(w_offset[i], w_offsets, (b * BM + row) / 4u, 0, gl_CooperativeMatrixLayoutColumnMajor);
#endif
            }
            [[unroll]] for (uint j = 0; j < FN; ++j) {
                const uint t = (down * FN + j) * TN;
                coopmat<FACTOR, gl_ScopeSubgroup, TK, TN, gl_MatrixUseB> x[BLOCK / TK];
                [[unroll]] for (uint k = 0; k < BLOCK / TK; ++k)
                    coopMatLoad(x[k], both_tiles, X_TILE + t * STRIDE + (b * BLOCK + k * TK) / STEP, STRIDE,
                                gl_CooperativeMatrixLayoutColumnMajor);
                SUMS x_scale, x_sum;
                coopMatLoad(x_scale, x_scales, (b / PER_UNIT * BN + t) / 4u, 0, gl_CooperativeMatrixLayoutRowMajor);
#ifdef FORMAT_OFFSET
                coopMatLoad(x_sum, x_sums, (b * BN + t) / 4u, 0, gl_CooperativeMatrixLayoutRowMajor);
#endif
                [[unroll]] for (uint i = 0; i < FM; ++i) {
                    CODE_SUMS sum = CODE_SUMS(DOT_START);
                    [[unroll]] for (uint k = 0; k < BLOCK / TK; ++k)
                        sum = coopMatMulAdd(w[i * (BLOCK / TK) + k], x[k], sum);
                    // The driver knows which elements an invocation holds: these are the same ones of all.
                    [[unroll]] for (uint e = 0; e < sum.length(); ++e) {
                        sums[i * FN + j][e] += dot_value(sum[e]) * (w_scale[i][e] * x_scale[e]);
#ifdef FORMAT_OFFSET
                        sums[i * FN + j][e] += w_offset[i][e] * x_sum[e];
#endif
                    }
                }
            }
        }
#else
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
#endif
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
