// Rows of activations in int8 as quantize.comp leaves them. Wants COLS and prepared[].
uint x_first;  // row
uint x_last;   // that there is
uint prepared_at(uint t, uint plane, uint u) { return (min(x_first + t, x_last) * 3u + plane) * (COLS / 32u) + u; }
uvec4 x_low(uint t, uint u) { return prepared[prepared_at(t, 0u, u)]; }
uvec4 x_high(uint t, uint u) { return prepared[prepared_at(t, 1u, u)]; }
vec4 x_meta(uint t, uint u) { return uintBitsToFloat(prepared[prepared_at(t, 2u, u)]); }
