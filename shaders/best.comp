// The largest of each row of outputs, in no order: the lowest ids among equals, and what is not a number first. In two
// turns: each work-group picks those of its slice of the row, then one picks among these. By radix: digit by digit the
// smallest key is found that is still among them, of the values, and if several share it of the ids.
#include "types.glsl"
layout(local_size_x_id = 0) in;  // DIGITS
layout(push_constant) uniform Push { BestArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer Row { uint row[]; };        // first turn: floats
layout(set = 0, binding = 0, std430) readonly buffer Picked { uvec2 picked[]; };  // second: floats and ids
layout(set = 0, binding = 1, std430) writeonly buffer To { uvec2 to[]; };
#define STEP_BINDING 2
#include "step.glsl"

const uint DIGITS = 256, NONE = ~0u;  // id of a place without an output
shared uint keys[RL_BEST_SLICE];      // of the values
shared uint bins[DIGITS];
shared uint sums[128];  // of subgroups
shared uint found, left, taken;

uint row_begin;       // of this work-group's row
uint first, entries;  // of what it picks from there

// Counted from the first.
uint id_of(uint i) { return args.merge != 0u ? picked[row_begin + first + i].y : first + i; }
uint bits_of(uint i) { return args.merge != 0u ? picked[row_begin + first + i].x : row[row_begin + first + i]; }

// Rises with the value, from 1 on; both zeros are equal. 0 is the key of a place without an output.
uint value_key(uint bits) {
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return ~0u;
    if ((bits & 0x7FFFFFFFu) == 0u) return 0x80000000u;
    return (bits & 0x80000000u) != 0u ? ~bits : bits | 0x80000000u;
}
uint id_key(uint id) { return ~id; }

// All at once are on their way before one is looked at.
void read_keys() {
    const uint TURNS = (RL_BEST_SLICE + gl_WorkGroupSize.x - 1) / gl_WorkGroupSize.x;
    uvec2 read[TURNS];
    const bool merge = args.merge != 0u;
    [[unroll]] for (uint t = 0; t < TURNS; ++t) {
        const uint i = min(t * gl_WorkGroupSize.x + gl_LocalInvocationID.x, entries - 1u);
        read[t] = merge ? picked[row_begin + first + i] : uvec2(row[row_begin + first + i], 0u);
    }
    [[unroll]] for (uint t = 0; t < TURNS; ++t) {
        const uint i = t * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
        if (i < entries) keys[i] = merge && read[t].y == NONE ? 0u : value_key(read[t].x);
    }
}

// Leaves the digit of the `wanted`-th largest key in `found`, and in `left` how many of that digit are wanted. The work-group
// has an invocation for each digit, the highest first.
void find_digit(uint wanted) {
    const uint d = DIGITS - 1u - (gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID);
    const uint own = bins[d], so_far = subgroupInclusiveAdd(own);
    if (gl_SubgroupInvocationID == gl_SubgroupSize - 1u) sums[gl_SubgroupID] = so_far;
    barrier();
    uint above = so_far - own;
    for (uint s = 0; s < gl_SubgroupID; ++s) above += sums[s];
    if (above < wanted && above + own >= wanted) {
        found = d;
        left = wanted - above;
    }
    barrier();
}

// The key that is the `wanted`-th largest: of the values, or of the ids of those whose value's key is `value`. Leaves in
// `left` how many of that key are wanted, and in bins[key & 255] how many there are.
uint nth_key(uint wanted, bool of_ids, uint value) {
    uint key = 0u, known = 0u;
    for (int shift = 24; shift >= 0; shift -= 8) {
        barrier();
        bins[gl_LocalInvocationID.x] = 0u;
        barrier();
        for (uint i = gl_LocalInvocationID.x; i < entries; i += gl_WorkGroupSize.x) {
            uint k = keys[i];
            if (k == 0u || (of_ids && k != value)) continue;
            if (of_ids) k = id_key(id_of(i));
            if ((k & known) == key) atomicAdd(bins[k >> shift & 255u], 1u);
        }
        barrier();
        find_digit(wanted);
        key |= found << shift;
        known |= 255u << shift;
        wanted = left;
    }
    return key;
}

void main() {
    if (gl_WorkGroupID.y >= step_outputs) return;
    row_begin = gl_WorkGroupID.y * args.entries;
    const uint all = args.merge != 0u ? args.entries : step_best_among,
               begin = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * args.count;
    first = min(gl_WorkGroupID.x * RL_BEST_SLICE, all);
    entries = min(RL_BEST_SLICE, all - first);
    // In the second turn places may be empty, but no fewer than are wanted are not.
    const uint wanted = min(args.count, args.merge != 0u ? step_best_among : entries);
    for (uint i = wanted + gl_LocalInvocationID.x; i < args.count; i += gl_WorkGroupSize.x)
        to[begin + i] = uvec2(0u, NONE);
    if (wanted == 0u) return;
    read_keys();
    if (gl_LocalInvocationID.x == 0u) taken = 0u;
    const uint value = nth_key(wanted, false, 0u);
    uint id = 0u;
    const uint equal = left;
    if (bins[value & 255u] > equal) id = nth_key(equal, true, value);
    for (uint i = gl_LocalInvocationID.x; i < entries; i += gl_WorkGroupSize.x) {
        const uint k = keys[i];
        if (k > value || (k == value && id_key(id_of(i)) >= id))
            to[begin + atomicAdd(taken, 1u)] = uvec2(bits_of(i), id_of(i));
    }
}
