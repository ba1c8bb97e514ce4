// Where dot kernels get their activations: with OWN, the work-group norms and quantizes the one row itself, into
// shared memory; else they were prepared by quantize.comp. Wants x1[] (floats), prepared[] and gain[].
shared uvec4 own_low[OWN ? COLS / 32 : 1];
shared uvec4 own_high[OWN ? COLS / 32 : 1];
shared vec4 own_meta[OWN ? COLS / 32 : 1];
uint x_first;   // element of x1[] where the own row begins, or the first prepared row
uint x_last;    // the last prepared row there is
float x_scale;  // of the norm
bool x_normed;

float value_of(uint i) {
    return x_normed ? x1[x_first + i] * x_scale * gain[i] : x1[x_first + i];
}
void put_unit(uint u, uvec4 low, uvec4 high, vec3 meta) {
    own_low[u] = low;
    own_high[u] = high;
    own_meta[u] = vec4(meta, 0.0);
}
#include "quantize.glsl"

// All invocations of the work-group together.
void prepare_own(uint first, bool normed, float eps) {
    x_first = first;
    x_normed = normed;
    x_scale = 1.0;
    if (normed) {
        float squares = 0.0;
        for (uint i = gl_LocalInvocationID.x; i < COLS; i += gl_WorkGroupSize.x) squares += x1[first + i] * x1[first + i];
        x_scale = 1.0 / sqrt(group_sum(squares) / float(COLS) + eps);
    }
    barrier();  // the row before may still be read
    for (uint u = gl_LocalInvocationID.x; u < COLS / 32u; u += gl_WorkGroupSize.x) quantize_unit(u);
    barrier();
}

uint prepared_at(uint t, uint u) { return (min(x_first + t, x_last) * (COLS / 32u) + u) * 3u; }
uvec4 x_low(uint t, uint u) { return OWN ? own_low[u] : prepared[prepared_at(t, u)]; }
uvec4 x_high(uint t, uint u) { return OWN ? own_high[u] : prepared[prepared_at(t, u) + 1u]; }
vec3 x_meta(uint t, uint u) {
    return OWN ? own_meta[u].xyz : uintBitsToFloat(prepared[prepared_at(t, u) + 2u].xyz);
}
