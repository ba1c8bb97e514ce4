// The blocks with the largest scores, ascending, and -1 behind them; of equal scores those of the first blocks. A
// work-group per row. Scores are compared by bits; NaN is the largest.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint STEP_KIND = RL_STEP_ALONE;
layout(push_constant) uniform Push { ChooseArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer Scores { float scores[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { float y[]; };
#define STEP_BINDING 2
#include "step.glsl"
shared uint counts[256], sums[16], digit, still_left;
shared uint above[1025], equal[1025];  // before each invocation's blocks

// In the order of scores, with one zero.
uint bits_of(uint row, uint block) {
    const uint bits = floatBitsToUint(scores[row * args.blocks + block]), size = bits & 0x7FFFFFFFu;
    if (size > 0x7F800000u) return 0xFFFFFFFFu;
    if (size == 0u) return 0x80000000u;
    return bits >> 31 != 0u ? ~bits : bits | 0x80000000u;
}

// The largest that `most` blocks have at least, eight bits at a time: counted are the blocks that have the bits so far, by
// their next ones.
uint least_chosen(uint row, uint count) {
    const uint tid = gl_LocalInvocationID.x;
    uint least = 0u, left = args.most;
    for (uint round = 0; round < 4; ++round) {
        const uint shift = 24u - 8u * round, known = round == 0u ? 0u : 0xFFFFFFFFu << (shift + 8u);
        for (uint i = tid; i < 256u; i += gl_WorkGroupSize.x) counts[i] = 0u;
        barrier();
        for (uint b = tid; b < count; b += gl_WorkGroupSize.x) {
            const uint own = bits_of(row, b);
            if ((own & known) == least) atomicAdd(counts[own >> shift & 255u], 1u);
        }
        barrier();
        for (uint i = tid; i < 16u; i += gl_WorkGroupSize.x) {
            sums[i] = 0u;
            for (uint k = 0; k < 16; ++k) sums[i] += counts[i * 16u + k];
        }
        barrier();
        if (tid == 0u) {
            uint sixteen = 15u;
            while (left > sums[sixteen]) left -= sums[sixteen--];
            uint found = sixteen * 16u + 15u;
            while (left > counts[found]) left -= counts[found--];
            digit = found;
            still_left = left;
        }
        barrier();
        least |= digit << shift;
        left = still_left;
    }
    return least;
}

void choose(uint row, uint count) {
    const uint tid = gl_LocalInvocationID.x, threads = gl_WorkGroupSize.x;
    const uint least = count > args.most ? least_chosen(row, count) : 0u;
    const uint each = (count + threads - 1u) / threads, begin = min(tid * each, count), end = min(begin + each, count);
    uint own_above = 0u, own_equal = 0u;
    for (uint b = begin; b < end; ++b) {
        own_above += bits_of(row, b) > least ? 1u : 0u;
        own_equal += bits_of(row, b) == least ? 1u : 0u;
    }
    barrier();  // the last row is done
    above[tid + 1u] = own_above;
    equal[tid + 1u] = own_equal;
    barrier();
    if (tid == 0u) {
        above[0] = equal[0] = 0u;
        for (uint i = 0; i < threads; ++i) {
            above[i + 1u] += above[i];
            equal[i + 1u] += equal[i];
        }
    }
    barrier();
    const uint ties = min(args.most, count) - min(above[threads], args.most), first = row * args.most;
    uint seen = equal[tid], to = above[tid] + min(seen, ties);
    for (uint b = begin; b < end; ++b) {
        const uint bits = bits_of(row, b);
        if (bits > least || (bits == least && seen < ties)) y[first + to++] = float(b);
        seen += bits == least ? 1u : 0u;
    }
    for (uint i = min(args.most, count) + tid; i < args.most; i += threads) y[first + i] = -1.0;
}

void main() {
    for (uint row = gl_WorkGroupID.x; row < step_rows; row += gl_NumWorkGroups.x) {
        const uint token = STEP_KIND == RL_STEP_ALONE ? step_position + row : step_word(step_places + 2u * row);
        choose(row, min(args.blocks, (token + 1u) / args.ratio));
    }
}
