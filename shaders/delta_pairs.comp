// What TOKENS rows of the gated delta rule see of each other, of each head: a dispatch of its own before the rule, since groups of
// rows need not wait for each other here, and the work-groups of a head's columns would each do it again. A work-group per
// sequence, group of rows and head of keys. Of a head there are RL_DELTA_PAIRS vec4:
//   by_keys, by_queries  [t][s]: the product of t's key, or query, and s's key, times what makes unit vectors of them, the decays
//                        between and, of keys, t's gate; 0 for s behind t, of keys at t
//   seen_by, read_by     the product of decays up to a row, times its gate and its key's factor, and times its query's factor
//   left                 what a row's change counts behind all rows
//   gates, decay         of each row, and of all
#include "types.glsl"
#extension GL_KHR_shader_subgroup_shuffle : require
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 128;
layout(constant_id = 1) const uint KEY_DIM = 128;
layout(constant_id = 2) const uint VALUE_DIM = 128;
const uint TOKENS = RL_DELTA_ROWS, PAIRS = TOKENS * TOKENS;
const uint LANES = 8;  // of one subgroup, that share a product
const uint QUADS = (KEY_DIM + 4 * LANES - 1) / (4 * LANES), ALL_QUADS = QUADS * LANES;
const uint HEADS = 16;  // whose gates there is room for
layout(push_constant) uniform Push { DeltaArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer QKV { float qkv[]; };
layout(set = 0, binding = 0, std430) readonly buffer QKV4 { vec4 qkv4[]; };
layout(set = 0, binding = 1, std430) readonly buffer Beta { float beta[]; };
layout(set = 0, binding = 2, std430) readonly buffer Alpha { float alpha[]; };
layout(set = 0, binding = 3, std430) readonly buffer A { float a[]; };
layout(set = 0, binding = 4, std430) readonly buffer Dt { float dt[]; };
layout(set = 0, binding = 5, std430) writeonly buffer Pairs { float pairs[]; };
#define STEP_BINDING 6
#include "step.glsl"
uint own;   // the invocation's number
uint lane;  // of those that share a product
shared vec4 queries[TOKENS * ALL_QUADS];
shared vec4 keys[TOKENS * ALL_QUADS];
shared float of_keys[TOKENS], of_queries[TOKENS];  // what they are multiplied by to be unit vectors
shared vec4 by_keys[PAIRS / 4], by_queries[PAIRS / 4];  // products of vectors as they came
shared vec2 gates[HEADS * TOKENS];  // decay, gate

#include "delta_quads.glsl"

// The products of a row's key and query with four rows' keys, by LANES invocations, of which each ends up with one of them.
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
        const float one = (odd ? two.y : two.x) + subgroupShuffleXor(odd ? two.x : two.y, 4u);
        [[unroll]] for (uint step = 1u; step < LANES; step *= 2u) square += subgroupShuffleXor(square, step);
        const uint m = (second ? 2u : 0u) + (odd ? 1u : 0u);
        if (of_query) by_queries[four][m] = one;
        else by_keys[four][m] = one;
        if (lane == 0u) of_queries[t] = 1.0 / sqrt((square + RL_DELTA_EPS) * float(KEY_DIM));
        if (!of_query && t == before + m) of_keys[t] = 1.0 / sqrt(one + RL_DELTA_EPS);
    }
}

// The products of vectors from `row` on.
void share_products(uint row, uint key_head) {
    const uint all_keys = args.key_heads * KEY_DIM, width = 2u * all_keys + args.heads * VALUE_DIM;
    barrier();  // the rows before are done
    for (uint i = own; i < TOKENS * ALL_QUADS; i += THREADS) {
        const uint at = (row + i / ALL_QUADS) * width + key_head * KEY_DIM;
        queries[i] = quad_at(at, i % ALL_QUADS);
        keys[i] = quad_at(at + all_keys, i % ALL_QUADS);
    }
    barrier();
    multiply_pairs();
}

// What a head's gates make of the products of rows t and `before`.
void leave_pair(uint head_gates, uint t, uint before, uint to) {
    float between = 1.0, behind = 1.0, all = 1.0;
    [[unroll]] for (uint r = 0; r < TOKENS; ++r) {
        const float decay = gates[head_gates + r].x;
        if (r > before && r <= t) between *= decay;
        if (r > before) behind *= decay;
        if (r <= t) all *= decay;
    }
    const uint pair = t * TOKENS + before;
    const float gate = gates[head_gates + t].y, factor = before <= t ? between * of_keys[before] : 0.0;
    pairs[to + pair] = before < t ? by_keys[pair / 4u][pair % 4u] * gate * factor * of_keys[t] : 0.0;
    pairs[to + PAIRS + pair] = by_queries[pair / 4u][pair % 4u] * factor * of_queries[t];
    if (t != before) return;
    pairs[to + 2u * PAIRS + t] = gate * all * of_keys[t];
    pairs[to + 2u * PAIRS + TOKENS + t] = all * of_queries[t];
    pairs[to + 2u * PAIRS + 2u * TOKENS + t] = behind * of_keys[t];
    pairs[to + 2u * PAIRS + 3u * TOKENS + t] = gate;
    if (t == TOKENS - 1u) pairs[to + 2u * PAIRS + 4u * TOKENS] = all;
}

uint head_of(uint n, uint key_head) {
    return args.in_turns != 0u ? n * args.key_heads + key_head : key_head * (args.heads / args.key_heads) + n;
}

void pair_rows(uint row, uint key_head) {
    share_products(row, key_head);
    const uint shared_by = args.heads / args.key_heads;
    for (uint first = 0; first < shared_by; first += HEADS) {
        const uint heads = min(HEADS, shared_by - first);
        if (first > 0u) barrier();
        for (uint i = own; i < heads * TOKENS; i += THREADS) {
            const uint head = head_of(first + i / TOKENS, key_head), at = (row + i % TOKENS) * args.heads + head;
            const float x = alpha[at] + dt[head];
            gates[i] = vec2(exp(a[head] * (x > 20.0 ? x : log(1.0 + exp(x)))), 1.0 / (1.0 + exp(-beta[at])));
        }
        barrier();
        for (uint i = own; i < heads * PAIRS; i += THREADS) {
            const uint n = i / PAIRS, head = head_of(first + n, key_head);
            leave_pair(n * TOKENS, i / TOKENS % TOKENS, i % TOKENS, (row / TOKENS * args.heads + head) * RL_DELTA_PAIRS * 4u);
        }
    }
}

void main() {
    own = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
    lane = own % LANES;
    const uint units = (args.end_row - args.first_row) / TOKENS * args.key_heads;
    for (uint n = gl_WorkGroupID.x; n < units * step_segments; n += gl_NumWorkGroups.x) {
        const uint at = step_states + n / units * 4u, first_row = step_word(at), rows = step_word(at + 1u);
        const uint begin = max(first_row, args.first_row), end = min(first_row + rows, args.end_row);
        const uint row = begin + n % units / args.key_heads * TOKENS;
        if (row + TOKENS <= end) pair_rows(row, n % args.key_heads);
    }
}
