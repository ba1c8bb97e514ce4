// One head of a row: normed where it has a norm, and turned. TURN_LANES invocations share it; each has whole pairs in
// registers, so that all it loads is on its way at once. Wants TURN of RL_TURN_*, HEAD_DIM, args.pairs, args.table,
// args.q_eps and args.k_eps, q[], k[], q_gain[], k_gain[], table[], turn_sum(x) over the invocations that share a head, and
// put_turned(is_key, at, value).
const uint TURN_PAIRS = ((HEAD_DIM + 1) / 2 + TURN_LANES - 1) / TURN_LANES;  // of an invocation
const bool TURN_WHOLE = HEAD_DIM % (2 * TURN_LANES) == 0;                    // none has fewer

// The head's elements are those from `source` on of q or k; what becomes of them is put at `place` and on.
void turn_head(bool is_key, uint source, uint place, uint row, uint lane) {
    uvec2 at[TURN_PAIRS];
    vec2 x[TURN_PAIRS], gain[TURN_PAIRS], angle[TURN_PAIRS];  // cosine and sine
    [[unroll]] for (uint e = 0; e < TURN_PAIRS; ++e) {
        const uint pair = lane + e * TURN_LANES, entry = args.table + row * 2u * args.pairs + pair;
        const bool apart = (TURN & RL_TURN_HALVES) != 0u && pair < args.pairs;
        at[e] = apart ? uvec2(pair, pair + args.pairs) : uvec2(2u * pair, 2u * pair + 1u);
        if (!TURN_WHOLE) at[e] = min(at[e], uvec2(HEAD_DIM - 1));
        gain[e] = vec2(1.0);
        angle[e] = pair < args.pairs ? vec2(table[entry], table[entry + args.pairs]) : vec2(1.0, 0.0);
    }
    if (is_key) {
        [[unroll]] for (uint e = 0; e < TURN_PAIRS; ++e) {
            x[e] = vec2(k[source + at[e].x], k[source + at[e].y]);
            if ((TURN & RL_TURN_K_NORM) != 0u) gain[e] = vec2(k_gain[at[e].x], k_gain[at[e].y]);
        }
    } else {
        [[unroll]] for (uint e = 0; e < TURN_PAIRS; ++e) {
            x[e] = vec2(q[source + at[e].x], q[source + at[e].y]);
            if ((TURN & RL_TURN_Q_NORM) != 0u) gain[e] = vec2(q_gain[at[e].x], q_gain[at[e].y]);
        }
    }
    float scale = 1.0;
    if ((TURN & (RL_TURN_K_NORM | RL_TURN_Q_NORM)) != 0u) {
        float squares = 0.0;
        [[unroll]] for (uint e = 0; e < TURN_PAIRS; ++e) {
            const uint first = 2u * (lane + e * TURN_LANES);
            if (TURN_WHOLE || first < HEAD_DIM) squares += x[e].x * x[e].x;
            if (TURN_WHOLE || first + 1u < HEAD_DIM) squares += x[e].y * x[e].y;
        }
        const float mean = turn_sum(squares) / float(HEAD_DIM);  // by all, of which some may not be normed
        if ((TURN & (is_key ? RL_TURN_K_NORM : RL_TURN_Q_NORM)) != 0u)
            scale = 1.0 / sqrt(mean + (is_key ? args.k_eps : args.q_eps));
    }
    [[unroll]] for (uint e = 0; e < TURN_PAIRS; ++e) {
        const uint pair = lane + e * TURN_LANES;
        const vec2 head = x[e] * scale * gain[e];
        const vec2 turned = vec2(head.x * angle[e].x - head.y * angle[e].y, head.x * angle[e].y + head.y * angle[e].x);
        const vec2 result = pair < args.pairs ? turned : head;
        if (TURN_WHOLE || 2u * pair < HEAD_DIM) put_turned(is_key, place + at[e].x, result.x);
        if (TURN_WHOLE || 2u * pair + 1u < HEAD_DIM) put_turned(is_key, place + at[e].y, result.y);
    }
}
