// Entries of blocks: see BlockPool in plan/ops/blocks.h. An invocation per element of a sequence, which goes over its rows;
// it alone reads and writes its part of the state.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint STEP_KIND = RL_STEP_ALONE;
layout(push_constant) uniform Push { BlockPoolArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) readonly buffer Gate { float gate[]; };
layout(set = 0, binding = 2, std430) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Y { float y[]; };
layout(set = 0, binding = 4, std430) buffer State { float state[]; };
#define STEP_BINDING 5
#include "step.glsl"

// The mean of elements weighted by exponentials, as far as it has come: the largest exponent, the sum of weights, that of
// weighted elements. All zeros: of nothing.
vec3 with_element(vec3 pool, float exponent, float element) {
    const bool first = pool.y == 0.0;
    const float most = first || exponent > pool.x ? exponent : pool.x;
    const float down = first ? 0.0 : exp(pool.x - most), own = exp(exponent - most);
    return vec3(most, pool.y * down + own, pool.z * down + own * element);
}
// Of both together; of the first there is something.
float mean_of(vec3 pool, vec3 other) {
    const bool alone = other.y == 0.0;
    const float most = alone ? pool.x : max(pool.x, other.x), own = exp(pool.x - most);
    const float others = alone ? 0.0 : exp(other.x - most);
    return (own * pool.z + others * other.z) / (own * pool.y + others * other.y);
}

uint place_in_state(uint state_row, uint part, uint column) {
    const uint parts = args.overlaps != 0u ? 3u : 1u;
    return (state_row * parts + part) * 3u * args.width + column;
}
vec3 load_pool(uint from, uint part, uint column) {
    if (from == RL_NO_STATE) return vec3(0.0);
    const uint at = place_in_state(from, part, column);
    return vec3(state[at], state[at + args.width], state[at + 2u * args.width]);
}
void store_pool(uint to, uint part, uint column, vec3 pool) {
    const uint at = place_in_state(to, part, column);
    state[at] = pool.x;
    state[at + args.width] = pool.y;
    state[at + 2u * args.width] = pool.z;
}
void store_pools(uint to, uint column, vec3 first, vec3 before, vec3 second) {
    store_pool(to, 0u, column, first);
    if (args.overlaps == 0u) return;
    store_pool(to, 1u, column, before);
    store_pool(to, 2u, column, second);
}

void go_over(uint segment, uint column) {
    const uint begin = step_word(step_states + 4u * segment), rows = step_word(step_states + 4u * segment + 1u);
    const uint from = step_word(step_states + 4u * segment + 2u), to = step_word(step_states + 4u * segment + 3u);
    const bool overlaps = args.overlaps != 0u;
    const uint wide = args.width * (overlaps ? 2u : 1u);
    vec3 first = load_pool(from, 0u, column), before = vec3(0.0), second = vec3(0.0);
    if (overlaps) {
        before = load_pool(from, 1u, column);
        second = load_pool(from, 2u, column);
    }
    for (uint row = begin; row < begin + rows; ++row) {
        const uint token = STEP_KIND == RL_STEP_ALONE ? step_position + row : step_word(step_places + 2u * row);
        const uint place = token % args.ratio, at = row * wide + column, added = place * wide + column;
        if (place == 0u) {
            before = first;
            first = second = vec3(0.0);
        }
        first = with_element(first, gate[at] + bias[added], x[at]);
        if (overlaps) {
            second = with_element(second, gate[at + args.width] + bias[added + args.width], x[at + args.width]);
            y[row * args.width + column] = mean_of(second, before);
        } else {
            y[row * args.width + column] = mean_of(first, vec3(0.0));
        }
        const uint kept = state_behind(row);
        if (kept != RL_NO_STATE) store_pools(kept, column, first, before, second);
    }
    store_pools(to, column, first, before, second);
}

void main() {
    const uint count = step_segments * args.width;
    for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x)
        go_over(i / args.width, i % args.width);
}
