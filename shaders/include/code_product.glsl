// tile_product() of coop_product.glsl in int8 without matrix units: an invocation has FM rows by FN tokens, whose codes it
// multiplies four at a time by dot products. Its rows and tokens are ACROSS and DOWN apart, so that invocations side by side
// read neighbouring lines of shared memory, and STRIDE is odd. Sums of a BLOCK are exact, as those of matrices are.
uint row_of(uint i) {
    const uint across = gl_LocalInvocationID.x % ACROSS;
#ifdef PAIRED
    return i < FM / 2u ? across + i * ACROSS : BM / 2u + across + (i - FM / 2u) * ACROSS;
#else
    return across + i * ACROSS;
#endif
}
uint token_of(uint j) { return gl_LocalInvocationID.x / ACROSS + j * DOWN; }

// Adds products of block b of the tile's columns.
void add_block(uint b, inout float sums[MATRICES_EACH]) {
    int totals[MATRICES_EACH];
    [[unroll]] for (uint n = 0; n < MATRICES_EACH; ++n) totals[n] = DOT_START;
    [[unroll]] for (uint k = 0; k < BLOCK / PER_WORD; ++k) {
        const uint word = b * (BLOCK / PER_WORD) + k;
        uvec4 x[FN];
        [[unroll]] for (uint j = 0; j < FN; ++j) x[j] = both_tiles[X_TILE + token_of(j) * STRIDE + word];
        [[unroll]] for (uint i = 0; i < FM; ++i) {
            const uvec4 w = both_tiles[row_of(i) * STRIDE + word];
            [[unroll]] for (uint j = 0; j < FN; ++j)
                totals[i * FN + j] += DOT4(w.x, x[j].x) + DOT4(w.y, x[j].y) + DOT4(w.z, x[j].z) + DOT4(w.w, x[j].w);
        }
    }
    float x_scale[FN], x_sum[FN];
    [[unroll]] for (uint j = 0; j < FN; ++j) {
        const uint scale_at = b / PER_UNIT * BN + token_of(j), sum_at = b * BN + token_of(j);
        x_scale[j] = x_scales[scale_at / 4u][scale_at % 4u];
#ifdef FORMAT_OFFSET
        x_sum[j] = x_sums[sum_at / 4u][sum_at % 4u];
#endif
    }
    [[unroll]] for (uint i = 0; i < FM; ++i) {
        const uint at = b * BM + row_of(i);
        const float w_scale = w_scales[at / 4u][at % 4u];
        [[unroll]] for (uint j = 0; j < FN; ++j) {
            sums[i * FN + j] += dot_value(totals[i * FN + j]) * (w_scale * x_scale[j]);
#ifdef FORMAT_OFFSET
            sums[i * FN + j] += w_offsets[at / 4u][at % 4u] * x_sum[j];
#endif
        }
    }
}

void tile_product() {
    float sums[MATRICES_EACH];
    [[unroll]] for (uint n = 0; n < MATRICES_EACH; ++n) sums[n] = 0.0;
    Ahead ahead;
    fetch(0u, ahead);
    store(0u, ahead);
    barrier();
    for (uint column = 0; column < args.cols; column += BK) {
        const uint next = next_tile(column);
        fetch(next, ahead);
        [[unroll]] for (uint b = 0; b < BLOCKS; ++b) add_block(b, sums);
        barrier();
        store(next, ahead);
        barrier();
    }
    [[unroll]] for (uint i = 0; i < FM / PAIR; ++i) [[unroll]] for (uint j = 0; j < FN; ++j) {
#ifdef PAIRED
        put(row_of(i), token_of(j), sums[i * FN + j], sums[(i + FM / 2u) * FN + j]);
#else
        put(row_of(i), token_of(j), sums[i * FN + j]);
#endif
    }
}
