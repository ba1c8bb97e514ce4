// also clustered
// The gated delta rule. A work-group per sequence, head and block of the state's columns, which stays in registers: LANES
// invocations share RL_DELTA_COLUMNS columns, and each has four of every 4 * LANES keys.
//   seen = k S, read = q S, change = b (v - decay seen), y = decay read + (q k) change, S = decay S + k change
// Of TOKENS rows at once (arXiv 2412.06464, section 3.3): seen and read are products with the state before them, times the
// decays since, and with the changes of the rows between. What is left goes row after row. Sums in f32: within an invocation
// in order, then across the LANES.
#include "types.glsl"
#ifdef CLUSTERED
#extension GL_KHR_shader_subgroup_shuffle : require
#endif
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 128;
layout(constant_id = 1) const uint KEY_DIM = 128;
layout(constant_id = 2) const uint VALUE_DIM = 128;
layout(constant_id = 3) const uint LANES = 8;  // of one subgroup
const uint QUADS = (KEY_DIM + 4 * LANES - 1) / (4 * LANES);  // of keys, that an invocation has
const uint ALL_QUADS = QUADS * LANES;
const uint BLOCK = THREADS / LANES * RL_DELTA_COLUMNS;
const uint TOKENS = RL_DELTA_ROWS;  // whose inputs are shared at a time
layout(push_constant) uniform Push { DeltaArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer QKV { float qkv[]; };
layout(set = 0, binding = 0, std430) readonly buffer QKV4 { vec4 qkv4[]; };
layout(set = 0, binding = 1, std430) readonly buffer Beta { float beta[]; };
layout(set = 0, binding = 2, std430) readonly buffer Alpha { float alpha[]; };
layout(set = 0, binding = 3, std430) readonly buffer A { float a[]; };
layout(set = 0, binding = 4, std430) readonly buffer Dt { float dt[]; };
layout(set = 0, binding = 5, std430) writeonly buffer Y { float y[]; };
layout(set = 0, binding = 6, std430) buffer State { float state[]; };
layout(set = 0, binding = 6, std430) buffer State4 { vec4 state4[]; };
#define STEP_BINDING 7
#include "step.glsl"
layout(set = 0, binding = 8, std430) readonly buffer Pairs { vec4 pairs[]; };
uint lane;    // of those that share columns
uint first;   // of the work-group's columns
uint column;  // of the first of the invocation's four
uint own;     // the invocation's number
vec4 s[4 * QUADS];  // the state, by key: of the four columns
shared vec4 queries[TOKENS * ALL_QUADS];
shared vec4 keys[TOKENS * ALL_QUADS];
shared vec4 values[TOKENS * BLOCK / 4];
shared vec3 factors[TOKENS];  // decay, b, q k
#ifdef CLUSTERED
const uint MOST_LANES = 16;
#include "delta_quads.glsl"
#include "delta_rows.glsl"
#else
shared vec4 sums[2 * THREADS];
#endif

// The sums of `seen` and `read` over the LANES.
void sum_lanes(inout vec4 seen, inout vec4 read) {
#ifdef CLUSTERED
    [[unroll]] for (uint step = 1u; step < MOST_LANES; step *= 2u)
        if (step < LANES) {
            seen += subgroupShuffleXor(seen, step);
            read += subgroupShuffleXor(read, step);
        }
#else
    barrier();
    sums[2 * own] = seen;
    sums[2 * own + 1] = read;
    barrier();
    seen = read = vec4(0.0);
    const uint begin = own - lane;
    [[unroll]] for (uint i = 0; i < LANES; ++i) {
        seen += sums[2 * (begin + i)];
        read += sums[2 * (begin + i) + 1];
    }
#endif
}

// Elements 4 * i .. of a head's queries or keys; zeros behind its end.
vec4 quad_of(uint from, uint i) {
    vec4 quad;
    [[unroll]] for (uint e = 0; e < 4; ++e) quad[e] = 4 * i + e < KEY_DIM ? qkv[from + 4 * i + e] : 0.0;
    return quad;
}

// Queries and keys of a row as unit vectors, by a subgroup.
void share_row(uint t, uint row, uint head) {
    const uint all_keys = args.key_heads * KEY_DIM, width = 2u * all_keys + args.heads * VALUE_DIM;
    const uint key_head = args.in_turns != 0u ? head % args.key_heads : head / (args.heads / args.key_heads);
    const uint q = row * width + key_head * KEY_DIM, k = q + all_keys;
    vec3 squares = vec3(0.0);
    for (uint i = gl_SubgroupInvocationID; i < ALL_QUADS; i += gl_SubgroupSize) {
        const vec4 one = quad_of(q, i), other = quad_of(k, i);
        squares += vec3(dot(one, one), dot(other, other), dot(one, other));
    }
    squares = subgroupAdd(squares);
    const float of_q = 1.0 / sqrt((squares.x + RL_DELTA_EPS) * float(KEY_DIM)), of_k = 1.0 / sqrt(squares.y + RL_DELTA_EPS);
    for (uint i = gl_SubgroupInvocationID; i < ALL_QUADS; i += gl_SubgroupSize) {
        queries[t * ALL_QUADS + i] = quad_of(q, i) * of_q;
        keys[t * ALL_QUADS + i] = quad_of(k, i) * of_k;
    }
    const float x = alpha[row * args.heads + head] + dt[head];
    const float decay = exp(a[head] * (x > 20.0 ? x : log(1.0 + exp(x))));
    if (subgroupElect())
        factors[t] = vec3(decay, 1.0 / (1.0 + exp(-beta[row * args.heads + head])), squares.z * of_q * of_k);
}

void share_rows(uint row, uint count, uint head) {
    barrier();  // the rows before are done
    for (uint t = gl_SubgroupID; t < count; t += gl_NumSubgroups) share_row(t, row + t, head);
    const uint keys_before = 2u * args.key_heads * KEY_DIM, width = keys_before + args.heads * VALUE_DIM;
    for (uint i = own; i < count * BLOCK; i += THREADS) {
        const uint at = min(first + i % BLOCK, VALUE_DIM - 1u);
        values[i / 4u][i % 4u] = qkv[(row + i / BLOCK) * width + keys_before + head * VALUE_DIM + at];
    }
    barrier();
}

uint key_of(uint i) {
    return (i / 4u * LANES + lane) * 4u + i % 4u;
}
// Whether there are a key of the invocation's and its columns, of which some may be beyond the last.
bool is_there(uint i) {
    return (KEY_DIM % (4 * LANES) == 0 || key_of(i) < KEY_DIM) && (VALUE_DIM % BLOCK == 0 || column < VALUE_DIM);
}
// The elements of a key, `head` words behind the state's begin.
vec4 load_columns(uint head, uint i) {
    const uint at = head + key_of(i) * VALUE_DIM + column;
    if (VALUE_DIM % 4 == 0) return state4[at / 4u];
    vec4 four = vec4(0.0);
    [[unroll]] for (uint c = 0; c < 4; ++c)
        if (column + c < VALUE_DIM) four[c] = state[at + c];
    return four;
}
void store_columns(uint head, uint i, vec4 four) {
    const uint at = head + key_of(i) * VALUE_DIM + column;
    if (VALUE_DIM % 4 == 0) {
        state4[at / 4u] = four;
        return;
    }
    [[unroll]] for (uint c = 0; c < 4; ++c)
        if (column + c < VALUE_DIM) state[at + c] = four[c];
}

void store_state(uint head) {
    [[unroll]] for (uint i = 0; i < 4 * QUADS; ++i)
        if (is_there(i)) store_columns(head, i, s[i]);
}

void run_head(uint begin, uint end, uint head, uint from, uint to) {
    const uint size = KEY_DIM * VALUE_DIM;
    [[unroll]] for (uint i = 0; i < 4 * QUADS; ++i) {
        s[i] = vec4(0.0);
        if (from != RL_NO_STATE && is_there(i)) s[i] = load_columns((from * args.heads + head) * size, i);
    }
    uint row = begin;
#ifdef CLUSTERED
    // Rows whose states are kept go one by one.
    const bool at_once = AT_ONCE && state_behind(begin) == RL_NO_STATE;
    if (at_once && row + TOKENS <= end) fetch_rows(row, head);
    for (; at_once && row + TOKENS <= end; row += TOKENS) {
        share_fetched();
        if (row + 2 * TOKENS <= end) fetch_rows(row + TOKENS, head);
        run_rows(row, head);
    }
#endif
    for (; row < end; row += TOKENS) {
        const uint count = min(TOKENS, end - row);
        share_rows(row, count, head);
        for (uint t = 0; t < count; ++t) {
            const uint at = t * ALL_QUADS + lane;
            vec4 seen = vec4(0.0), read = vec4(0.0);
            [[unroll]] for (uint i = 0; i < QUADS; ++i) {
                const vec4 k = keys[at + i * LANES], q = queries[at + i * LANES];
                [[unroll]] for (uint e = 0; e < 4; ++e) {
                    seen += k[e] * s[4 * i + e];
                    read += q[e] * s[4 * i + e];
                }
            }
            sum_lanes(seen, read);
            const vec3 factor = factors[t];
            const vec4 v = values[(t * BLOCK + column - first) / 4u];
            const vec4 change = factor.y * (v - factor.x * seen), out_row = factor.x * read + factor.z * change;
            [[unroll]] for (uint i = 0; i < QUADS; ++i) {
                const vec4 k = keys[at + i * LANES];
                [[unroll]] for (uint e = 0; e < 4; ++e) s[4 * i + e] = factor.x * s[4 * i + e] + k[e] * change;
            }
            const uint place = ((row + t) * args.heads + head) * VALUE_DIM + column;
            if (lane < 4u && column + lane < VALUE_DIM) y[place + lane] = out_row[lane];
            const uint kept = state_behind(row + t);
            if (kept != RL_NO_STATE) store_state((kept * args.heads + head) * size);
        }
    }
    store_state((to * args.heads + head) * size);
}

void main() {
    own = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
    lane = own % LANES;
    const uint blocks = (VALUE_DIM + BLOCK - 1u) / BLOCK, units = args.heads * blocks;
    for (uint n = gl_WorkGroupID.x; n < units * step_segments; n += gl_NumWorkGroups.x) {
        first = n % blocks * BLOCK;
        column = first + own / LANES * RL_DELTA_COLUMNS;
        const uint at = step_states + n / units * 4u, first_row = step_word(at), rows = step_word(at + 1u);
        const uint begin = max(first_row, args.first_row), end = min(first_row + rows, args.end_row);
        // The rows before these of the same sequence have left its state.
        const uint from = begin == first_row ? step_word(at + 2u) : step_word(at + 3u);
        if (begin < end) run_head(begin, end, n / blocks % args.heads, from, step_word(at + 3u));
    }
}
