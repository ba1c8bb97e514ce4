// Takes a row as leave_row.glsl left it, all invocations of the work-group together. Wants handed[] and HAND_ROW.
float take_own(bool normed, float eps) {  // returns what the norm multiplies by
    const uint units = COLS / 32u, first = HAND_ROW * 3u * units;
    float squares = 0.0;
    for (uint u = gl_LocalInvocationID.x; u < units; u += gl_WorkGroupSize.x) {
        const uvec4 low = handed[first + u], high = handed[first + units + u];
        const vec4 meta = uintBitsToFloat(handed[first + 2u * units + u]);
        own_low[u] = low;
        own_high[u] = high;
        own_meta[u] = vec4(meta.xy, meta.xy * vec2(code_sum(low), code_sum(high)));
        squares += meta.z + meta.w;
    }
    if (normed) return 1.0 / sqrt(group_sum(squares) / float(COLS) + eps);  // its barriers are enough
    barrier();
    return 1.0;
}
