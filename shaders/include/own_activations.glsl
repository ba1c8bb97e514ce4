// One row of activations in int8, in shared memory: normed and quantized by each work-group itself, or taken as the
// dispatch that computed it left it (take_row.glsl). 16 elements share a scale. Wants COLS, x4[] and gain4[].
shared uvec4 own_low[COLS / 32];
shared uvec4 own_high[COLS / 32];
shared vec4 own_meta[COLS / 32];  // the scale of each half of a unit, and what the half's elements sum up to
uint x_first;   // element of x4[] where the row begins
float x_scale;  // of the norm
bool x_normed;

vec4 gained(uint i) {
    const vec4 x = x4[x_first / 4u + i];
    return x_normed ? x * gain4[i] : x;
}
// The largest of four, or NaN when one of them is not finite: it must not vanish in the codes.
float largest(vec4 v) {
    const float sum = v.x + v.y + v.z + v.w;
    const vec4 size = abs(v);
    return isnan(sum) || isinf(sum) ? NOT_A_NUMBER : max(max(size.x, size.y), max(size.z, size.w));
}

// All invocations of the work-group together. Four neighbouring elements per invocation, so that loads are wide
// and side by side; a word of codes first holds the largest of its four.
void prepare_own(uint first, bool normed, float eps) {
    x_first = first;
    x_normed = normed;
    float squares = 0.0;
    barrier();  // the row before may still be read
    for (uint i = gl_LocalInvocationID.x; i < COLS / 4u; i += gl_WorkGroupSize.x) {
        const vec4 raw = x4[first / 4u + i];
        squares += dot(raw, raw);
        const uint most = floatBitsToUint(largest(normed ? raw * gain4[i] : raw));
        if ((i & 4u) == 0u)
            own_low[i / 8u][i & 3u] = most;
        else
            own_high[i / 8u][i & 3u] = most;
    }
    x_scale = normed ? 1.0 / sqrt(group_sum(squares) / float(COLS) + eps) : 1.0;
    barrier();
    for (uint base = 0; base < COLS / 4u; base += gl_WorkGroupSize.x) {
        const uint i = base + gl_LocalInvocationID.x, u = i / 8u, side = i / 4u & 1u;
        float scale = 0.0;
        if (i < COLS / 4u) {
            const vec4 most = uintBitsToFloat(side == 0u ? own_low[u] : own_high[u]);
            const float sum = dot(most, vec4(1.0));
            scale = isnan(sum) ? sum : max(max(most.x, most.y), max(most.z, most.w)) * x_scale / 127.0;
        }
        barrier();  // halves lie within one turn: their maxima have been read
        if (i < COLS / 4u) {
            const float inverse = scale > 0.0 ? x_scale / scale : 0.0;
            const ivec4 codes = clamp(ivec4(roundEven(gained(i) * inverse)), -127, 127) & 255;
            const uint word = uint(codes.x | codes.y << 8 | codes.z << 16 | codes.w << 24);
            if (side == 0u)
                own_low[u][i & 3u] = word;
            else
                own_high[u][i & 3u] = word;
            if ((i & 3u) == 0u) own_meta[u][side] = scale;
        }
    }
    barrier();
    for (uint u = gl_LocalInvocationID.x; u < COLS / 32u; u += gl_WorkGroupSize.x)
        own_meta[u].zw = own_meta[u].xy * vec2(code_sum(own_low[u]), code_sum(own_high[u]));
    barrier();
}

uvec4 x_low(uint t, uint u) { return own_low[u]; }
uvec4 x_high(uint t, uint u) { return own_high[u]; }
vec4 x_meta(uint t, uint u) { return own_meta[u]; }
