// token_factor(row): the factor of a sum of halfs that is the inverse of its row's of activations. In int8 products come
// scaled: coop_product.glsl reads the scale of every 32 columns, which a row of activations has in token_units[].
#ifdef INT8_MATRICES
layout(set = 0, binding = FACTORS_BINDING, std430) readonly buffer TokenUnits { uvec2 token_units[]; };
float token_factor(uint row) { return 1.0; }
#else
layout(set = 0, binding = FACTORS_BINDING, std430) readonly buffer RowScales { float row_scales[]; };
float token_factor(uint row) { return row_scales[row]; }
#endif
