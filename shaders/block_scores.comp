// for each cache of latents
// y[t][b] = the sum over heads of weights[h] * max(q[h] . key of block b, 0), of the complete blocks that t sees, 0 for others.
// The key lies in the row of the block's last token. A work-group per row and tile of blocks; a quarter of its invocations has
// each an own share of the heads, and each invocation two keys. Elements come a stretch at a time through shared memory.
#include "types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 256;
layout(constant_id = 1) const uint STEP_KIND = RL_STEP_ALONE;
layout(constant_id = 2) const uint HEADS = 8;  // of a share, at a time: 2 or 8
layout(push_constant) uniform Push { BlockArgs args; };
layout(set = 0, binding = 0, std430) readonly buffer Q { float q[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { float y[]; };
#define STEP_BINDING 2
#define KEYS_BINDING 3
#define VALUES_BINDING 3
#include "step.glsl"
#define CACHE_READS
#include "cache_rows.glsl"
#include "cache.glsl"
layout(set = 0, binding = 4, std430) readonly buffer Weights { float weights[]; };

const uint SHARES = 4, LANES = THREADS / SHARES, KEYS = 2 * LANES;
const uint FOURS = 8, STRIDE = 4 * FOURS + 1;  // of the elements of a stretch; so that lanes read from different banks
shared vec4 queries[SHARES * 8 * FOURS];
shared float elements[KEYS * STRIDE];
shared float shares[SHARES * KEYS];
shared uint places[KEYS];  // of the keys in the cache

vec4 key_four(uint key, uint first) {
    if (args.head_dim % 4u == 0u) return first < args.head_dim ? key4_at(places[key], args.head_dim, first / 4u) : vec4(0.0);
    vec4 four = vec4(0.0);
    [[unroll]] for (uint e = 0; e < 4; ++e)
        if (first + e < args.head_dim) four[e] = key_at(places[key], args.head_dim, first + e);
    return four;
}

// Elements from `first` on of all keys, and of the queries from `head` on; zeros behind the last.
void share_stretch(uint row, uint head, uint first) {
    for (uint i = gl_LocalInvocationID.x; i < KEYS * FOURS; i += THREADS) {
        const vec4 four = key_four(i / FOURS, first + i % FOURS * 4u);
        [[unroll]] for (uint e = 0; e < 4; ++e) elements[i / FOURS * STRIDE + i % FOURS * 4u + e] = four[e];
    }
    for (uint i = gl_LocalInvocationID.x; i < SHARES * HEADS * FOURS; i += THREADS) {
        const uint own = head + i / FOURS, element = first + i % FOURS * 4u;
        vec4 four = vec4(0.0);
        [[unroll]] for (uint e = 0; e < 4; ++e)
            if (own < args.heads && element + e < args.head_dim)
                four[e] = q[(row * args.heads + own) * args.head_dim + element + e];
        queries[i] = four;
    }
}

// Adds what the heads from `head` on give to the sums of an invocation's keys.
void add_scores(uint row, uint head, inout float sums[2]) {
    const uint share = gl_LocalInvocationID.x / LANES, lane = gl_LocalInvocationID.x % LANES;
    float products[2][8];
    [[unroll]] for (uint h = 0; h < 8; ++h) products[0][h] = products[1][h] = 0.0;
    for (uint first = 0; first < args.head_dim; first += 4u * FOURS) {
        barrier();  // places are there, and the stretch before is done
        share_stretch(row, head, first);
        barrier();
        for (uint four = 0; four < FOURS; ++four) {
            vec4 keys[2];
            [[unroll]] for (uint k = 0; k < 2; ++k) {
                const uint at = (k * LANES + lane) * STRIDE + four * 4u;
                keys[k] = vec4(elements[at], elements[at + 1u], elements[at + 2u], elements[at + 3u]);
            }
            [[unroll]] for (uint h = 0; h < 8; ++h)
                if (h < HEADS) {
                    const vec4 query = queries[(share * HEADS + h) * FOURS + four];
                    [[unroll]] for (uint k = 0; k < 2; ++k) products[k][h] += dot(query, keys[k]);
                }
        }
    }
    [[unroll]] for (uint h = 0; h < 8; ++h) {
        const uint own = head + share * HEADS + h;
        if (h >= HEADS || own >= args.heads) continue;
        const float weight = args.has_weights != 0u ? weights[row * args.heads + own] : 1.0;
        [[unroll]] for (uint k = 0; k < 2; ++k)
            sums[k] += weight * (products[k][h] < 0.0 ? 0.0 : products[k][h]);  // lets NaN through
    }
}

// Into shares, of the keys of blocks from `first` on.
void score_keys(uint row, uint first, uint complete) {
    const uint tid = gl_LocalInvocationID.x;
    for (uint i = tid; i < KEYS; i += THREADS) {
        const uint block = min(first + i, complete - 1u);
        places[i] = row_of((block + 1u) * args.ratio - 1u) / args.row_tokens;
    }
    float sums[2] = {0.0, 0.0};
    for (uint head = 0; head < args.heads; head += SHARES * HEADS) add_scores(row, head, sums);
    [[unroll]] for (uint k = 0; k < 2; ++k) shares[tid / LANES * KEYS + k * LANES + tid % LANES] = sums[k];
    barrier();
}

void main() {
#ifdef CACHE_COUNTED
    cache_tokens = args.capacity;
#endif
    const uint tiles = (args.blocks + KEYS - 1u) / KEYS, end = min(args.end_row, step_rows) * tiles;
    for (uint n = args.first_row * tiles + gl_WorkGroupID.x; n < end; n += gl_NumWorkGroups.x) {
        const uint row = n / tiles, first = n % tiles * KEYS;
        const uint token = STEP_KIND == RL_STEP_ALONE ? step_position + row : step_word(step_places + 2u * row);
        const uint complete = min((token + 1u) / args.ratio, args.blocks);
        begin_keys(row, 0u);
        if (first < complete) score_keys(row, first, complete);
        for (uint i = gl_LocalInvocationID.x; i < min(KEYS, args.blocks - first); i += THREADS) {
            float sum = 0.0;
            for (uint share = 0; share < SHARES && first + i < complete; ++share) sum += shares[share * KEYS + i];
            y[row * args.blocks + first + i] = sum;
        }
        barrier();
    }
}
