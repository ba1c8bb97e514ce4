// Activations as int8: per 16 elements a scale and codes that are value / scale. Wants value_of(i), element i of the
// row, and put_unit(u, low, high, meta): the codes of elements 0..15 and 16..31 of unit u, and in `meta` the scale of
// each half, and what the half's elements sum up to.
uvec4 quantize_half(uint first, out float scale, out float sum_of_codes) {
    float values[16];
    float most = 0.0, sum = 0.0;
    [[unroll]] for (uint i = 0; i < 16; ++i) {
        values[i] = value_of(first + i);
        most = max(most, abs(values[i]));
        sum += values[i];
    }
    // A NaN or an infinity must not vanish in the codes: it goes on in the scale.
    scale = isnan(sum) || isinf(sum) ? sum - sum : most / 127.0;
    const float inverse = scale > 0.0 ? 1.0 / scale : 0.0;
    uvec4 words = uvec4(0u);
    int codes = 0;
    [[unroll]] for (uint i = 0; i < 16; ++i) {
        const int code = clamp(int(roundEven(values[i] * inverse)), -127, 127);
        codes += code;
        words[i / 4u] |= uint(code & 255) << (8u * (i & 3u));
    }
    sum_of_codes = float(codes);
    return words;
}
void quantize_unit(uint u) {
    vec2 scales, sums;
    const uvec4 low = quantize_half(u * 32u, scales.x, sums.x);
    const uvec4 high = quantize_half(u * 32u + 16u, scales.y, sums.y);
    put_unit(u, low, high, vec4(scales, scales * sums));
}
