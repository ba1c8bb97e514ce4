// TOKENS rows of the gated delta rule at once, for invocations in clusters of TOKENS. Wants what delta_net.comp declares.
const bool AT_ONCE = QUADS <= 4 && LANES == TOKENS;  // or too many registers would be wanted
const uint PER = (TOKENS * ALL_QUADS + THREADS - 1) / THREADS;  // quads of queries, and of keys, that an invocation brings
const uint VALUES = (TOKENS * BLOCK + THREADS - 1) / THREADS;
const uint PAIRS = TOKENS * TOKENS;
const uint READ_AT_ONCE = 4;
// The inputs of the next rows on their way.
vec4 next_queries[PER], next_keys[PER];
float next_values[VALUES];
float next_alpha, next_beta;
// Queries and keys in shared memory are as they came. By rows: what they are multiplied by to be unit vectors; the product of
// decays up to the row, times the gate and the key's factor, and times the query's; what the row's change counts behind all.
shared float of_keys[TOKENS], of_queries[TOKENS], seen_by[TOKENS], read_by[TOKENS], left[TOKENS];
// Of row t and an earlier one: their products, then those times all factors, decays between them and, of keys, the gate.
shared float by_keys[PAIRS], by_queries[PAIRS];

vec4 quad_at(uint from, uint i) {
    if (KEY_DIM % 4 == 0 && VALUE_DIM % 4 == 0) return i < KEY_DIM / 4 ? qkv4[from / 4u + i] : vec4(0.0);
    vec4 quad = vec4(0.0);
    [[unroll]] for (uint e = 0; e < 4; ++e)
        if (4 * i + e < KEY_DIM) quad[e] = qkv[from + 4 * i + e];
    return quad;
}

void fetch_rows(uint row, uint head) {
    const uint all_keys = args.key_heads * KEY_DIM, width = 2u * all_keys + args.heads * VALUE_DIM;
    const uint key_head = args.in_turns != 0u ? head % args.key_heads : head / (args.heads / args.key_heads);
    const uint q = row * width + key_head * KEY_DIM, v = row * width + 2u * all_keys + head * VALUE_DIM;
    [[unroll]] for (uint n = 0; n < PER; ++n) {
        const uint i = min(own + n * THREADS, TOKENS * ALL_QUADS - 1u), at = q + i / ALL_QUADS * width;
        next_queries[n] = quad_at(at, i % ALL_QUADS);
        next_keys[n] = quad_at(at + all_keys, i % ALL_QUADS);
    }
    [[unroll]] for (uint n = 0; n < VALUES; ++n) {
        const uint i = min(own + n * THREADS, TOKENS * BLOCK - 1u);
        next_values[n] = qkv[v + i / BLOCK * width + min(first + i % BLOCK, VALUE_DIM - 1u)];
    }
    const uint at = (row + min(own, TOKENS - 1u)) * args.heads + head;
    next_alpha = alpha[at];
    next_beta = beta[at];
}

// A pair of rows' products, by LANES invocations.
void multiply_pairs() {
    for (uint pair = own / LANES; pair < PAIRS; pair += THREADS / LANES) {
        const uint t = pair / TOKENS * ALL_QUADS, before = pair % TOKENS * ALL_QUADS;
        vec3 sums = vec3(0.0);
        [[unroll]] for (uint i = 0; i < QUADS; ++i) {
            const uint at = i * LANES + lane;
            const vec4 k = keys[t + at], q = queries[t + at], other = keys[before + at];
            sums += vec3(dot(k, other), dot(q, other), dot(q, q));
        }
        sums = subgroupClusteredAdd(sums, 8u);
        if (lane == 0u) {
            by_keys[pair] = sums.x;
            by_queries[pair] = sums.y;
        }
        if (lane == 0u && t == before) {
            of_keys[pair % TOKENS] = 1.0 / sqrt(sums.x + RL_DELTA_EPS);
            of_queries[pair % TOKENS] = 1.0 / sqrt((sums.z + RL_DELTA_EPS) * float(KEY_DIM));
        }
    }
}

void share_fetched(uint head) {
    barrier();  // the rows before are done
    [[unroll]] for (uint n = 0; n < PER; ++n)
        if (own + n * THREADS < TOKENS * ALL_QUADS) {
            queries[own + n * THREADS] = next_queries[n];
            keys[own + n * THREADS] = next_keys[n];
        }
    [[unroll]] for (uint n = 0; n < VALUES; ++n)
        if (own + n * THREADS < TOKENS * BLOCK) values[own + n * THREADS] = next_values[n];
    if (own < TOKENS) {
        const float x = next_alpha + dt[head];
        factors[own].x = exp(a[head] * (x > 20.0 ? x : log(1.0 + exp(x))));
        factors[own].y = 1.0 / (1.0 + exp(-next_beta));
    }
    barrier();
    multiply_pairs();
    barrier();
    for (uint pair = own; pair < PAIRS; pair += THREADS) {
        const uint t = pair / TOKENS, before = pair % TOKENS;
        float between = 1.0, behind = 1.0, all = 1.0;
        [[unroll]] for (uint r = 0; r < TOKENS; ++r) {
            const float decay = factors[r].x;
            if (r > before && r <= t) between *= decay;
            if (r > before) behind *= decay;
            if (r <= t) all *= decay;
        }
        const float gate = factors[t].y;
        by_keys[pair] *= gate * between * of_keys[t] * of_keys[before];
        by_queries[pair] *= between * of_queries[t] * of_keys[before];
        if (t == before) {
            seen_by[t] = gate * all * of_keys[t];
            read_by[t] = all * of_queries[t];
            left[t] = behind * of_keys[t];
        }
    }
    barrier();
}

// What a row reads of the state before all and of the changes up to its own, to the invocation `lane` that has its number. As
// many rows at a time as leave registers to compilers that read far ahead.
vec4 read_rows(vec4 change[TOKENS]) {
    vec4 out_row = vec4(0.0);
    [[unroll]] for (uint begin = 0; begin < TOKENS; begin += READ_AT_ONCE) {
        vec4 read[READ_AT_ONCE];
        [[unroll]] for (uint n = 0; n < READ_AT_ONCE; ++n) {
            read[n] = vec4(0.0);
            [[unroll]] for (uint i = 0; i < QUADS; ++i) {
                const vec4 q = queries[(begin + n) * ALL_QUADS + lane + i * LANES];
                [[unroll]] for (uint e = 0; e < 4; ++e) read[n] += q[e] * s[4 * i + e];
            }
        }
        [[unroll]] for (uint n = 0; n < READ_AT_ONCE; ++n) {
            const uint t = begin + n;
            const vec4 sum = subgroupClusteredAdd(read[n], 8u);
            if (lane == t) {
                out_row = read_by[t] * sum;
                [[unroll]] for (uint r = 0; r <= t; ++r) out_row += by_queries[t * TOKENS + r] * change[r];
            }
        }
    }
    return out_row;
}

void run_rows(uint row, uint head) {
    vec4 change[TOKENS];
    [[unroll]] for (uint t = 0; t < TOKENS; ++t) change[t] = vec4(0.0);
    [[unroll]] for (uint i = 0; i < QUADS; ++i)
        [[unroll]] for (uint t = 0; t < TOKENS; ++t) {
            const vec4 k = keys[t * ALL_QUADS + lane + i * LANES];
            [[unroll]] for (uint e = 0; e < 4; ++e) change[t] += k[e] * s[4 * i + e];
        }
    [[unroll]] for (uint t = 0; t < TOKENS; ++t) {
        const uint at = t * BLOCK + column - first;
        const vec4 v = vec4(values[at], values[at + 1u], values[at + 2u], values[at + 3u]);
        vec4 x = factors[t].y * v - seen_by[t] * subgroupClusteredAdd(change[t], 8u);
        [[unroll]] for (uint r = 0; r < t; ++r) x -= by_keys[t * TOKENS + r] * change[r];
        change[t] = x;
    }
    const vec4 out_row = read_rows(change);
    const uint place = ((row + lane) * args.heads + head) * VALUE_DIM + column;
    [[unroll]] for (uint c = 0; c < 4; ++c)
        if (column + c < VALUE_DIM) y[place + c] = out_row[c];
    memoryBarrierShared();  // or compilers keep the keys that were read before
    float decay = 1.0;
    [[unroll]] for (uint t = 0; t < TOKENS; ++t) {
        change[t] *= left[t];
        decay *= factors[t].x;
    }
    [[unroll]] for (uint i = 0; i < QUADS; ++i) {
        [[unroll]] for (uint e = 0; e < 4; ++e) s[4 * i + e] *= decay;
        [[unroll]] for (uint t = 0; t < TOKENS; ++t) {
            const vec4 k = keys[t * ALL_QUADS + lane + i * LANES];
            [[unroll]] for (uint e = 0; e < 4; ++e) s[4 * i + e] += k[e] * change[t];
        }
    }
}
