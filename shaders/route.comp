// for each format
// The router's logits of a few tokens as linear_vec makes them, in f32, and the choice by them, made by the work-group
// that is the last to come to it. The grid's y is over groups of TOKENS tokens. With NORMED the activations are normed here;
// then SHARES subgroups, a divisor of a work-group's, may make a logit together, one row at a time of one token.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint TOKENS = 1;
layout(constant_id = 2) const uint EXPERTS = 8;
layout(constant_id = 3) const uint USED = 2;
layout(constant_id = 4) const uint SUBGROUP = 32;
layout(constant_id = 5) const uint ROWS = 1;  // of a subgroup at a time
layout(constant_id = 6) const uint GROUPS = 1;
layout(constant_id = 7) const uint GROUPS_USED = 1;
layout(constant_id = 8) const bool BY_TWO = false;
layout(constant_id = 9) const uint GATING = 0;
layout(constant_id = 10) const uint BIAS_OF = 0;  // 0: no bias
layout(constant_id = 11) const bool BY_TABLE = false;
layout(constant_id = 12) const bool NORMED = false;
layout(constant_id = 13) const bool CHOOSES = true;
layout(constant_id = 14) const uint SHARES = 1;
const uint SUMS = ROWS * TOKENS;
layout(push_constant) uniform Push { RouteArgs args; };
#include "weights.glsl"
layout(set = 0, binding = 1, std430) readonly buffer X4 { vec4 x4[]; };
layout(set = 0, binding = 1, std430) readonly buffer X1 { float x1[]; };
layout(set = 0, binding = 2, std430) coherent buffer Logits { float logits[]; };
#define STEP_BINDING 3
#include "step.glsl"
layout(set = 0, binding = 4, std430) writeonly buffer Ids { int ids[]; };
layout(set = 0, binding = 5, std430) writeonly buffer Scales { float scales[]; };
layout(set = 0, binding = 6, std430) readonly buffer Bias { float route_bias[]; };
// Of work-groups that are done, per group of tokens: zero before and after. A single one does not count: routers of one
// expert run beside others.
layout(set = 0, binding = 7, std430) coherent buffer Counters { uint counters[]; };
layout(set = 0, binding = 8, std430) readonly buffer Table { float experts_by_token[]; };
layout(set = 0, binding = 9, std430) readonly buffer Gain4 { vec4 gain4[]; };
layout(set = 0, binding = 9, std430) readonly buffer Gain1 { float gain1[]; };
#define CAN_NORM
#define LANE (SHARES == 1 ? gl_SubgroupInvocationID : gl_SubgroupID % SHARES * SUBGROUP + gl_SubgroupInvocationID)
#define LANES (SHARES == 1 ? gl_SubgroupSize : SHARES * SUBGROUP)
#include "vec_product.glsl"
#include "softplus.glsl"
#define CAN_BY_TABLE
#define CHOOSER gl_SubgroupID
void keep_choice(uint row, uint place, uint expert) { ids[row * USED + place] = int(expert); }
#include "route.glsl"
shared bool is_last;
shared vec2 shares[SHARES == 1 ? 1 : gl_WorkGroupSize.x / SUBGROUP];

// Of a row, by its subgroups, of which the first keeps the logit; all of the work-group together.
void share_row(uint row, uint token) {
    uint rows[ROWS], tokens[TOKENS];
    float sums[SUMS];
    rows[0] = min(row, args.rows - 1u);
    tokens[0] = token;
    sums[0] = 0.0;
    begin_norm();
    lane_products(0u, rows, tokens, args.cols, sums);
    const vec2 own = subgroupAdd(vec2(sums[0], squares[0]));
    barrier();  // what a row before left may still be read
    if (subgroupElect()) shares[gl_SubgroupID] = own;
    barrier();
    if (gl_SubgroupID % SHARES != 0u || row >= args.rows || !subgroupElect()) return;
    vec2 all = vec2(0.0);
    for (uint i = 0; i < SHARES; ++i) all += shares[gl_SubgroupID + i];
    logits[token * EXPERTS + args.first_row + row] = args.factor * all.x / sqrt(all.y / float(args.cols) + args.eps);
}

// As many of TOKENS rows as there are from `first` on, by all of the work-group: a subgroup has a row at a time.
void choose_all(uint first) {
    [[dont_unroll]] for (uint begin = 0; begin < TOKENS; begin += CHOOSERS) {
        const uint t = begin + gl_SubgroupID, row = first + t;
        const bool own = gl_SubgroupID < CHOOSERS && t < TOKENS && row < step_rows;
        if (own) choose(row);
        barrier();
        if (own && subgroupElect()) weigh(row);
        if (begin + CHOOSERS < TOKENS) barrier();  // or the next row would come in between
    }
}

void main() {
    weight_units = args.units;
    const uint first_token = args.first_token + gl_WorkGroupID.y * TOKENS;
    // Nothing waits to see that there is a first row.
    if ((TOKENS > 1 || gl_WorkGroupID.y > 0u) && first_token >= step_rows) return;
    uint x_rows[TOKENS];
    [[unroll]] for (uint t = 0; t < TOKENS; ++t) x_rows[t] = TOKENS > 1 ? min(first_token + t, step_rows - 1u) : first_token;
    const uint at_once = gl_NumSubgroups / SHARES * ROWS, begin = gl_WorkGroupID.x * at_once, step = gl_NumWorkGroups.x * at_once;
    for (uint base = begin; SHARES > 1 && base < args.rows; base += step) share_row(base + gl_SubgroupID / SHARES, first_token);
    for (uint row = begin + gl_SubgroupID * ROWS; SHARES == 1 && row < args.rows; row += step) {
        uint rows[ROWS];
        float sums[SUMS];
        [[unroll]] for (uint r = 0; r < ROWS; ++r) rows[r] = min(row + r, args.rows - 1u);
        [[unroll]] for (uint i = 0; i < SUMS; ++i) sums[i] = 0.0;
        begin_norm();
        lane_products(0u, rows, x_rows, args.cols, sums);
        float norms[TOKENS];
        [[unroll]] for (uint t = 0; t < TOKENS; ++t) norms[t] = args.factor * norm_of(t, args.cols, args.eps);
        [[unroll]] for (uint r = 0; r < ROWS; ++r)
            [[unroll]] for (uint t = 0; t < TOKENS; ++t) {
                const float sum = subgroupAdd(sums[r * TOKENS + t]) * norms[t];
                if (subgroupElect()) logits[x_rows[t] * EXPERTS + args.first_row + rows[r]] = sum;
            }
    }
    if (!CHOOSES) return;
    memoryBarrierBuffer();
    barrier();
    if (gl_LocalInvocationID.x == 0u) {
        is_last = args.groups == 1u || atomicAdd(counters[gl_WorkGroupID.y], 1u) == args.groups - 1u;
        if (is_last && args.groups > 1u) counters[gl_WorkGroupID.y] = 0u;
        memoryBarrierBuffer();
    }
    barrier();
    memoryBarrierBuffer();
    if (is_last) choose_all(first_token);
}
