// for each cache of latents, with cooperative matrices
// As latent_attention.comp, on matrix units. All subgroups go over the same tiles of keys, which lie in shared memory once,
// as keys and as values. For scores a subgroup multiplies TM queries with TN keys over one of PARTS parts of the width; then
// each turns the scores of some queries into weights, under their running maximum, and adds its own part of the rank of the
// weighted values to the sums of all queries. Needs WIDTH and RANK to be multiples of 16, TN and TK, and THREADS to be
// whole subgroups, at least one for each matrix of scores.
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 256;
layout(constant_id = 1) const uint WIDTH = 576;
layout(constant_id = 2) const uint RANK = 512;
layout(constant_id = 3) const uint QUERIES = 16;
layout(constant_id = 4) const uint KEYS = 16;  // of a tile
layout(constant_id = 5) const uint TM = 8;
layout(constant_id = 6) const uint TN = 8;
layout(constant_id = 7) const uint TK = 8;
layout(constant_id = 8) const uint SUBGROUP = 8;
layout(constant_id = 9) const uint STEP_KIND = RL_STEP_ALONE;
const uint SUBGROUPS = THREADS / SUBGROUP;
const uint QUERY_TILES = QUERIES / TM, KEY_TILES = KEYS / TN;
const uint PARTS = SUBGROUPS / (QUERY_TILES * KEY_TILES);
const uint ALL_STEPS = WIDTH / TK, STEPS = (ALL_STEPS + PARTS - 1) / PARTS;              // of a part
const uint RANK_TILES = RANK / TN, OWN_TILES = (RANK_TILES + SUBGROUPS - 1) / SUBGROUPS;  // of a subgroup
const uint SUMS = QUERY_TILES * OWN_TILES;
const uint OWN_ROWS = (QUERIES + SUBGROUPS - 1) / SUBGROUPS;  // queries whose weights a subgroup computes
const uint PAIRS = KEYS / 2, OWN_PAIRS = (PAIRS + SUBGROUP - 1) / SUBGROUP;  // of keys; of a lane
const uint WORDS = WIDTH / 8, OWN_WORDS = (WORDS + SUBGROUP - 1) / SUBGROUP;  // of a row, in uvec4 (8 halfs); of a lane
const uint STRIDE = WORDS + 1;                                // padded against bank conflicts
// Of a query's scores of a tile, in uvec4, likewise. In place of those of the first part come the weights of the same keys,
// as halfs, and behind them what the query's sums are multiplied with, TN times.
const uint FACTORS = KEYS / 8;
const uint ROW = (KEYS / 4 > FACTORS + TN / 4 ? KEYS / 4 : FACTORS + TN / 4) | 1;
const uint RESULT_ROW = TN / 4 + 1;
const uint TILE = KEYS * STRIDE, RESULTS = SUBGROUPS * TM * RESULT_ROW;
layout(push_constant) uniform Push { AttentionArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer Q { vec4 q4[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { vec4 y4[]; };
#define STEP_BINDING 2
#define KEYS_BINDING 3
#define VALUES_BINDING 3
#include "step.glsl"
#define CACHE_READS
#include "cache_rows.glsl"
layout(set = 0, binding = 4, std430) writeonly buffer Partials { float partials[]; };
layout(set = 0, binding = 4, std430) writeonly buffer Partials4 { vec4 partials4[]; };
#include "cache.glsl"

#define GROUP args.heads
#include "attention_parts.glsl"
#include "latent_splits.glsl"

shared uvec4 k_tile[TILE > RESULTS ? TILE : RESULTS];  // at the start queries, at the end results
shared uvec4 scores[PARTS * QUERIES * ROW];
shared float all_totals[QUERIES];

// All lanes of a subgroup see what they wrote to shared memory before.
void meet() {
    subgroupMemoryBarrierShared();
    subgroupBarrier();
}
uvec4 as_halves(vec4 a, vec4 b) {
    return uvec4(packHalf2x16(a.xy), packHalf2x16(a.zw), packHalf2x16(b.xy), packHalf2x16(b.zw));
}

// What one invocation holds of the tile of keys that comes next.
const uint TILE_WORDS = KEYS * WORDS, WORDS_EACH = (TILE_WORDS + THREADS - 1) / THREADS;
struct Ahead {
    uvec4 k[WORDS_EACH];
};

// Without branches, so that the loads overlap. From `end` on it is whatever is at hand.
void fetch(uint base, uint end, out Ahead ahead) {
    [[unroll]] for (uint n = 0; n < WORDS_EACH; ++n) {
        const uint i = min(n * THREADS + gl_LocalInvocationID.x, TILE_WORDS - 1u);
        ahead.k[n] = key_halves8(row_of(min(base + i / WORDS, end - 1u)), WIDTH, i % WORDS);
    }
}

// From `end` on it becomes zero: a weight of zero times whatever lies there must not give NaN.
void store(uint base, uint end, Ahead ahead) {
    [[unroll]] for (uint n = 0; n < WORDS_EACH; ++n) {
        const uint i = n * THREADS + gl_LocalInvocationID.x, key = i / WORDS;
        if (TILE_WORDS % THREADS == 0u || i < TILE_WORDS)
            k_tile[key * STRIDE + i % WORDS] = base + key < end ? ahead.k[n] : uvec4(0u);
    }
}

// Of the work-group, for all of it: where its queries end, and its keys.
uint query_end, to;

// What this subgroup computes weights of: queries gl_SubgroupID, gl_SubgroupID + SUBGROUPS, ...
struct OwnRows {
    float scale[OWN_ROWS];
    uint end[OWN_ROWS];  // of the keys that are seen
    float top[OWN_ROWS];
    float total[OWN_ROWS];  // of this lane's keys alone
};
uint own_row(uint i) { return gl_SubgroupID + i * SUBGROUPS; }

// Queries `first` to `first` + KEYS become halfs in place of a tile of keys, each times a power of two that brings its largest
// element to about 2^4.
void prepare_queries(uint first, inout OwnRows own) {
    const uint lane = gl_SubgroupInvocationID;
    [[unroll]] for (uint i = 0; i < OWN_ROWS; ++i) {
        if (own_row(i) < first || own_row(i) >= min(first + KEYS, QUERIES)) continue;
        const uint query = own_query(own_row(i));
        const bool real = query < query_end;
        const uint at = (args.first_row * args.heads + (real ? query : own_query(0u))) * (WIDTH / 4u);
        vec4 values[2u * OWN_WORDS];
        float most = 0.0;
        [[unroll]] for (uint n = 0; n < 2u * OWN_WORDS; ++n) {
            values[n] = q4[at + min(lane + n / 2u * SUBGROUP, WORDS - 1u) * 2u + n % 2u];
            const vec4 size = abs(values[n]);
            most = max(most, max(max(size.x, size.y), max(size.z, size.w)));
        }
        const uint exponent = clamp((floatBitsToUint(subgroupMax(most)) >> 23) & 255u, 40u, 215u);
        const float up = uintBitsToFloat((254u + 4u - exponent) << 23);
        own.scale[i] = args.scale * uintBitsToFloat((exponent - 4u) << 23);
        own.end[i] = real ? min(first_position() + query_row(query) + 1u, to) : 0u;
        [[unroll]] for (uint n = 0; n < OWN_WORDS; ++n)
            if (lane + n * SUBGROUP < WORDS)
                k_tile[(own_row(i) - first) * STRIDE + lane + n * SUBGROUP] =
                    real ? as_halves(values[2u * n] * up, values[2u * n + 1u] * up) : uvec4(0u);
    }
}

// Adds up the parts of the tile's scores and turns them into weights under the running maximum.
void weigh_tile(uint base, inout OwnRows own) {
    const uint lane = gl_SubgroupInvocationID;
    vec2 p[OWN_ROWS * OWN_PAIRS];
    float corrections[OWN_ROWS];
    [[unroll]] for (uint i = 0; i < OWN_ROWS; ++i) {
        const uint at = min(own_row(i), QUERIES - 1u) * ROW;
        float here = kNone;
        [[unroll]] for (uint n = 0; n < OWN_PAIRS; ++n) {
            const uint pair = lane + n * SUBGROUP, key = base + 2u * pair, end = pair < PAIRS ? own.end[i] : 0u;
            vec2 sum = vec2(0.0);
            [[unroll]] for (uint part = 0; part < PARTS; ++part) {
                const vec4 four = uintBitsToFloat(scores[part * QUERIES * ROW + at + min(pair, PAIRS - 1u) / 2u]);
                sum += (pair & 1u) == 0u ? four.xy : four.zw;
            }
            sum *= own.scale[i];
            p[i * OWN_PAIRS + n] = vec2(key < end ? sum.x : kNone, key + 1u < end ? sum.y : kNone);
            here = max(here, max(p[i * OWN_PAIRS + n].x, p[i * OWN_PAIRS + n].y));
        }
        const float now = max(own.top[i], subgroupMax(here));
        corrections[i] = own.top[i] == kNone ? 0.0 : exp(own.top[i] - now);
        own.top[i] = now;
        own.total[i] *= corrections[i];
        [[unroll]] for (uint n = 0; n < OWN_PAIRS; ++n) {
            // Nothing seen yet: infinity minus infinity must not become NaN, a NaN score must stay one.
            const vec2 score = p[i * OWN_PAIRS + n];
            const vec2 weight = vec2(score.x == kNone ? 0.0 : exp(score.x - now), score.y == kNone ? 0.0 : exp(score.y - now));
            own.total[i] += weight.x + weight.y;
            p[i * OWN_PAIRS + n] = weight;
        }
    }
    meet();  // the scores have been read
    [[unroll]] for (uint i = 0; i < OWN_ROWS; ++i) {
        if (QUERIES % SUBGROUPS != 0u && own_row(i) >= QUERIES) continue;
        const uint at = own_row(i) * ROW;
        [[unroll]] for (uint n = 0; n < OWN_PAIRS; ++n) {
            const uint pair = lane + n * SUBGROUP;
            if (pair < PAIRS) scores[at + pair / 4u][pair % 4u] = packHalf2x16(p[i * OWN_PAIRS + n]);
        }
        for (uint n = lane; n < TN / 4u; n += SUBGROUP) scores[at + FACTORS + n] = uvec4(floatBitsToUint(corrections[i]));
    }
}

// What the sums of each query are divided by in the end, and what the merge wants to know.
void put_stats(OwnRows own, uint used) {
    [[unroll]] for (uint i = 0; i < OWN_ROWS; ++i) {
        const float total = subgroupAdd(own.total[i]);
        if (!subgroupElect() || own_row(i) >= QUERIES) continue;
        all_totals[own_row(i)] = total;
        const uint query = own_query(own_row(i));
        if (used == 1u || query >= query_end) continue;
        const uint stat = args.first_stat + 2u * partial_of(query, gl_WorkGroupID.x);
        partials[stat] = own.top[i];
        partials[stat + 1u] = total;
    }
}

// Tile t of this subgroup's part of the rank. Where there is none it computes the last once more, and does not put it: all
// subgroups go the same way.
uint own_tile(uint t) { return min(gl_SubgroupID * OWN_TILES + t, RANK_TILES - 1u); }
bool has_tile(uint t) { return RANK_TILES % SUBGROUPS == 0u || gl_SubgroupID * OWN_TILES + t < RANK_TILES; }

// A matrix of sums, from `first` in k_tile: with one split they become the result, else they go to `partials`.
void put_matrix(uint first, uint first_query, uint tile, uint used) {
    for (uint n = gl_SubgroupInvocationID; n < TM * TN / 4u; n += SUBGROUP) {
        const uint i = n / (TN / 4u), column = n % (TN / 4u), query = own_query(first_query + i);
        if (query >= query_end) continue;
        const vec4 sum = uintBitsToFloat(k_tile[first + i * RESULT_ROW + column]);
        const uint at = args.first_row * args.heads + query, four = tile * (TN / 4u) + column;
        if (used == 1u)
            y4[at * (RANK / 4u) + four] = sum / all_totals[first_query + i];
        else
            partials4[(at * args.splits + gl_WorkGroupID.x) * (RANK / 4u) + four] = sum;
    }
}

#define SUM coopmat<float, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator>
#define LEFT coopmat<float16_t, gl_ScopeSubgroup, TM, TK, gl_MatrixUseA>
#define RIGHT coopmat<float16_t, gl_ScopeSubgroup, TK, TN, gl_MatrixUseB>

void main() {
    const uint row = query_row(own_query(0u));
    if (row >= step_rows) return;
#ifdef CACHE_COUNTED
    cache_tokens = args.capacity;
#endif
    begin_keys(row, 0u);
    const Splits splits = splits_of(own_query(0u));
    if (gl_WorkGroupID.x >= splits.used) return;
    const uint from = gl_WorkGroupID.x * splits.share;
    to = min(from + splits.share, splits.end);
    query_end = ((BY_ROW ? row + 1u : step_rows) - args.first_row) * args.heads;

    // What is read is always stored, even behind the last key: see coop_product.glsl.
    Ahead ahead;
    fetch(from, to, ahead);
    OwnRows own;
    [[unroll]] for (uint i = 0; i < OWN_ROWS; ++i) {
        own.top[i] = kNone;
        own.total[i] = 0.0;
    }
    // What this subgroup multiplies for scores: TM queries, TN keys of a tile, and steps of the width.
    const uint own_queries = gl_SubgroupID % QUERY_TILES * TM, own_keys = gl_SubgroupID / QUERY_TILES % KEY_TILES * TN;
    const uint part = gl_SubgroupID / (QUERY_TILES * KEY_TILES), first_step = part * STEPS;
    LEFT queries[STEPS];
    [[unroll]] for (uint first = 0; first < QUERIES; first += KEYS) {
        if (first > 0u) barrier();
        prepare_queries(first, own);
        barrier();
        [[unroll]] for (uint k = 0; k < STEPS; ++k)
            if (own_queries >= first && own_queries < first + KEYS && (ALL_STEPS % PARTS == 0u || first_step + k < ALL_STEPS))
                coopMatLoad(queries[k], k_tile, (own_queries - first) * STRIDE + (first_step + k) * (TK / 8u), STRIDE,
                            gl_CooperativeMatrixLayoutRowMajor);
    }
    SUM sums[SUMS];
    [[unroll]] for (uint i = 0; i < SUMS; ++i) sums[i] = SUM(0.0);
    barrier();
    store(from, to, ahead);
    barrier();
    for (uint base = from; base < to; base += KEYS) {
        fetch(base + KEYS, to, ahead);
        SUM s = SUM(0.0);
        [[unroll]] for (uint k = 0; k < STEPS; ++k)
            if (ALL_STEPS % PARTS == 0u || first_step + k < ALL_STEPS) {
                RIGHT keys_part;
                coopMatLoad(keys_part, k_tile, own_keys * STRIDE + (first_step + k) * (TK / 8u), STRIDE,
                            gl_CooperativeMatrixLayoutColumnMajor);
                s = coopMatMulAdd(queries[k], keys_part, s);
            }
        coopMatStore(s, scores, (part * QUERIES + own_queries) * ROW + own_keys / 4u, ROW, gl_CooperativeMatrixLayoutRowMajor);
        barrier();
        weigh_tile(base, own);
        barrier();
        [[unroll]] for (uint i = 0; i < QUERY_TILES; ++i) {
            SUM factors;
            coopMatLoad(factors, scores, i * TM * ROW + FACTORS, ROW, gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint t = 0; t < OWN_TILES; ++t) sums[i * OWN_TILES + t] = sums[i * OWN_TILES + t] * factors;
        }
        [[unroll]] for (uint k = 0; k < KEYS / TK; ++k) {
            LEFT weights[QUERY_TILES];
            [[unroll]] for (uint i = 0; i < QUERY_TILES; ++i)
                coopMatLoad(weights[i], scores, i * TM * ROW + k * (TK / 8u), ROW, gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint t = 0; t < OWN_TILES; ++t) {
                RIGHT values_part;
                coopMatLoad(values_part, k_tile, k * TK * STRIDE + own_tile(t) * (TN / 8u), STRIDE,
                            gl_CooperativeMatrixLayoutRowMajor);
                [[unroll]] for (uint i = 0; i < QUERY_TILES; ++i)
                    sums[i * OWN_TILES + t] = coopMatMulAdd(weights[i], values_part, sums[i * OWN_TILES + t]);
            }
        }
        barrier();
        store(base + KEYS, to, ahead);
        barrier();
    }
    put_stats(own, splits.used);
    barrier();
    const uint results = gl_SubgroupID * TM * RESULT_ROW;
    [[unroll]] for (uint i = 0; i < QUERY_TILES; ++i)
        [[unroll]] for (uint t = 0; t < OWN_TILES; ++t) {
            meet();
            coopMatStore(sums[i * OWN_TILES + t], k_tile, results, RESULT_ROW, gl_CooperativeMatrixLayoutRowMajor);
            meet();
            if (has_tile(t)) put_matrix(results, i * TM, own_tile(t), splits.used);
        }
}
