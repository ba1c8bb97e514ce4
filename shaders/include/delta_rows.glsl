// TOKENS rows of the gated delta rule at once, for invocations in clusters of TOKENS or twice as many. Wants what
// delta_net.comp declares.
const bool AT_ONCE = QUADS <= 4 && LANES >= TOKENS;  // or too many registers would be wanted
const uint PER = (TOKENS * ALL_QUADS + THREADS - 1) / THREADS;  // quads of queries, and of keys, that an invocation brings
const uint VALUES = (TOKENS * BLOCK + THREADS - 1) / THREADS;
const uint PAIRS = RL_DELTA_PAIRS;
const uint OWN_PAIRS = (PAIRS + THREADS - 1) / THREADS;
// The inputs of the next rows on their way.
vec4 next_queries[PER], next_keys[PER];
float next_values[VALUES];
vec4 next_pairs[OWN_PAIRS];
// Queries and keys in shared memory are as they came: delta_pairs.comp says what there is besides.
shared vec4 of_rows[PAIRS];
const uint BY_QUERIES = 2 * TOKENS, SEEN_BY = 4 * TOKENS, READ_BY = SEEN_BY + TOKENS / 4, LEFT = READ_BY + TOKENS / 4,
           GATES = LEFT + TOKENS / 4, DECAY = GATES + TOKENS / 4;  // from 0 on there is by_keys
shared vec4 changes[THREADS / LANES * TOKENS];  // of each row, by cluster

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
    const uint pairs_at = (row / TOKENS * args.heads + head) * PAIRS;
    [[unroll]] for (uint n = 0; n < OWN_PAIRS; ++n) next_pairs[n] = pairs[pairs_at + min(own + n * THREADS, PAIRS - 1u)];
}

void share_fetched() {
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
    [[unroll]] for (uint n = 0; n < OWN_PAIRS; ++n)
        if (own + n * THREADS < PAIRS) of_rows[own + n * THREADS] = next_pairs[n];
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
    vec4 own_row = of_rows[READ_BY + t / 4u][t % 4u] * sum_own(read);
    [[unroll]] for (uint r = 0; r < TOKENS; ++r) own_row += of_rows[BY_QUERIES + t * 2u + r / 4u][r % 4u] * change[r];
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
    const float gate = of_rows[GATES + own_row / 4u][own_row % 4u], seen_by = of_rows[SEEN_BY + own_row / 4u][own_row % 4u];
    const vec4 apart = gate * v - seen_by * sum_own(change);
    if (lane < TOKENS) changes[begin + lane] = apart;
    subgroupMemoryBarrierShared();
    subgroupBarrier();
    [[unroll]] for (uint t = 0; t < TOKENS; ++t) {
        vec4 x = changes[begin + t];
        [[unroll]] for (uint r = 0; r < t; ++r) x -= of_rows[t * 2u + r / 4u][r % 4u] * change[r];
        change[t] = x;
    }
    const vec4 out_row = read_rows(change);
    const uint place = ((row + lane % TOKENS) * args.heads + head) * VALUE_DIM + column;
    [[unroll]] for (uint c = 0; c < 4; ++c)
        if (column + c < VALUE_DIM && (LANES == TOKENS || c / 2u == lane / TOKENS)) y[place + c] = out_row[c];
    memoryBarrierShared();  // or compilers keep the keys that were read before
    const float decay = of_rows[DECAY].x;
    [[unroll]] for (uint t = 0; t < TOKENS; ++t) change[t] *= of_rows[LEFT + t / 4u][t % 4u];
    [[unroll]] for (uint i = 0; i < QUADS; ++i) {
        [[unroll]] for (uint e = 0; e < 4; ++e) s[4 * i + e] *= decay;
        [[unroll]] for (uint t = 0; t < TOKENS; ++t) {
            const vec4 k = keys[t * ALL_QUADS + lane + i * LANES];
            [[unroll]] for (uint e = 0; e < 4; ++e) s[4 * i + e] += k[e] * change[t];
        }
    }
}
