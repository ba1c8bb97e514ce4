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
const uint FM = BM / (ACROSS * TM);
const uint FN = BN / (DOWN * TN);
const uint MATRICES_EACH = FM * FN;
const uint STRIDE = BK / 2 + 4;  // of a row of a tile, in f16vec2, padded against bank conflicts
layout(push_constant) uniform Push { LinearArgs args; };
#include "weights.glsl"
layout(set = 0, binding = 1, std430) readonly buffer Halves { f16vec4 halves[]; };
layout(set = 0, binding = 2, std430) buffer Y { float y[]; };
#define STEP_BINDING 3
#include "step.glsl"
layout(set = 0, binding = 4, std430) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 5, std430) readonly buffer RowScales { float row_scales[]; };

shared f16vec2 w_tile[BM * STRIDE];
shared f16vec2 x_tile[BN * STRIDE];
shared float results[ACROSS * DOWN * TM * TN];

void put_weights(uint at, vec4 w) {
    w_tile[at] = f16vec2(w.xy);
    w_tile[at + 1u] = f16vec2(w.zw);
}

void load_weights(uint first_row, uint column) {
    const uint units = args.cols / 32u;
    for (uint i = gl_LocalInvocationID.x; i < BM * (BK / 32u); i += THREADS) {
        const uint r = i / (BK / 32u), u = i % (BK / 32u), unit = column / 32u + u;
        const uint row = min(first_row + r, args.rows - 1u), at = r * STRIDE + u * 16u;
        if (unit >= units) {
            [[unroll]] for (uint k = 0; k < 16; ++k) w_tile[at + k] = f16vec2(0.0);
            continue;
        }
#ifdef FORMAT_FLOAT
        [[unroll]] for (uint k = 0; k < 8; ++k)
            put_weights(at + k * 2u, weight_elements4(0u, (row * units + unit) * 8u + k));
#else
        uint words[8];
        unit_codes(0u, row * units + unit, words);
        const vec4 s = unit_scales(0u, row * units + unit);
        [[unroll]] for (uint k = 0; k < 8; ++k)
            put_weights(at + k * 2u, k < 4u ? decode4(words[k], s.x, s.y) : decode4(words[k], s.z, s.w));
#endif
    }
}

void load_activations(uint first_token, uint tokens, uint column) {
    for (uint i = gl_LocalInvocationID.x; i < BN * (BK / 4u); i += THREADS) {
        const uint t = i / (BK / 4u), k = i % (BK / 4u), token = min(first_token + t, tokens - 1u);
        const f16vec4 x = column + k * 4u < args.cols ? halves[(token * args.cols + column) / 4u + k] : f16vec4(0.0);
        x_tile[t * STRIDE + k * 2u] = x.xy;
        x_tile[t * STRIDE + k * 2u + 1u] = x.zw;
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
                coopMatLoad(w[i], w_tile, (across * FM + i) * TM * STRIDE + k / 2u, STRIDE, gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint j = 0; j < FN; ++j) {
                coopmat<float16_t, gl_ScopeSubgroup, TK, TN, gl_MatrixUseB> x;
                coopMatLoad(x, x_tile, (down * FN + j) * TN * STRIDE + k / 2u, STRIDE, gl_CooperativeMatrixLayoutColumnMajor);
                [[unroll]] for (uint i = 0; i < FM; ++i) sums[i * FN + j] = coopMatMulAdd(w[i], x, sums[i * FN + j]);
            }
        }
    }
    const uint own = gl_SubgroupID * TM * TN;
    [[unroll]] for (uint i = 0; i < FM; ++i)
        [[unroll]] for (uint j = 0; j < FN; ++j) {
            coopMatStore(sums[i * FN + j], results, own, TM, gl_CooperativeMatrixLayoutColumnMajor);
            subgroupMemoryBarrierShared();
            subgroupBarrier();
            for (uint e = gl_SubgroupInvocationID; e < TM * TN; e += gl_SubgroupSize) {
                const uint r = first_row + (across * FM + i) * TM + e % TM;
                const uint t = first_token + (down * FN + j) * TN + e / TM;
                if (r >= args.rows || t >= tokens) continue;
                const uint row = args.first_row + r, at = t * args.stride + row;
                float sum = results[own + e] * row_scales[t];
                if (args.has_bias != 0u) sum += bias[row];
                y[at] = args.accumulate != 0u ? y[at] + sum : sum;
            }
            subgroupMemoryBarrierShared();
            subgroupBarrier();
        }
}
