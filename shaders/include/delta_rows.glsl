// TOKENS rows of the gated delta rule at once, for invocations in clusters of TOKENS or twice as many. Wants what
// delta_net.comp declares.
const bool AT_ONCE = QUADS <= 4 && LANES >= TOKENS;  // or too many registers would be wanted
const uint PER = (TOKENS * ALL_QUADS + THREADS - 1) / THREADS;  // quads of queries, and of keys, that an invocation brings
const uint VALUES = (TOKENS * BLOCK + THREADS - 1) / THREADS;
const uint PAIRS = TOKENS * TOKENS;
// The inputs of the next rows on their way.
vec4 next_queries[PER], next_keys[PER];
float next_values[VALUES];
float next_alpha, next_beta;
// Queries and keys in shared memory are as they came. By rows: what they are multiplied by to be unit vectors; the product of
// decays up to the row, times the gate and the key's factor, and times the query's; what the row's change counts behind all.
shared float of_keys[TOKENS], of_queries[TOKENS], seen_by[TOKENS], read_by[TOKENS], left[TOKENS];
// Of row t and an earlier one: their products, then those times all factors, decays between them and, of keys, the gate; of
// row t and a later one zeros.
shared vec4 by_keys[PAIRS / 4], by_queries[PAIRS / 4];
shared vec4 changes[THREADS / LANES * TOKENS];  // of each row, by cluster

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

// The products of a row's key and query with four rows' keys, by LANES invocations; each of eight ends up with one of them.
// As often by all, so that all of a subgroup shuffle.
void multiply_pairs() {
    const uint clusters = THREADS / LANES, FOURS = PAIRS / 4;
    [[unroll]] for (uint n = 0; n < (FOURS + clusters - 1) / clusters; ++n) {
        const uint four = min(n * clusters + own / LANES, FOURS - 1u), t = four * 4u / TOKENS, before = four * 4u % TOKENS;
        vec4 k_sums = vec4(0.0), q_sums = vec4(0.0);
        float square = 0.0;
        [[unroll]] for (uint i = 0; i < QUADS; ++i) {
            const uint at = i * LANES + lane;
            const vec4 k = keys[t * ALL_QUADS + at], q = queries[t * ALL_QUADS + at];
            square += dot(q, q);
            [[unroll]] for (uint m = 0; m < 4; ++m) {
                const vec4 other = keys[(before + m) * ALL_QUADS + at];
                k_sums[m] += dot(k, other);
                q_sums[m] += dot(q, other);
            }
        }
        const bool of_query = (lane & 1u) != 0u, second = (lane & 2u) != 0u, odd = (lane & 4u) != 0u;
        const vec4 all = (of_query ? q_sums : k_sums) + subgroupShuffleXor(of_query ? k_sums : q_sums, 1u);
        const vec2 two = (second ? all.zw : all.xy) + subgroupShuffleXor(second ? all.xy : all.zw, 2u);
        float one = (odd ? two.y : two.x) + subgroupShuffleXor(odd ? two.x : two.y, 4u);
        if (LANES > 8u) one += subgroupShuffleXor(one, 8u);
        [[unroll]] for (uint step = 1u; step < MOST_LANES; step *= 2u)
            if (step < LANES) square += subgroupShuffleXor(square, step);
        const uint m = (second ? 2u : 0u) + (odd ? 1u : 0u);
        if (lane < 8u && of_query) by_queries[four][m] = one;
        if (lane < 8u && !of_query) by_keys[four][m] = one;
        if (lane == 0u) of_queries[t] = 1.0 / sqrt((square + RL_DELTA_EPS) * float(KEY_DIM));
        if (lane < 8u && !of_query && t == before + m) of_keys[t] = 1.0 / sqrt(one + RL_DELTA_EPS);
    }
}

void share_fetched(uint head) {
    barrier();  // the rows before are done
    [[unroll]] for (uint n = 0; n < PER; ++n)
        if (own + n * THREADS < TOKENS * ALL_QUADS) {
            queries[own + n * THREADS] = next_queries[n];
            keys[own + n * THREADS] = next_keys[n];
        }
    [[unroll]] for (uint n = 0; n < VALUES; ++n) {
        const uint i = own + n * THREADS;
        if (i < TOKENS * BLOCK) values[i / 4u][i % 4u] = next_values[n];
    }
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
        const float gate = factors[t].y, factor = before <= t ? between * of_keys[before] : 0.0;
        by_keys[pair / 4u][pair % 4u] *= gate * factor * of_keys[t];
        by_queries[pair / 4u][pair % 4u] *= factor * of_queries[t];
        if (t == before) {
            seen_by[t] = gate * all * of_keys[t];
            read_by[t] = all * of_queries[t];
            left[t] = behind * of_keys[t];
        }
    }
    barrier();
}

// Of the LANES' sums for each row those of the row that is numbered as the invocation is, modulo TOKENS.
vec4 sum_own(vec4 sums[TOKENS]) {
    const bool odd = (lane & 1u) != 0u, second = (lane & 2u) != 0u, upper = (lane & 4u) != 0u;
    vec4 four[4], two[2];
    [[unroll]] for (uint n = 0; n < 4; ++n)
        four[n] = (odd ? sums[2 * n + 1] : sums[2 * n]) + subgroupShuffleXor(odd ? sums[2 * n] : sums[2 * n + 1], 1u);
    [[unroll]] for (uint n = 0; n < 2; ++n)
        two[n] = (second ? four[2 * n + 1] : four[2 * n]) + subgroupShuffleXor(second ? four[2 * n] : four[2 * n + 1], 2u);
    vec4 one = (upper ? two[1] : two[0]) + subgroupShuffleXor(upper ? two[0] : two[1], 4u);
    if (LANES > 8u) one += subgroupShuffleXor(one, 8u);
    return one;
}

// What a row reads of the state before all and of the changes up to its own, to the invocation that has its number, modulo
// TOKENS.
vec4 read_rows(vec4 change[TOKENS]) {
    const uint t = lane % TOKENS;
    vec4 read[TOKENS];
    [[unroll]] for (uint n = 0; n < TOKENS; ++n) {
        read[n] = vec4(0.0);
        [[unroll]] for (uint i = 0; i < QUADS; ++i) {
            const vec4 q = queries[n * ALL_QUADS + lane + i * LANES];
            [[unroll]] for (uint e = 0; e < 4; ++e) read[n] += q[e] * s[4 * i + e];
        }
    }
    vec4 own_row = read_by[t] * sum_own(read);
    [[unroll]] for (uint r = 0; r < TOKENS; ++r) own_row += by_queries[t * 2u + r / 4u][r % 4u] * change[r];
    return own_row;
}

void run_rows(uint row, uint head) {
    vec4 change[TOKENS];
    [[unroll]] for (uint t = 0; t < TOKENS; ++t) change[t] = vec4(0.0);
    [[unroll]] for (uint i = 0; i < QUADS; ++i)
        [[unroll]] for (uint t = 0; t < TOKENS; ++t) {
            const vec4 k = keys[t * ALL_QUADS + lane + i * LANES];
            [[unroll]] for (uint e = 0; e < 4; ++e) change[t] += k[e] * s[4 * i + e];
        }
    // Without the changes of the rows between, by an invocation for each row.
    const uint own_row = lane % TOKENS, begin = own / LANES * TOKENS;
    const vec4 v = values[(own_row * BLOCK + column - first) / 4u];
    const vec4 apart = factors[own_row].y * v - seen_by[own_row] * sum_own(change);
    if (lane < TOKENS) changes[begin + lane] = apart;
    subgroupMemoryBarrierShared();
    subgroupBarrier();
    [[unroll]] for (uint t = 0; t < TOKENS; ++t) {
        vec4 x = changes[begin + t];
        [[unroll]] for (uint r = 0; r < t; ++r) x -= by_keys[t * 2u + r / 4u][r % 4u] * change[r];
        change[t] = x;
    }
    const vec4 out_row = read_rows(change);
    const uint place = ((row + lane % TOKENS) * args.heads + head) * VALUE_DIM + column;
    [[unroll]] for (uint c = 0; c < 4; ++c)
        if (column + c < VALUE_DIM && (LANES == TOKENS || c / 2u == lane / TOKENS)) y[place + c] = out_row[c];
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
