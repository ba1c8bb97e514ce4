// Rows of activations in int8 that quantize.comp prepared. Wants COLS and prepared[].
uint x_first;  // row
uint x_last;   // that there is
uint prepared_at(uint t, uint u) { return (min(x_first + t, x_last) * (COLS / 32u) + u) * 3u; }
uvec4 x_low(uint t, uint u) { return prepared[prepared_at(t, u)]; }
uvec4 x_high(uint t, uint u) { return prepared[prepared_at(t, u) + 1u]; }
vec4 x_meta(uint t, uint u) { return uintBitsToFloat(prepared[prepared_at(t, u) + 2u]); }
