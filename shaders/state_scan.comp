// also clustered
// The state space of Mamba-2, row after row of a sequence. A work-group per sequence, head and block of the state's rows,
// which stays in registers: LANES invocations share ROWS rows, and each has four of every 4 * LANES elements of them.
//   S = decay S + (step x) in, y = S out + through x
// Sums in f32: within an invocation four side by side, in order, then across the LANES.
#include "types.glsl"
#ifdef CLUSTERED
#extension GL_KHR_shader_subgroup_clustered : require
#endif
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 128;
layout(constant_id = 1) const uint HEAD_DIM = 64;
layout(constant_id = 2) const uint STATE_DIM = 128;
layout(constant_id = 3) const uint LANES = 8;  // of one subgroup
layout(constant_id = 4) const uint ROWS = 4;   // of the state, that an invocation has a part of
const uint QUADS = (STATE_DIM + 4 * LANES - 1) / (4 * LANES);  // of such a row, that an invocation has
const uint ALL_QUADS = QUADS * LANES, OWN_QUADS = ROWS * QUADS;
const uint APART = THREADS / LANES;  // the rows of an invocation are
const uint BLOCK = APART * ROWS;
const uint TOKENS = 8;  // whose inputs are shared at a time
layout(push_constant) uniform Push { ScanArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) readonly buffer Steps { float steps[]; };
layout(set = 0, binding = 2, std430) readonly buffer A { float a[]; };
layout(set = 0, binding = 3, std430) readonly buffer StepBias { float step_bias[]; };
layout(set = 0, binding = 4, std430) readonly buffer Through { float through[]; };
layout(set = 0, binding = 5, std430) writeonly buffer Y { float y[]; };
layout(set = 0, binding = 6, std430) buffer State { float state[]; };
layout(set = 0, binding = 6, std430) buffer State4 { vec4 state4[]; };
#define STEP_BINDING 7
#include "step.glsl"
#include "softplus.glsl"
shared vec4 ins[TOKENS * ALL_QUADS];
shared vec4 outs[TOKENS * ALL_QUADS];
shared float values[TOKENS * BLOCK];
shared vec2 factors[TOKENS];  // decay, step
#ifndef CLUSTERED
shared float sums[ROWS * THREADS];
#endif

uint own;    // the invocation's number
uint lane;   // of those that share rows
uint first;  // of the work-group's rows

uint row_of(uint r) {
    return first + r * APART + own / LANES;
}

// The sums over the LANES.
void sum_lanes(inout float read[ROWS]) {
#ifdef CLUSTERED
    [[unroll]] for (uint r = 0; r < ROWS; ++r) read[r] = subgroupClusteredAdd(read[r], 8u);
#else
    barrier();
    [[unroll]] for (uint r = 0; r < ROWS; ++r) sums[r * THREADS + own] = read[r];
    barrier();
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        read[r] = 0.0;
        [[unroll]] for (uint i = 0; i < LANES; ++i) read[r] += sums[r * THREADS + own - lane + i];
    }
#endif
}

// Elements 4 * i .. of an in or out vector; zeros behind its end.
vec4 quad_of(uint from, uint i) {
    vec4 quad;
    [[unroll]] for (uint e = 0; e < 4; ++e) quad[e] = 4 * i + e < STATE_DIM ? x[from + 4 * i + e] : 0.0;
    return quad;
}

void share_rows(uint row, uint count, uint head) {
    const uint inner = args.heads * HEAD_DIM, width = inner + 2u * args.groups * STATE_DIM;
    const uint group = head / (args.heads / args.groups);
    barrier();  // the rows before are done
    for (uint i = own; i < count * ALL_QUADS; i += THREADS) {
        const uint from = (row + i / ALL_QUADS) * width + inner + group * STATE_DIM;
        ins[i] = quad_of(from, i % ALL_QUADS);
        outs[i] = quad_of(from + args.groups * STATE_DIM, i % ALL_QUADS);
    }
    for (uint i = own; i < count * BLOCK; i += THREADS)
        values[i] = x[(row + i / BLOCK) * width + head * HEAD_DIM + min(first + i % BLOCK, HEAD_DIM - 1u)];
    if (own < count) {
        const float size = softplus(steps[(row + own) * args.heads + head] + step_bias[head]);
        factors[own] = vec2(exp(a[head] * size), size);
    }
    barrier();
}

// Whether there are elements i of the invocation's in a row, and that row, of which some may be beyond the last.
bool is_there(uint r, uint i) {
    return (STATE_DIM % (4 * LANES) == 0 || (i * LANES + lane) * 4u < STATE_DIM) &&
           (HEAD_DIM % BLOCK == 0 || row_of(r) < HEAD_DIM);
}
// `head`: words before the head's state.
vec4 load_quad(uint head, uint r, uint i) {
    const uint element = (i * LANES + lane) * 4u, at = head + row_of(r) * STATE_DIM + element;
    if (STATE_DIM % 4 == 0) return state4[at / 4u];
    vec4 four = vec4(0.0);
    [[unroll]] for (uint e = 0; e < 4; ++e)
        if (element + e < STATE_DIM) four[e] = state[at + e];
    return four;
}
void store_quad(uint head, uint r, uint i, vec4 four) {
    const uint element = (i * LANES + lane) * 4u, at = head + row_of(r) * STATE_DIM + element;
    if (STATE_DIM % 4 == 0) {
        state4[at / 4u] = four;
        return;
    }
    [[unroll]] for (uint e = 0; e < 4; ++e)
        if (element + e < STATE_DIM) state[at + e] = four[e];
}

// Row `row`, whose inputs are shared as number t.
void run_row(inout vec4 s[OWN_QUADS], uint t, uint row, uint head) {
    vec4 read4[ROWS];
    float put[ROWS], read[ROWS];
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        put[r] = factors[t].y * values[t * BLOCK + r * APART + own / LANES];
        read4[r] = vec4(0.0);
    }
    [[unroll]] for (uint i = 0; i < QUADS; ++i) {
        const vec4 b = ins[t * ALL_QUADS + i * LANES + lane], c = outs[t * ALL_QUADS + i * LANES + lane];
        [[unroll]] for (uint r = 0; r < ROWS; ++r) {
            s[r * QUADS + i] = factors[t].x * s[r * QUADS + i] + put[r] * b;
            read4[r] += s[r * QUADS + i] * c;
        }
    }
    [[unroll]] for (uint r = 0; r < ROWS; ++r) read[r] = (read4[r].x + read4[r].y) + (read4[r].z + read4[r].w);
    sum_lanes(read);
    [[unroll]] for (uint r = 0; r < ROWS; ++r)
        if (lane == r % LANES && row_of(r) < HEAD_DIM)
            y[(row * args.heads + head) * HEAD_DIM + row_of(r)] =
                read[r] + through[head] * values[t * BLOCK + r * APART + own / LANES];
}

void store_state(vec4 s[OWN_QUADS], uint head) {
    [[unroll]] for (uint r = 0; r < ROWS; ++r)
        [[unroll]] for (uint i = 0; i < QUADS; ++i)
            if (is_there(r, i)) store_quad(head, r, i, s[r * QUADS + i]);
}

void run_head(uint begin, uint end, uint head, uint from, uint to) {
    const uint size = HEAD_DIM * STATE_DIM;
    vec4 s[OWN_QUADS];
    [[unroll]] for (uint r = 0; r < ROWS; ++r)
        [[unroll]] for (uint i = 0; i < QUADS; ++i) {
            s[r * QUADS + i] = vec4(0.0);
            if (from != RL_NO_STATE && is_there(r, i))
                s[r * QUADS + i] = load_quad((from * args.heads + head) * size, r, i);
        }
    for (uint row = begin; row < end; row += TOKENS) {
        const uint count = min(TOKENS, end - row);
        share_rows(row, count, head);
        for (uint t = 0; t < count; ++t) {
            run_row(s, t, row + t, head);
            const uint kept = state_behind(row + t);
            if (kept != RL_NO_STATE) store_state(s, (kept * args.heads + head) * size);
        }
    }
    store_state(s, (to * args.heads + head) * size);
}

void main() {
    own = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
    lane = own % LANES;
    const uint blocks = (HEAD_DIM + BLOCK - 1u) / BLOCK, units = args.heads * blocks;
    for (uint n = gl_WorkGroupID.x; n < units * step_segments; n += gl_NumWorkGroups.x) {
        first = n % blocks * BLOCK;
        const uint at = step_states + n / units * 4u, first_row = step_word(at), rows = step_word(at + 1u);
        const uint begin = max(first_row, args.first_row), end = min(first_row + rows, args.end_row);
        // The rows before these of the same sequence have left its state.
        const uint from = begin == first_row ? step_word(at + 2u) : step_word(at + 3u);
        if (begin < end) run_head(begin, end, n / blocks % args.heads, from, step_word(at + 3u));
    }
}
