// for each format, with cooperative matrices
// y[t][r] (+)= w[r] . x[t] + bias[r] for many tokens, on matrix units. A work-group computes BM rows of BN tokens
// over tiles of BK columns, both as halfs in shared memory; sums in f32. Subgroups stand ACROSS x DOWN, each with
// FM x FN matrices of TM x TN. Needs cols % 32 == 0; activations come from prepare_halves.comp.
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 256;
layout(constant_id = 1) const uint BM = 64;
layout(constant_id = 2) const uint BN = 64;
layout(constant_id = 3) const uint BK = 32;
layout(constant_id = 4) const uint TM = 8;
layout(constant_id = 5) const uint TN = 8;
layout(constant_id = 6) const uint TK = 8;
layout(constant_id = 7) const uint ACROSS = 8;  // subgroups over rows
layout(constant_id = 8) const uint DOWN = 4;    // ... over tokens
layout(constant_id = 9) const uint SUBGROUP = 8;
const uint FM = BM / (ACROSS * TM);
const uint FN = BN / (DOWN * TN);
const uint MATRICES_EACH = FM * FN;
const uint STRIDE = BK / 8 + 1;  // of a row of a tile, in uvec4 (8 halfs), padded against bank conflicts
layout(push_constant) uniform Push { LinearArgs args; };
#include "weights.glsl"
layout(set = 0, binding = 1, std430) readonly buffer Halves { uvec4 halves[]; };
layout(set = 0, binding = 2, std430) buffer Y { float y[]; };
#define STEP_BINDING 3
#include "step.glsl"
layout(set = 0, binding = 4, std430) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 5, std430) readonly buffer RowScales { float row_scales[]; };

shared uvec4 w_tile[BM * STRIDE];
shared uvec4 x_tile[BN * STRIDE];
shared float results[ACROSS * DOWN * TM * TN];

uvec2 as_halves(vec4 v) {
    return uvec2(packHalf2x16(v.xy), packHalf2x16(v.zw));
}

void load_weights(uint first_row, uint column) {
    const uint units = args.cols / 32u;
    for (uint i = gl_LocalInvocationID.x; i < BM * (BK / 32u); i += THREADS) {
        const uint r = i / (BK / 32u), u = i % (BK / 32u), unit = column / 32u + u;
        const uint row = min(first_row + r, args.rows - 1u), at = r * STRIDE + u * 4u;
        if (unit >= units) {
            [[unroll]] for (uint k = 0; k < 4; ++k) w_tile[at + k] = uvec4(0u);
            continue;
        }
#ifdef FORMAT_FLOAT
        [[unroll]] for (uint k = 0; k < 4; ++k) {
            const uint from = (row * units + unit) * 8u + k * 2u;
            w_tile[at + k] = uvec4(as_halves(weight_elements4(0u, from)), as_halves(weight_elements4(0u, from + 1u)));
        }
#else
        uint words[8];
        unit_codes(0u, row * units + unit, words);
        const vec4 s = unit_scales(0u, row * units + unit);
        [[unroll]] for (uint k = 0; k < 4; ++k) {
            const vec2 half_scales = k < 2u ? s.xy : s.zw;
            w_tile[at + k] = uvec4(as_halves(decode4(words[2u * k], half_scales.x, half_scales.y)),
                                   as_halves(decode4(words[2u * k + 1u], half_scales.x, half_scales.y)));
        }
#endif
    }
}

void load_activations(uint first_token, uint tokens, uint column) {
    for (uint i = gl_LocalInvocationID.x; i < BN * (BK / 8u); i += THREADS) {
        const uint t = i / (BK / 8u), k = i % (BK / 8u), token = min(first_token + t, tokens - 1u);
        x_tile[t * STRIDE + k] = column + k * 8u < args.cols ? halves[(token * args.cols + column) / 8u + k] : uvec4(0u);
    }
}

void put(uint r, uint t, uint tokens, float sum) {
    if (r < args.rows && t < tokens) {
        const uint row = args.first_row + r, at = t * args.stride + row;
        sum *= row_scales[t];
        if (args.has_bias != 0u) sum += bias[row];
        y[at] = args.accumulate != 0u ? y[at] + sum : sum;
    }
}

void main() {
    weight_units = args.units;
    const uint tokens = rows_in_step(args.rows_of);
    const uint first_row = gl_WorkGroupID.x * BM, first_token = args.first_token + gl_WorkGroupID.y * BN;
    if (first_token >= tokens) return;
    const uint across = gl_SubgroupID % ACROSS, down = gl_SubgroupID / ACROSS;
    coopmat<float, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator> sums[MATRICES_EACH];
    [[unroll]] for (uint i = 0; i < MATRICES_EACH; ++i)
        sums[i] = coopmat<float, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator>(0.0);
    for (uint column = 0; column < args.cols; column += BK) {
        barrier();
        load_weights(first_row, column);
        load_activations(first_token, tokens, column);
        barrier();
        [[unroll]] for (uint k = 0; k < BK; k += TK) {
            coopmat<float16_t, gl_ScopeSubgroup, TM, TK, gl_MatrixUseA> w[FM];
            [[unroll]] for (uint i = 0; i < FM; ++i)
                coopMatLoad(w[i], w_tile, (across * FM + i) * TM * STRIDE + k / 8u, STRIDE, gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint j = 0; j < FN; ++j) {
                coopmat<float16_t, gl_ScopeSubgroup, TK, TN, gl_MatrixUseB> x;
                coopMatLoad(x, x_tile, (down * FN + j) * TN * STRIDE + k / 8u, STRIDE, gl_CooperativeMatrixLayoutColumnMajor);
                [[unroll]] for (uint i = 0; i < FM; ++i) sums[i * FN + j] = coopMatMulAdd(w[i], x, sums[i * FN + j]);
            }
        }
    }
    // Every loop here has a constant count: were one left as a loop, NVIDIA's compiler would index `sums` by a variable,
    // keep them in memory, and multiply ten times slower.
    const uint own = gl_SubgroupID * TM * TN;
    [[unroll]] for (uint i = 0; i < FM; ++i)
        [[unroll]] for (uint j = 0; j < FN; ++j) {
            coopMatStore(sums[i * FN + j], results, own, TM, gl_CooperativeMatrixLayoutColumnMajor);
            subgroupMemoryBarrierShared();
            subgroupBarrier();
            [[unroll]] for (uint n = 0; n < TM * TN / SUBGROUP; ++n) {
                const uint e = n * SUBGROUP + gl_SubgroupInvocationID;
                put(first_row + (across * FM + i) * TM + e % TM, first_token + (down * FN + j) * TN + e / TM, tokens,
                    results[own + e]);
            }
            subgroupMemoryBarrierShared();
            subgroupBarrier();
        }
}
