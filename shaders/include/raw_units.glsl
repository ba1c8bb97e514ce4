// For a format whose snippet reads a unit in two steps (FORMAT_RAW, see half_units.glsl) and decodes word k of its codes by
// raw_word(raw, k): the other ways to read it.
void raw_codes(uint raw[FORMAT_RAW], out uint words[8]) {
    [[unroll]] for (uint k = 0; k < 8; ++k) words[k] = raw_word(raw, k);
}
void unit_codes(uint m, uint unit, out uint words[8]) {
    uint raw[FORMAT_RAW];
    unit_raw(m, unit, raw);
    raw_codes(raw, words);
}
uvec2 unit_words(uint m, uint unit, uint k) {
    uint raw[FORMAT_RAW];
    unit_raw(m, unit, raw);
    return uvec2(raw_word(raw, k), raw_word(raw, k + 4));
}
vec4 unit_scales(uint m, uint unit) {
    uint raw[FORMAT_RAW];
    unit_raw(m, unit, raw);
    return raw_scales(unit, raw);
}
