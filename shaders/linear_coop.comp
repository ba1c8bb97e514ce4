// for each format, with cooperative matrices
// y[t][r] (+)= w[r] . x[t] + bias[r] for many tokens, on matrix units. A work-group computes BM rows of BN tokens
// over tiles of BK columns, both as halfs in shared memory; sums in f32. The next tile is read while the present one
// is multiplied; with STAGES of 2 it is also stored beside it, for one barrier per tile. Subgroups stand ACROSS x
// DOWN, each with FM x FN matrices of TM x TN. Needs cols % 32 == 0; activations come from prepare_halves.comp.
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
layout(constant_id = 10) const uint STAGES = 1;
const uint FM = BM / (ACROSS * TM);
const uint FN = BN / (DOWN * TN);
const uint MATRICES_EACH = FM * FN;
const uint STRIDE = BK / 8 + 1;  // of a row of a tile, in uvec4 (8 halfs), padded against bank conflicts
const uint W_UNITS = BM * (BK / 32), X_WORDS = BN * (BK / 8);  // of a tile
const uint W_EACH = (W_UNITS + THREADS - 1) / THREADS, X_EACH = (X_WORDS + THREADS - 1) / THREADS;
layout(push_constant) uniform Push { LinearArgs args; };
#include "weights.glsl"
#include "half_units.glsl"
layout(set = 0, binding = 1, std430) readonly buffer Halves { uvec4 halves[]; };
layout(set = 0, binding = 2, std430) buffer Y { float y[]; };
#define STEP_BINDING 3
#include "step.glsl"
layout(set = 0, binding = 4, std430) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 5, std430) readonly buffer RowScales { float row_scales[]; };

shared uvec4 w_tile[STAGES * BM * STRIDE];
shared uvec4 x_tile[STAGES * BN * STRIDE];
shared float results[ACROSS * DOWN * TM * TN];

// What one invocation holds of the tile that comes next.
struct Ahead {
    uint w[W_EACH][RAW];
    uvec4 x[X_EACH];
};

// Without branches, so that the loads overlap with whatever stands around them. Past the last column both are
// whatever is at hand; store() makes activations zero there.
void fetch(uint first_row, uint first_token, uint tokens, uint column, out Ahead ahead) {
    const uint units = args.cols / 32u;
    [[unroll]] for (uint n = 0; n < W_EACH; ++n) {
        const uint i = min(n * THREADS + gl_LocalInvocationID.x, W_UNITS - 1u);
        const uint row = min(first_row + i / (BK / 32u), args.rows - 1u);
        fetch_unit(0u, row * units + min(column / 32u + i % (BK / 32u), units - 1u), ahead.w[n]);
    }
    [[unroll]] for (uint n = 0; n < X_EACH; ++n) {
        const uint i = min(n * THREADS + gl_LocalInvocationID.x, X_WORDS - 1u);
        const uint k = i % (BK / 8u), token = min(first_token + i / (BK / 8u), tokens - 1u);
        ahead.x[n] = halves[token * (args.cols / 8u) + min(column / 8u + k, args.cols / 8u - 1u)];
    }
}

void store(uint stage, uint first_row, uint column, Ahead ahead) {
    const uint units = args.cols / 32u;
    [[unroll]] for (uint n = 0; n < W_EACH; ++n) {
        const uint i = n * THREADS + gl_LocalInvocationID.x, r = i / (BK / 32u), u = i % (BK / 32u);
        uvec4 decoded[4];
        unit_halves(min(first_row + r, args.rows - 1u) * units + min(column / 32u + u, units - 1u), ahead.w[n], decoded);
        if (W_UNITS % THREADS == 0u || i < W_UNITS)
            [[unroll]] for (uint k = 0; k < 4; ++k) w_tile[(stage * BM + r) * STRIDE + u * 4u + k] = decoded[k];
    }
    [[unroll]] for (uint n = 0; n < X_EACH; ++n) {
        const uint i = n * THREADS + gl_LocalInvocationID.x;
        const uint t = i / (BK / 8u), k = i % (BK / 8u);
        if (X_WORDS % THREADS == 0u || i < X_WORDS)
            x_tile[(stage * BN + t) * STRIDE + k] = column + k * 8u < args.cols ? ahead.x[n] : uvec4(0u);
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
    Ahead ahead;
    fetch(first_row, first_token, tokens, 0u, ahead);
    store(0u, first_row, 0u, ahead);
    barrier();
    uint stage = 0u;
    for (uint column = 0; column < args.cols; column += BK) {
        const uint next = column + BK;
        fetch(first_row, first_token, tokens, min(next, args.cols - 32u) / BK * BK, ahead);
        [[unroll]] for (uint k = 0; k < BK; k += TK) {
            coopmat<float16_t, gl_ScopeSubgroup, TM, TK, gl_MatrixUseA> w[FM];
            [[unroll]] for (uint i = 0; i < FM; ++i)
                coopMatLoad(w[i], w_tile, (stage * BM + (across * FM + i) * TM) * STRIDE + k / 8u, STRIDE,
                            gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint j = 0; j < FN; ++j) {
                coopmat<float16_t, gl_ScopeSubgroup, TK, TN, gl_MatrixUseB> x;
                coopMatLoad(x, x_tile, (stage * BN + (down * FN + j) * TN) * STRIDE + k / 8u, STRIDE,
                            gl_CooperativeMatrixLayoutColumnMajor);
                [[unroll]] for (uint i = 0; i < FM; ++i) sums[i * FN + j] = coopMatMulAdd(w[i], x, sums[i * FN + j]);
            }
        }
        if (next >= args.cols) break;
        if (STAGES == 1u) barrier();
        stage = (stage + 1u) % STAGES;
        store(stage, first_row, next, ahead);
        barrier();
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
