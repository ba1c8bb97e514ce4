// As vec_product.glsl, with activations in int8: products of codes are exact, scales are applied per half unit.
// Wants x_low(t, u), x_high(t, u), x_meta(t, u).

#include "code_sums.glsl"

// Of a unit, with its codes and scales, and the activations'.
float unit_product(uint words[8], vec4 s, uvec4 low, uvec4 high, vec4 meta) {
    int a = DOT_START, b = DOT_START;
    [[unroll]] for (uint k = 0; k < 4; ++k) {
        a += DOT4(words[k], low[k]);
        b += DOT4(words[k + 4], high[k]);
    }
    const float bias = float(FORMAT_BIAS);
    const vec2 products = meta.xy * vec2(dot_value(a), dot_value(b));
#ifdef FORMAT_HALVES
    float sum = s.x * (products.x - bias * meta.z) + s.z * (products.y - bias * meta.w);
#ifdef FORMAT_OFFSET
    sum += s.y * meta.z + s.w * meta.w;
#endif
#else
    const float all = meta.z + meta.w;
    float sum = s.x * (products.x + products.y - bias * all);
#ifdef FORMAT_OFFSET
    sum += s.y * all;
#endif
#endif
    return sum;
}
