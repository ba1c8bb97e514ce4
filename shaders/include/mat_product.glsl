// Products of 64 rows of a weight with 64 tokens in f32, by a work-group of 256: 4 x 4 per invocation, over tiles of 32
// columns in shared memory. Wants tile_rows, tile_cols and tile_tokens, set before; weight_row(r), the row of the buffer
// that row r is; x_element(t, c) and, where the format is not one of plain floats, x_four(t, c): elements c .. c + 3.
uint tile_rows, tile_cols, tile_tokens;  // there are so many

const uint kStride = 68;  // of a column of 64, padded against bank conflicts
shared float w_tile[32 * kStride];
shared float x_tile[32 * kStride];

// Each invocation loads 8 columns of one row: 4k .. 4k + 3 and 16 + 4k .. 16 + 4k + 3.
void load_tiles(uint first_row, uint first_token, uint column) {
    const uint r = gl_LocalInvocationID.x / 4u, k = gl_LocalInvocationID.x % 4u;
    const uint row = weight_row(min(first_row + r, tile_rows - 1u)), token = min(first_token + r, tile_tokens - 1u);
    float w[8], x[8];
#ifdef FORMAT_FLOAT
    [[unroll]] for (uint i = 0; i < 8; ++i) {
        const uint c = column + (i < 4u ? 4u * k + i : 12u + 4u * k + i);
        w[i] = c < tile_cols ? weight_element(0u, row * tile_cols + c) : 0.0;
        x[i] = c < tile_cols ? x_element(token, c) : 0.0;
    }
#else
    const uint unit = row * (tile_cols / 32u) + column / 32u;
    const uvec2 words = unit_words(0u, unit, k);
    const vec4 s = unit_scales(0u, unit);
    const vec4 a = decode4(words.x, s.x, s.y), b = decode4(words.y, s.z, s.w);
    const vec4 c = x_four(token, column + 4u * k), d = x_four(token, column + 16u + 4u * k);
    [[unroll]] for (uint i = 0; i < 4; ++i) {
        w[i] = a[i];
        w[i + 4] = b[i];
        x[i] = c[i];
        x[i + 4] = d[i];
    }
#endif
    [[unroll]] for (uint i = 0; i < 8; ++i) {
        const uint c = i < 4u ? 4u * k + i : 12u + 4u * k + i;
        w_tile[c * kStride + r] = w[i];
        x_tile[c * kStride + r] = x[i];
    }
}

// Rows first_row + 4 * (invocation % 16) and three more, of tokens first_token + 4 * (invocation / 16) and three more.
void tile_sums(uint first_row, uint first_token, out vec4 sums[4]) {
    const uint r = gl_LocalInvocationID.x % 16u * 4u, t = gl_LocalInvocationID.x / 16u * 4u;
    [[unroll]] for (uint j = 0; j < 4; ++j) sums[j] = vec4(0.0);
    for (uint column = 0; column < tile_cols; column += 32u) {
        barrier();
        load_tiles(first_row, first_token, column);
        barrier();
        [[unroll]] for (uint c = 0; c < 32; ++c) {
            vec4 w;
            [[unroll]] for (uint i = 0; i < 4; ++i) w[i] = w_tile[c * kStride + r + i];
            [[unroll]] for (uint j = 0; j < 4; ++j) sums[j] += w * x_tile[c * kStride + t + j];
        }
    }
}
