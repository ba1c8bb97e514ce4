// Activations as int8: per 32 elements a scale and codes that are value / scale. Wants value_of(i), element i of
// the row, and put_unit(u, low, high, meta): the codes of elements 0..15 and 16..31 of unit u, and in `meta` the
// scale, and scale * sum of the codes of each half.
void quantize_unit(uint u) {
    float values[32];
    float most = 0.0;
    [[unroll]] for (uint i = 0; i < 32; ++i) {
        values[i] = value_of(u * 32u + i);
        most = max(most, abs(values[i]));
    }
    // A NaN or an infinity must not vanish in the codes: it goes on in the scale.
    float sum = 0.0;
    [[unroll]] for (uint i = 0; i < 32; ++i) sum += values[i];
    const float scale = isnan(sum) || isinf(sum) ? sum - sum : most / 127.0;
    const float inverse = scale > 0.0 ? 1.0 / scale : 0.0;
    uint words[8];
    ivec2 sums = ivec2(0);
    [[unroll]] for (uint k = 0; k < 8; ++k) {
        words[k] = 0u;
        [[unroll]] for (uint i = 0; i < 4; ++i) {
            const int code = clamp(int(roundEven(values[k * 4u + i] * inverse)), -127, 127);
            sums[k / 4u] += code;
            words[k] |= uint(code & 255) << (8u * i);
        }
    }
    put_unit(u, uvec4(words[0], words[1], words[2], words[3]), uvec4(words[4], words[5], words[6], words[7]),
             vec3(scale, scale * float(sums.x), scale * float(sums.y)));
}
