// How kernels over few_fragments.glsl take rows as handed_halfs.glsl has them, and leave theirs so. The work-group that is done
// last finds the scale of each row, and makes anew those whose halfs would lose bits. Rows that attention left have no scales
// yet: each work-group finds them. Wants args of FewArgs, halves[] and reaches[] of one binding, row_scales[], y[] and y4[],
// X_BINDING and GAIN_BINDING of what was left, HAND_BINDING, HAND_GAIN_BINDING and COUNTERS_BINDING; and AGAIN_BINDING, which
// has the taken halfs, too, so that the validation layers see by the binding whether a pipeline can write them.
#include "handed_halfs.glsl"
layout(set = 0, binding = X_BINDING, std430) readonly buffer TakenX { vec4 taken_x4[]; };
layout(set = 0, binding = GAIN_BINDING, std430) readonly buffer TakenGain { vec4 taken_gain4[]; };
layout(set = 0, binding = AGAIN_BINDING, std430) writeonly buffer Again { uvec4 again[]; };
layout(set = 0, binding = HAND_BINDING, std430) coherent buffer Hand { uint16_t hand[]; };
layout(set = 0, binding = HAND_BINDING, std430) coherent buffer HandEights { uvec4 hand_eights[]; };
layout(set = 0, binding = HAND_BINDING, std430) coherent buffer HandReaches { float hand_reaches[]; };
layout(set = 0, binding = HAND_BINDING, std430) coherent buffer HandReaches4 { vec4 hand_reaches4[]; };
layout(set = 0, binding = HAND_GAIN_BINDING, std430) readonly buffer HandGain { float hand_gain[]; };
layout(set = 0, binding = HAND_GAIN_BINDING, std430) readonly buffer HandGain4 { vec4 hand_gain4[]; };
layout(set = 0, binding = COUNTERS_BINDING, std430) coherent buffer Counters { uint counters[]; };  // zero before and after
const uint SCALES = TAKES == 2 || LEAVES ? BN : 1;
shared float row_downs[SCALES], row_ups[SCALES];
const uint LEFT_STEP = HIGH * TM + 1;  // so that threads with neighbouring tokens use other banks
shared vec2 left_reaches[LEAVES ? BN * LEFT_STEP : 1];
shared bool is_last;

// A token's results are to be multiplied by this.
float token_scale(uint t) {
    if (TAKES == 0u) return row_scales[t];
    return TAKES == 2u ? row_downs[t] : reaches[BN * (args.cols / 2u) + t * args.taken_parts];
}

// The largest of a row's halfs before they were scaled, and what its norm multiplies by.
void find_scale(uint t, float most, float norm) {
    const bool fits = most == 0.0 || (most >= HAND_LEAST && most <= HAND_MOST);
    const uint exponent = clamp(floatBitsToUint(most) >> 23 & 255u, 40u, 215u);  // as in prepare_halves.comp
    row_ups[t] = fits ? HAND_UP : uintBitsToFloat((254u + 9u - exponent) << 23);
    row_downs[t] = norm * (fits ? 1.0 / HAND_UP : uintBitsToFloat((exponent - 9u) << 23));
}

// All invocations of the work-group together, a subgroup per token. What attention leaves has few parts.
void take_rows() {
    const uint parts = args.taken_parts, mosts_at = BN * (args.cols / 2u);
    for (uint t = gl_SubgroupID; t < tokens; t += DEEP) {
        float most = 0.0, squares = 0.0;
        for (uint part = gl_SubgroupInvocationID; part < parts; part += SUBGROUP) {
            most = max(most, reaches[mosts_at + t * parts + part]);
            if (args.has_norm != 0u) squares += reaches[mosts_at + (BN + t) * parts + part];
        }
        most = subgroupMax(most);
        squares = subgroupAdd(squares);
        if (subgroupElect())
            find_scale(t, most, args.has_norm != 0u ? 1.0 / sqrt(squares / float(args.cols) + args.eps) : 1.0);
    }
    barrier();
    bool made = false;
    for (uint t = 0; t < tokens; ++t) {
        if (row_ups[t] == HAND_UP) continue;
        made = true;
        for (uint i = gl_LocalInvocationID.x; i < args.cols / 8u; i += THREADS) {
            uvec2 fours[2];
            [[unroll]] for (uint k = 0; k < 2; ++k) {
                vec4 v = taken_x4[t * (args.cols / 4u) + 2u * i + k];
                if (args.has_norm != 0u) v *= taken_gain4[2u * i + k];
                fours[k] = handed_four(v, row_ups[t]);
            }
            again[handed_eight(i / 4u, i % 4u, t, BN, OWNERS)] = uvec4(fours[0], fours[1]);
        }
    }
    if (!made) return;
    memoryBarrierBuffer();
    barrier();
}

// A result, of row r of the matrix.
void leave(uint r, uint t, float value) {
    if (!LEAVES) return;
    const float gained = args.hand_normed != 0u ? value * hand_gain[r] : value;
    left_reaches[t * LEFT_STEP + r - gl_WorkGroupID.x * HIGH * TM] = vec2(abs(gained), value * value);
    const uint within = r % 4u, swapped = within % 2u * 2u + within / 2u;
    hand[handed_eight(r / 32u, r / 8u % 4u, t, BN, OWNERS) * 8u + r / 4u % 2u * 4u + swapped] =
        uint16_t(packHalf2x16(vec2(gained * HAND_UP, 0.0)));
}

// All work-groups have left their parts. A subgroup per token.
void finish_rows() {
    const uint AT_ONCE = 4;  // loads on their way
    const uint parts = args.rows / HAND_PART, fours = parts / 4u, mosts_at = BN * (args.rows / 2u);
    for (uint t = gl_SubgroupID; t < tokens; t += DEEP) {
        float most = 0.0, squares = 0.0;
        for (uint first = gl_SubgroupInvocationID; first < fours; first += AT_ONCE * SUBGROUP) {
            vec4 mosts[AT_ONCE], sums[AT_ONCE];
            [[unroll]] for (uint n = 0; n < AT_ONCE; ++n) {
                const uint four = min(first + n * SUBGROUP, fours - 1u) + (mosts_at + t * parts) / 4u;
                mosts[n] = hand_reaches4[four];
                sums[n] = args.hand_normed != 0u ? hand_reaches4[four + BN * parts / 4u] : vec4(0.0);
            }
            [[unroll]] for (uint n = 0; n < AT_ONCE; ++n) {
                most = max(most, max(max(mosts[n].x, mosts[n].y), max(mosts[n].z, mosts[n].w)));
                if (first + n * SUBGROUP < fours) squares += dot(sums[n], vec4(1.0));
            }
        }
        most = subgroupMax(most);
        squares = subgroupAdd(squares);
        if (subgroupElect()) {
            find_scale(t, most, args.hand_normed != 0u ? 1.0 / sqrt(squares / float(args.rows) + args.hand_eps) : 1.0);
            hand_reaches[mosts_at + t * parts] = row_downs[t];
        }
    }
    barrier();
    for (uint t = 0; t < tokens; ++t) {
        if (row_ups[t] == HAND_UP) continue;
        for (uint i = gl_LocalInvocationID.x; i < args.rows / 8u; i += THREADS) {
            uvec2 made[2];
            [[unroll]] for (uint k = 0; k < 2; ++k) {
                vec4 v = y4[t * (args.rows / 4u) + 2u * i + k];
                if (args.hand_normed != 0u) v *= hand_gain4[2u * i + k];
                made[k] = handed_four(v, row_ups[t]);
            }
            hand_eights[handed_eight(i / 4u, i % 4u, t, BN, OWNERS)] = uvec4(made[0], made[1]);
        }
    }
}

// The work-group's results are there.
void leave_rows() {
    if (!LEAVES) return;
    barrier();
    const uint of_group = HIGH * TM / HAND_PART, parts = args.rows / HAND_PART, mosts_at = BN * (args.rows / 2u);
    for (uint n = gl_LocalInvocationID.x; n < tokens * of_group; n += THREADS) {
        const uint t = n % tokens, within = n / tokens, part = gl_WorkGroupID.x * of_group + within;
        if (part >= parts) continue;
        float most = 0.0, squares = 0.0;
        [[unroll]] for (uint i = 0; i < HAND_PART; ++i) {
            const vec2 reach = left_reaches[t * LEFT_STEP + within * HAND_PART + i];
            most = max(most, reach.x);
            squares += reach.y;
        }
        hand_reaches[mosts_at + t * parts + part] = most;
        hand_reaches[mosts_at + (BN + t) * parts + part] = squares;
    }
    memoryBarrierBuffer();
    barrier();
    if (gl_LocalInvocationID.x == 0u) {
        is_last = atomicAdd(counters[args.hand_counter], 1u) == gl_NumWorkGroups.x - 1u;
        if (is_last) counters[args.hand_counter] = 0u;
    }
    barrier();
    if (!is_last) return;
    memoryBarrierBuffer();
    finish_rows();
}
