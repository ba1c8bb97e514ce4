// Where dot kernels get their activations: with OWN, the work-group norms and quantizes the one row itself, into
// shared memory; else they were prepared by quantize.comp. Wants x4[] (floats), prepared[] and gain4[].
shared uvec4 own_low[OWN ? COLS / 32 : 1];
shared uvec4 own_high[OWN ? COLS / 32 : 1];
shared vec4 own_meta[OWN ? COLS / 32 : 1];
uint x_first;   // element of x4[] where the own row begins, or the first prepared row
uint x_last;    // the last prepared row there is
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
    return isnan(sum) || isinf(sum) ? sum - sum : max(max(size.x, size.y), max(size.z, size.w));
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
        const uint i = base + gl_LocalInvocationID.x, u = i / 8u;
        float scale = 0.0;
        if (i < COLS / 4u) {
            const vec4 low = uintBitsToFloat(own_low[u]), high = uintBitsToFloat(own_high[u]);
            const vec4 m = max(low, high);
            const float sum = dot(low + high, vec4(1.0));
            scale = isnan(sum) ? sum : max(max(m.x, m.y), max(m.z, m.w)) * x_scale / 127.0;
        }
        barrier();  // units lie within one turn: their maxima have been read
        if (i < COLS / 4u) {
            const float inverse = scale > 0.0 ? x_scale / scale : 0.0;
            const ivec4 codes = clamp(ivec4(roundEven(gained(i) * inverse)), -127, 127) & 255;
            const uint word = uint(codes.x | codes.y << 8 | codes.z << 16 | codes.w << 24);
            if ((i & 4u) == 0u)
                own_low[u][i & 3u] = word;
            else
                own_high[u][i & 3u] = word;
            if ((i & 7u) == 0u) own_meta[u].x = scale;
        }
    }
    barrier();
    for (uint u = gl_LocalInvocationID.x; u < COLS / 32u; u += gl_WorkGroupSize.x) {
        ivec2 sums = ivec2(0);
        [[unroll]] for (uint k = 0; k < 4; ++k) {
            sums.x += DOT4(own_low[u][k], 0x01010101u);
            sums.y += DOT4(own_high[u][k], 0x01010101u);
        }
        own_meta[u].yz = own_meta[u].x * vec2(sums);
    }
    barrier();
}

uint prepared_at(uint t, uint u) { return (min(x_first + t, x_last) * (COLS / 32u) + u) * 3u; }
uvec4 x_low(uint t, uint u) { return OWN ? own_low[u] : prepared[prepared_at(t, u)]; }
uvec4 x_high(uint t, uint u) { return OWN ? own_high[u] : prepared[prepared_at(t, u) + 1u]; }
vec3 x_meta(uint t, uint u) {
    return OWN ? own_meta[u].xyz : uintBitsToFloat(prepared[prepared_at(t, u) + 2u].xyz);
}
