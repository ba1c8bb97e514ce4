// for each cache, with cooperative matrices
// Causal attention for many rows, on matrix units. As attention.comp: a work-group takes queries (row, head) that
// share a kv head, and one of `splits` shares of the keys: x over splits, y over groups of queries, z over kv heads.
// Each subgroup owns TM queries: their scores with KEYS keys, the running maximum, and TM x HEAD_DIM sums.
// Queries, keys, values and weights are halfs, queries times a power of two; scores and sums are in f32, which matrix units
// add up tile of keys by tile in order. Shared memory: a tile of keys, with one part also of values, and each subgroup's
// scores. Keys and values are read, and made halfs, once for QUERIES queries; the next tile comes while the present one is
// multiplied.
// Large heads would need more registers than there are: of these PARTS subgroups share TM queries, and each has a part of
// the elements. They add up what each finds of the scores, and then all of them compute the weights of keys.
// Needs HEAD_DIM to be a multiple of 16, TN and TK, and a subgroup size that is one of TM.
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 64;
layout(constant_id = 1) const uint HEAD_DIM = 128;
layout(constant_id = 2) const uint KEYS = 32;
layout(constant_id = 3) const uint TM = 8;
layout(constant_id = 4) const uint TN = 8;
layout(constant_id = 5) const uint TK = 8;
layout(constant_id = 6) const uint SUBGROUP = 8;
layout(constant_id = 7) const uint STEP_KIND = RL_STEP_ALONE;  // or one sequence in pages; of several, of a mixed step
layout(constant_id = 8) const uint PARTS = 1;
const uint SUBGROUPS = THREADS / SUBGROUP, QUERIES = SUBGROUPS / PARTS * TM;
const uint LANES = SUBGROUP / TM;                  // that share a query
const uint OWN_KEYS = KEYS / LANES;                // scores of one lane
const uint PART = (HEAD_DIM / PARTS + 15) / 16 * 16;  // elements of a subgroup; behind HEAD_DIM they are zero
const uint DIM_TILES = PART / TN, KEY_TILES = KEYS / TN, STEPS = PART / TK;
const uint KEY_WORDS = PARTS * PART / 8;           // of a key, in uvec4 (8 halfs)
const uint STRIDE = KEY_WORDS + 1;                 // padded against bank conflicts
const uint ROW = KEYS / 4 + 1;                     // of a query's scores, in vec4, likewise
const uint HALF_ROW = KEYS / 8 + 1;                // of its weights of keys, in uvec4, likewise
layout(push_constant) uniform Push { AttentionArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer Q { vec4 q4[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { float y[]; };
#define STEP_BINDING 2
#define KEYS_BINDING 3
#define VALUES_BINDING 4
#include "step.glsl"
#define CACHE_READS
#include "cache_rows.glsl"
layout(set = 0, binding = 5, std430) readonly buffer Sinks { float sinks[]; };
layout(set = 0, binding = 6, std430) writeonly buffer Partials { float partials[]; };
#include "cache.glsl"

const float kNone = -1.0 / 0.0;
shared uvec4 k_tile[KEYS * STRIDE];
// Heads in parts have no room for both: values take the place of their keys.
shared uvec4 v_tile[PARTS == 1u ? KEYS * STRIDE : 1u];
// Of each subgroup: its scores of a tile of keys, in ROWs; then in their place the weights of the same keys, as halfs in
// HALF_ROWs, and behind them what its sums are multiplied with. At the start queries as halfs, at the end results.
shared uvec4 scores[SUBGROUPS * TM * ROW];
const uint FACTORS = TM * HALF_ROW;  // TN / 4 per query; KEYS / 8 or fewer fit
shared float lane_values[THREADS];

// Whether a uvec4 of a key or a query is not behind its last.
bool is_real(uint word) { return PARTS * PART == HEAD_DIM || word < HEAD_DIM / 8u; }
uvec4 as_halves(vec4 a, vec4 b) {
    return uvec4(packHalf2x16(a.xy), packHalf2x16(a.zw), packHalf2x16(b.xy), packHalf2x16(b.zw));
}
// All lanes of a subgroup see what they wrote to shared memory before.
void meet() {
    subgroupMemoryBarrierShared();
    subgroupBarrier();
}
// The largest value, or the sum, among the lanes that share a query.
float query_max(float own, uint lane) {
    if (LANES == 1u) return own;
    const uint first = gl_SubgroupID * SUBGROUP;
    meet();
    lane_values[first + lane] = own;
    meet();
    [[unroll]] for (uint i = 1; i < LANES; ++i) own = max(own, lane_values[first + lane / LANES * LANES + (lane + i) % LANES]);
    return own;
}
float query_sum(float own, uint lane) {
    if (LANES == 1u) return own;
    const uint first = gl_SubgroupID * SUBGROUP + lane / LANES * LANES;
    meet();
    lane_values[gl_SubgroupID * SUBGROUP + lane] = own;
    meet();
    float sum = 0.0;
    [[unroll]] for (uint i = 0; i < LANES; ++i) sum += lane_values[first + i];
    return sum;
}

const uint TILE_WORDS = KEYS * KEY_WORDS, WORDS_EACH = (TILE_WORDS + THREADS - 1) / THREADS;

// What one invocation holds of the tile of keys and values that comes next.
struct Ahead {
    uvec4 k[WORDS_EACH];
    uvec4 v[WORDS_EACH];
};
const uint OF_KEYS = 1, OF_VALUES = 2, AT_ONCE = PARTS == 1u ? OF_KEYS | OF_VALUES : OF_KEYS;

// Without branches, so that the loads overlap. From `end` on it is whatever is at hand.
void fetch(uint base, uint end, const uint what, inout Ahead ahead) {
    const uint first = gl_WorkGroupID.z * args.capacity;
    [[unroll]] for (uint n = 0; n < WORDS_EACH; ++n) {
        const uint i = min(n * THREADS + gl_LocalInvocationID.x, TILE_WORDS - 1u);
        const uint token = first + row_of(min(base + i / KEY_WORDS, max(end, 1u) - 1u));
        uint d = i % KEY_WORDS;
        if (PARTS * PART > HEAD_DIM) d = min(d, HEAD_DIM / 8u - 1u);
        if ((what & OF_KEYS) != 0u) ahead.k[n] = key_halves8(token, HEAD_DIM, d);
        if ((what & OF_VALUES) != 0u) ahead.v[n] = value_halves8(token, HEAD_DIM, d);
    }
}

// Values from `end` on become zero: nothing times a weight of zero must give NaN.
void store(uint base, uint end, const uint what, Ahead ahead) {
    [[unroll]] for (uint n = 0; n < WORDS_EACH; ++n) {
        const uint i = n * THREADS + gl_LocalInvocationID.x, key = i / KEY_WORDS, d = i % KEY_WORDS;
        if (TILE_WORDS % THREADS == 0u || i < TILE_WORDS) {
            if ((what & OF_KEYS) != 0u) k_tile[key * STRIDE + d] = is_real(d) ? ahead.k[n] : uvec4(0u);
            if (what == (OF_KEYS | OF_VALUES)) v_tile[key * STRIDE + d] = base + key < end ? ahead.v[n] : uvec4(0u);
            if (what == OF_VALUES) k_tile[key * STRIDE + d] = is_real(d) && base + key < end ? ahead.v[n] : uvec4(0u);
        }
    }
}

void main() {
    const uint kv_head = gl_WorkGroupID.z, group = args.heads / args.kv_heads, last = gl_NumWorkGroups.y - 1u;
    // Those that see the most keys begin first.
    uint first_query = (last - gl_WorkGroupID.y) * QUERIES, first_row = args.first_row, end_row = step_rows;
    uint first_position = step_position;  // of the sequence's row 0, if rows are counted as the step does
    if (STEP_KIND == RL_STEP_SEVERAL) {
        const uint groups = (RL_TILE_ROWS * group + QUERIES - 1u) / QUERIES;  // of a tile
        const uint tile = args.first_row + (last - gl_WorkGroupID.y) / groups;
        if (tile >= step_tile_count) return;
        first_query = (last - gl_WorkGroupID.y) % groups * QUERIES;
        first_row = step_word(step_tiles + 2u * tile);
        end_row = step_word(step_tiles + 2u * tile + 1u);
        first_position = step_word(step_places + 2u * first_row) - first_row;
    }
    if (first_row + first_query / group >= end_row) return;
#ifdef CACHE_COUNTED
    cache_tokens = args.kv_heads * args.capacity;
#endif
    const uint last_row = min(first_row + (first_query + QUERIES - 1u) / group, end_row - 1u);
    const uint end = first_position + last_row + 1u;
    const uint begin = first_seen(first_position + first_row + first_query / group + 1u);
    begin_keys(first_row, begin);
    const uint share = ((end - begin + args.splits - 1u) / args.splits + KEYS - 1u) / KEYS * KEYS;
    const uint from = min(begin + gl_WorkGroupID.x * share, end), to = min(from + share, end);

    const uint lane = gl_SubgroupInvocationID, own = gl_SubgroupID * TM * ROW;
    const uint own_dims = gl_SubgroupID % PARTS * PART, first_part = gl_SubgroupID / PARTS * PARTS * TM * ROW;
    const uint query = first_query + gl_SubgroupID / PARTS * TM + lane / LANES;
    const uint row = first_row + query / group, head = kv_head * group + query % group;
    const bool real = row < end_row;

    // Queries become halfs, each times a power of two that brings its largest element to about 2^4; through shared
    // memory, a part of the dimensions that fits at a time, into matrices.
    const uint at4 = (min(row, end_row - 1u) * args.heads + head) * (HEAD_DIM / 4u);
    float most = 0.0;
    [[unroll]] for (uint i = 0; i < HEAD_DIM / 4u; ++i) {
        const vec4 size = abs(q4[at4 + i]);
        most = max(most, max(max(size.x, size.y), max(size.z, size.w)));
    }
    const uint exponent = clamp((floatBitsToUint(most) >> 23) & 255u, 40u, 215u);
    const float up = uintBitsToFloat((254u + 4u - exponent) << 23), down = uintBitsToFloat((exponent - 4u) << 23);
    coopmat<float16_t, gl_ScopeSubgroup, TM, TK, gl_MatrixUseA> queries[STEPS];
    const uint fits = KEYS;  // halfs of one query, into its row
    [[unroll]] for (uint first = 0; first < PART; first += fits) {
        meet();
        [[unroll]] for (uint i = 0; i < fits / 8u; ++i) {
            const uint d = own_dims / 8u + first / 8u + i;
            if (i % LANES == lane % LANES && first / 8u + i < PART / 8u)
                scores[own + lane / LANES * HALF_ROW + i] =
                    is_real(d) ? as_halves(q4[at4 + 2u * d] * up, q4[at4 + 2u * d + 1u] * up) : uvec4(0u);
        }
        meet();
        [[unroll]] for (uint k = first / TK; k < STEPS; ++k)
            if (k * TK < first + fits)
                coopMatLoad(queries[k], scores, own + (k * TK - first) / 8u, HALF_ROW, gl_CooperativeMatrixLayoutRowMajor);
    }

    const float scale = args.scale * down;
    const uint position = first_position + row;
    const uint seen_to = real ? min(position + 1u, to) : 0u;  // this lane's query sees keys [seen_from, seen_to)
    const uint seen_from = first_seen(position + 1u);
    float top = kNone, total = 0.0;  // of this lane's query; the total of this lane's keys alone
    coopmat<float, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator> sums[DIM_TILES];
    [[unroll]] for (uint i = 0; i < DIM_TILES; ++i) sums[i] = coopmat<float, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator>(0.0);
    const uint own_row = own + lane / LANES * ROW, own_keys = lane % LANES * OWN_KEYS;

    // What is read is always stored, even behind the last key: see coop_product.glsl.
    Ahead ahead;
    fetch(from, to, AT_ONCE, ahead);
    store(from, to, AT_ONCE, ahead);
    barrier();
    for (uint base = from; base < to; base += KEYS) {
        if (PARTS == 1u) fetch(base + KEYS, to, AT_ONCE, ahead);
        else fetch(base, to, OF_VALUES, ahead);
        [[unroll]] for (uint j = 0; j < KEY_TILES; ++j) {
            coopmat<float, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator> s =
                coopmat<float, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator>(0.0);
            [[unroll]] for (uint k = 0; k < STEPS; ++k) {
                coopmat<float16_t, gl_ScopeSubgroup, TK, TN, gl_MatrixUseB> keys_part;
                coopMatLoad(keys_part, k_tile, j * TN * STRIDE + own_dims / 8u + k * TK / 8u, STRIDE,
                            gl_CooperativeMatrixLayoutColumnMajor);
                s = coopMatMulAdd(queries[k], keys_part, s);
            }
            coopMatStore(s, scores, own + j * TN / 4u, ROW, gl_CooperativeMatrixLayoutRowMajor);
        }
        if (PARTS == 1u) {
            meet();
        } else {  // all have multiplied the keys, and see each other's scores
            barrier();
            store(base, to, OF_VALUES, ahead);
            fetch(base + KEYS, to, OF_KEYS, ahead);
        }
        float p[OWN_KEYS];
        float here = kNone;
        [[unroll]] for (uint i = 0; i < OWN_KEYS / 4u; ++i) {
            const uint at = first_part + lane / LANES * ROW + own_keys / 4u + i;
            vec4 four = uintBitsToFloat(scores[at]);
            [[unroll]] for (uint n = 1; n < PARTS; ++n) four += uintBitsToFloat(scores[at + n * TM * ROW]);
            [[unroll]] for (uint e = 0; e < 4; ++e) p[i * 4u + e] = four[e] * scale;
        }
        if (args.softcap > 0.0)
            [[unroll]] for (uint i = 0; i < OWN_KEYS; ++i) p[i] = args.softcap * tanh(p[i] / args.softcap);
        [[unroll]] for (uint i = 0; i < OWN_KEYS; ++i) {
            const uint key = base + own_keys + i;
            if (key < seen_from || key >= seen_to) p[i] = kNone;
            here = max(here, p[i]);
        }
        const float now = max(top, query_max(here, lane));
        const float correction = top == kNone ? 0.0 : exp(top - now);
        top = now;
        total *= correction;
        // Nothing seen yet: infinity minus infinity must not become NaN, a NaN score must stay one.
        [[unroll]] for (uint i = 0; i < OWN_KEYS; ++i) {
            p[i] = p[i] == kNone ? 0.0 : exp(p[i] - now);
            total += p[i];
        }
        // The scores have been read.
        if (PARTS == 1u) meet();
        else barrier();
        [[unroll]] for (uint i = 0; i < OWN_KEYS / 8u; ++i)
            scores[own + lane / LANES * HALF_ROW + own_keys / 8u + i] =
                as_halves(vec4(p[i * 8u], p[i * 8u + 1u], p[i * 8u + 2u], p[i * 8u + 3u]),
                          vec4(p[i * 8u + 4u], p[i * 8u + 5u], p[i * 8u + 6u], p[i * 8u + 7u]));
        for (uint i = lane % LANES; i < TN / 4u; i += LANES)
            scores[own + FACTORS + lane / LANES * (TN / 4u) + i] = uvec4(floatBitsToUint(correction));
        meet();
        coopmat<float, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator> factors;
        coopMatLoad(factors, scores, own + FACTORS, TN / 4u, gl_CooperativeMatrixLayoutRowMajor);
        [[unroll]] for (uint i = 0; i < DIM_TILES; ++i) sums[i] = sums[i] * factors;
        [[unroll]] for (uint k = 0; k < KEYS / TK; ++k) {
            coopmat<float16_t, gl_ScopeSubgroup, TM, TK, gl_MatrixUseA> chances;
            coopMatLoad(chances, scores, own + k * TK / 8u, HALF_ROW, gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint i = 0; i < DIM_TILES; ++i) {
                coopmat<float16_t, gl_ScopeSubgroup, TK, TN, gl_MatrixUseB> values_part;
                if (PARTS == 1u)
                    coopMatLoad(values_part, v_tile, k * TK * STRIDE + i * TN / 8u, STRIDE, gl_CooperativeMatrixLayoutRowMajor);
                else
                    coopMatLoad(values_part, k_tile, k * TK * STRIDE + own_dims / 8u + i * TN / 8u, STRIDE,
                                gl_CooperativeMatrixLayoutRowMajor);
                sums[i] = coopMatMulAdd(chances, values_part, sums[i]);
            }
        }
        barrier();
        store(base + KEYS, to, AT_ONCE, ahead);
        barrier();
    }
    total = query_sum(total, lane);
    float factor = 1.0;
    if (args.splits == 1u && args.has_sinks != 0u) {
        const float highest = max(top, sinks[head]);
        factor = exp(top - highest);
        total = total * factor + exp(sinks[head] - highest);
    }
    factor = args.splits == 1u ? factor / total : 1.0;
    const uint result = (row * args.heads + head) * HEAD_DIM;
    const uint partial = ((row * args.heads + head) * args.splits + gl_WorkGroupID.x) * (HEAD_DIM + 2u);
    [[unroll]] for (uint i = 0; i < DIM_TILES; ++i) {
        meet();
        coopMatStore(sums[i], scores, own, ROW, gl_CooperativeMatrixLayoutRowMajor);
        meet();
        [[unroll]] for (uint e = 0; e < TN / LANES; ++e) {
            const uint column = lane % LANES * (TN / LANES) + e, d = own_dims + i * TN + column;
            const float value = uintBitsToFloat(scores[own_row + column / 4u][column % 4u]) * factor;
            const bool wanted = real && (PARTS * PART == HEAD_DIM || d < HEAD_DIM);
            if (wanted && args.splits == 1u) y[result + d] = value;
            if (wanted && args.splits > 1u) partials[partial + 2u + d] = value;
        }
    }
    if (real && args.splits > 1u && own_dims == 0u && lane % LANES == 0u) {
        partials[partial] = top;
        partials[partial + 1u] = total;
    }
}
