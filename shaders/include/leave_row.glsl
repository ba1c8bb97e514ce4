// Leaves results of one row in int8 for the dispatch that takes it (take_row.glsl), with the gain of the norm there;
// the norm's factor hangs on all results, and is applied behind the product. 16 elements share a scale. Wants
// args.hand_units, args.hand_normed, and left_values(i) and left_gains(i), elements 4i .. 4i + 3 of what the
// work-group has computed. HAND_ROW: the number of the row, where a step's rows are left one behind the other.
#ifndef HAND_ROW
#define HAND_ROW 0u
#endif
layout(set = 0, binding = HAND_BINDING, std430) writeonly buffer Hand { uint hand[]; };  // planes of four words:
                                                                                         // low, high, scales and squares
// Four elements: `here` counts them in the work-group, `there` in the row.
void leave_four(uint here, uint there) {
    const uint first = here & ~3u, side = there / 4u & 1u, at = there / 8u * 4u + HAND_ROW * args.hand_units * 12u;
    float total = 0.0, most = 0.0, squares = 0.0;
    [[unroll]] for (uint k = 0; k < 4; ++k) {
        const vec4 raw = left_values(first + k), size = abs(raw * left_gains(first + k));
        total += dot(size, vec4(1.0));
        most = max(most, max(max(size.x, size.y), max(size.z, size.w)));
        squares += dot(raw, raw);
    }
    // A NaN or an infinity must not vanish in the codes: it goes on in the scale.
    const float scale = isnan(total) || isinf(total) ? NOT_A_NUMBER : most / 127.0;
    const float inverse = scale > 1e-30 ? 1.0 / scale : 0.0;
    const ivec4 codes =
        clamp(ivec4(roundEven(left_values(here) * left_gains(here) * inverse)), -127, 127) & 255;
    hand[side * args.hand_units * 4u + at + (here & 3u)] =
        uint(codes.x | codes.y << 8 | codes.z << 16 | codes.w << 24);
    const uint meta = args.hand_units * 8u + at + side;
    if ((here & 3u) == 0u) hand[meta] = floatBitsToUint(scale);
    if ((here & 3u) == 1u) hand[meta + 2u] = floatBitsToUint(squares);
}
