// sums[(m * ROWS + r) * TOKENS + t] += w[m][rows[r]] . x[t] over this invocation's share: lanes stride over units, of
// which AHEAD are read before one is multiplied, without branches between. Wants ROWS, TOKENS, COLS, SUBGROUP, MATRICES,
// MOST_AHEAD and dot_product.glsl.
const uint UNITS = COLS / 32;
const uint STREAMS = MATRICES * ROWS, SUMS = STREAMS * TOKENS;
const uint TURNS = (UNITS + SUBGROUP - 1) / SUBGROUP, WHOLE_TURNS = UNITS / SUBGROUP;
const uint AHEAD = TURNS < MOST_AHEAD ? TURNS : MOST_AHEAD;
const uint REST = TURNS - WHOLE_TURNS / AHEAD * AHEAD;  // turns, of which the last may be without some lanes

void add_units(bool rest, uint first, uint rows[ROWS], inout float sums[SUMS]) {
    uint words[AHEAD * STREAMS][8];
    vec4 scales[AHEAD * STREAMS];
    [[unroll]] for (uint a = 0; a < AHEAD; ++a) {
        if (rest && a >= REST) break;
        const uint u = rest ? min(first + a * SUBGROUP, UNITS - 1u) : first + a * SUBGROUP;
        [[unroll]] for (uint i = 0; i < STREAMS; ++i) {
            unit_codes(i / ROWS, rows[i % ROWS] * UNITS + u, words[a * STREAMS + i]);
            scales[a * STREAMS + i] = unit_scales(i / ROWS, rows[i % ROWS] * UNITS + u);
        }
    }
    [[unroll]] for (uint a = 0; a < AHEAD; ++a) {
        if (rest && a >= REST) break;
        const uint u = first + a * SUBGROUP;
        if (rest && WHOLE_TURNS < TURNS && u >= UNITS) continue;
        [[unroll]] for (uint t = 0; t < TOKENS; ++t) {
            const uvec4 low = x_low(t, u), high = x_high(t, u);
            const vec4 meta = x_meta(t, u);
            [[unroll]] for (uint i = 0; i < STREAMS; ++i)
                sums[i * TOKENS + t] += unit_product(words[a * STREAMS + i], scales[a * STREAMS + i], low, high, meta);
        }
    }
}

void own_products(uint rows[ROWS], inout float sums[SUMS]) {
    uint first = gl_SubgroupInvocationID;
    [[dont_unroll]] for (uint t = 0; t < WHOLE_TURNS / AHEAD; ++t, first += AHEAD * SUBGROUP)
        add_units(false, first, rows, sums);
    if (REST > 0u) add_units(true, first, rows, sums);
}
