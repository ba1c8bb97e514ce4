// A tile of coop_product.glsl in int8: codes of weights, and of activations as prepare_codes.comp leaves them, with the scales
// of the columns of a BLOCK, whose products are summed in integers, exactly.
#include "code_sums.glsl"
#ifdef FORMAT_HALVES
const uint BLOCK = 16;
#else
const uint BLOCK = 32;
#endif
const uint BLOCKS = BK / BLOCK, PER_UNIT = 32 / BLOCK;
// One for each of the tile's rows or tokens, block by block or unit by unit; in fours, so that matrices begin aligned.
shared vec4 w_scales[BLOCKS * BM / 4];
shared vec4 x_scales[BK / 32 * BN / 4];
#ifdef FORMAT_OFFSET
shared vec4 w_offsets[BLOCKS * BM / 4];
shared vec4 x_sums[BLOCKS * BN / 4];  // of the tokens' elements
#endif

// Signed codes in place of those that are FORMAT_BIAS too large: no byte borrows of the next.
uint signed_codes(uint word) {
#if defined(FORMAT_SIGNED) || FORMAT_BIAS == 0
    return word;
#else
    return ((word | 0x80808080u) - uint(FORMAT_BIAS) * 0x01010101u) ^ 0x80808080u;
#endif
}

// 16 codes, the k-th of a row of the tile that begins at `first`.
void put_codes(uint first, uint k, uvec4 codes) {
    if (STEP == PER_WORD) {
        both_tiles[first + k] = codes;
    } else {
        both_tiles[first + k * 2u] = codes;
        both_tiles[first + k * 2u + 1u] = codes.zwzw;
    }
}

// Unit u of a row of the tile; `unit` is its number in the weight.
void put_weights(uint row, uint u, uint unit, uint raw[RAW]) {
    uint words[8];
#ifdef FORMAT_RAW
    raw_codes(raw, words);
    const vec4 s = raw_scales(unit, raw);
#else
    [[unroll]] for (uint k = 0; k < 8; ++k) words[k] = raw[k];
    const vec4 s = uintBitsToFloat(uvec4(raw[8], raw[9], raw[10], raw[11]));
#endif
    [[unroll]] for (uint h = 0; h < 2u; ++h)
        put_codes(row * STRIDE, u * 2u + h,
                  uvec4(signed_codes(words[h * 4u]), signed_codes(words[h * 4u + 1u]), signed_codes(words[h * 4u + 2u]),
                        signed_codes(words[h * 4u + 3u])));
    [[unroll]] for (uint h = 0; h < PER_UNIT; ++h) {
        const uint at = (u * PER_UNIT + h) * BM + row;
        w_scales[at / 4u][at % 4u] = s[h * 2u];
#ifdef FORMAT_OFFSET
        w_offsets[at / 4u][at % 4u] = s[h * 2u + 1u];
#endif
    }
}

// 16 codes of token t, the k-th of the tile, and of their unit what token_units[] has, which the first 16 put. Past the last
// column nothing counts, so that scales are zeros there.
void put_tokens(uint t, uint k, uvec4 codes, uvec2 unit, bool inside) {
    put_codes(X_TILE + t * STRIDE, k, codes);
    if (k % 2u != 0u) return;
    const float scale = inside ? uintBitsToFloat(unit.x) : 0.0;
    const uint at = k / 2u * BN + t;
    x_scales[at / 4u][at % 4u] = scale;
#ifdef FORMAT_OFFSET
    const vec2 sums = scale * vec2(bitfieldExtract(int(unit.y), 0, 16), int(unit.y) >> 16);
    [[unroll]] for (uint h = 0; h < PER_UNIT; ++h) {
        const uint sum_at = (k / 2u * PER_UNIT + h) * BN + t;
        x_sums[sum_at / 4u][sum_at % 4u] = PER_UNIT == 1u ? sums.x + sums.y : sums[h];
    }
#endif
}
