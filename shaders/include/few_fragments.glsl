// Products of up to 64 tokens on matrix units, without shared memory between the weights and the matrices: an invocation
// reads whole units of weights and decodes them into those elements of a matrix that it holds, as the device said it does
// (fragments.h). The columns of a group of OWNERS units are dealt out so that each of the invocations that hold elements of
// the same row has one unit. A work-group has FM x TM rows and all tokens; its DEEP subgroups have groups in turn, and their
// sums are added up in order: it depends neither on the number of tokens nor on what the others are. Activations lie as
// prepare_halves.comp leaves them for BN tokens.
//   Wants what few_hands.glsl wants, half_units.glsl, and result(r, t, sum) or, with PAIRED, where the upper half of a
// work-group's rows are of a second matrix, result(r, t, sum, other), with r counted in the weight's part: it returns what it
// stored. Sums come scaled.
const uint FN = BN / TN, COLUMNS = TK / OWNERS;  // of a matrix that an invocation has
// A group is multiplied in rounds, so that few factors of weights are held at a time, where sums are many. On an H200 (8B
// Q4_K_M and F16, of one row's time) rounds and activations read ahead make it 4.9 and 2.7 at 64 rows, where it was 5.8 and
// 2.6, 2.9 and 1.56 at 32 (2.8 and 1.70), and 2.2 at 16 (2.0): so fewer rows go without both.
#ifdef FORMAT_FLOAT
const bool WHOLE = FN <= 2;
#else
const bool WHOLE = FN <= 4;
#endif
const uint EIGHTS = WHOLE ? 4 : COLUMNS > 8 ? COLUMNS / 8 : 1;  // columns of a round, by 8
const uint ROUNDS = 4 / EIGHTS, STEPS = EIGHTS * 8 / COLUMNS;     // matrices are multiplied so often in a round
const uint THREADS = DEEP * SUBGROUP;
const uint PIECES = 32 / PIECE, WORDS = PIECES * RAW;  // of a unit
#ifdef PAIRED
const uint PAIR = 2;
#else
const uint PAIR = 1;
#endif
const uint HIGH = FM / PAIR, PUTS = HIGH * FN;  // sums of so many matrices, or pairs, are put
const uint MATRIX = TM * TN, ALL_HELD = HELD * PAIR * MATRIX, EACH = (HELD * MATRIX + THREADS - 1) / THREADS;
shared float parts[DEEP * ALL_HELD];
uint tokens;
#include "few_hands.glsl"

const uint OWN_ROWS = FM * ROWS_EACH;  // of an invocation
uint first_units[OWN_ROWS];            // where they begin
struct Raw {
    uint d[OWN_ROWS][WORDS];
};
// A unit of each of an invocation's rows.
void fetch(uint unit, out Raw raw) {
    [[unroll]] for (uint i = 0; i < OWN_ROWS; ++i)
        [[unroll]] for (uint p = 0; p < PIECES; ++p) {
            uint words[RAW];
            fetch_piece(i / (HIGH * ROWS_EACH), (first_units[i] + unit) * PIECES + p, words);
            [[unroll]] for (uint k = 0; k < RAW; ++k) raw.d[i][p * RAW + k] = words[k];
        }
}
// Eights of activations, of a round, of each of an invocation's tokens in a matrix; `first` is the first of them.
struct Eights {
    uvec4 d[TOKENS_EACH][EIGHTS];
};
void fetch_tokens(uint group, uint round, uint first, uint owner, out Eights x) {
    [[unroll]] for (uint t = 0; t < TOKENS_EACH; ++t)
        [[unroll]] for (uint p = 0; p < EIGHTS; ++p)
            x.d[t][p] = halves[((group * 4u + round * EIGHTS + p) * BN + first + t * TOKEN_STEP) * OWNERS + owner];
}
// A row's unit as words of two halfs.
void decode(uint unit, uint raw[WORDS], out uint words[16]) {
    [[unroll]] for (uint p = 0; p < PIECES; ++p) {
        uint some[RAW];
        uvec4 decoded[PIECE / 8];
        [[unroll]] for (uint k = 0; k < RAW; ++k) some[k] = raw[p * RAW + k];
        piece_halves(unit * PIECES + p, some, decoded);
        [[unroll]] for (uint k = 0; k < PIECE / 2u; ++k) words[p * (PIECE / 2u) + k] = decoded[k / 4u][k % 4u];
    }
}
// The bits of `e` where `mask` has ones, side by side.
uint taken_bits(uint e, uint mask) {
    uint bits = 0u, next = 0u;
    [[unroll]] for (uint i = 0; i < 4; ++i)
        if ((mask >> i & 1u) != 0u) bits |= (e >> i & 1u) << next++;
    return bits;
}
#define FACTOR coopmat<float16_t, gl_ScopeSubgroup, TM, TK, gl_MatrixUseA>
#define TOKEN_FACTOR coopmat<float16_t, gl_ScopeSubgroup, TK, TN, gl_MatrixUseB>
#define SUMS coopmat<float, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator>

void few_products() {
    const uint place = gl_SubgroupInvocationID >> PLACE_SHIFT & PLACE_MASK;
    const uint owner = gl_SubgroupInvocationID >> OWNER_SHIFT & (OWNERS - 1u);
    const uint units = args.cols / 32u, groups = (units + OWNERS - 1u) / OWNERS;
    [[unroll]] for (uint i = 0; i < OWN_ROWS; ++i) {
        const uint row = (gl_WorkGroupID.x * HIGH + i / ROWS_EACH % HIGH) * TM + i % ROWS_EACH * ROW_STEP + place;
        first_units[i] = min(row, args.rows - 1u) * units;
    }
    SUMS sums[FM * FN];
    [[unroll]] for (uint i = 0; i < FM * FN; ++i) sums[i] = SUMS(0.0);
    uint group = gl_SubgroupID;
    Raw raw;
    fetch(min(min(group, groups - 1u) * OWNERS + owner, units - 1u), raw);
    Eights ahead;
    if (TAKES == 2u) take_rows();
    // Where tokens are few, those that are not there are the last one, whose bytes come anyway.
    const uint token_place = FN == 1u && TOKENS_EACH == 1u ? min(place, tokens - 1u) : place;
    if (!WHOLE) fetch_tokens(min(group, groups - 1u), 0u, place, owner, ahead);
    for (; group < groups; group += DEEP) {
        // Past the last column activations are zeros.
        const uint unit = min(group * OWNERS + owner, units - 1u), next_group = min(group + DEEP, groups - 1u);
        Raw next;
        fetch(min(next_group * OWNERS + owner, units - 1u), next);
        [[unroll]] for (uint round = 0; round < ROUNDS; ++round) {
            FACTOR w[FM * STEPS];
            [[unroll]] for (uint i = 0; i < FM; ++i) {
                uint words[ROWS_EACH][16];
                [[unroll]] for (uint j = 0; j < ROWS_EACH; ++j)
                    decode(first_units[i * ROWS_EACH + j] + unit, raw.d[i * ROWS_EACH + j], words[j]);
                [[unroll]] for (uint s = 0; s < STEPS; ++s) {
                    FACTOR factor;
                    [[unroll]] for (uint e = 0; e < ROWS_EACH * COLUMNS; ++e) {
                        const uint at = (round * STEPS + s) * COLUMNS + taken_bits(e, ~ROW_BITS);
                        factor[e] = unpackFloat2x16(words[taken_bits(e, ROW_BITS)][at / 2u])[at % 2u];
                    }
                    w[i * STEPS + s] = factor;
                }
            }
            [[unroll]] for (uint j = 0; j < FN; ++j) {
                Eights x;
                if (WHOLE) fetch_tokens(group, round, j * TN + token_place, owner, x);
                [[unroll]] for (uint t = 0; !WHOLE && t < TOKENS_EACH; ++t)
                    [[unroll]] for (uint p = 0; p < EIGHTS; ++p) x.d[t][p] = ahead.d[t][p];
                const uint next_round = j + 1u < FN ? round : (round + 1u) % ROUNDS;
                if (!WHOLE)
                    fetch_tokens(j + 1u < FN || round + 1u < ROUNDS ? group : next_group, next_round, (j + 1u) % FN * TN + place,
                                 owner, ahead);
                [[unroll]] for (uint s = 0; s < STEPS; ++s) {
                    TOKEN_FACTOR factor;
                    [[unroll]] for (uint e = 0; e < TOKENS_EACH * COLUMNS; ++e) {
                        const uint at = s * COLUMNS + taken_bits(e, ~TOKEN_BITS);
                        factor[e] = unpackFloat2x16(x.d[taken_bits(e, TOKEN_BITS)][at / 8u][at / 2u % 4u])[at % 2u];
                    }
                    [[unroll]] for (uint i = 0; i < FM; ++i)
                        sums[i * FN + j] = coopMatMulAdd(w[i * STEPS + s], factor, sums[i * FN + j]);
                }
            }
        }
        [[unroll]] for (uint i = 0; i < OWN_ROWS; ++i)
            [[unroll]] for (uint k = 0; k < WORDS; ++k) raw.d[i][k] = next.d[i][k];
    }
    // Every loop here has a constant count: see few_coop.glsl.
    [[unroll]] for (uint first = 0; first < PUTS; first += HELD) {
        [[unroll]] for (uint h = 0; h < HELD && first + h < PUTS; ++h)
            [[unroll]] for (uint p = 0; p < PAIR; ++p)
                coopMatStore(sums[p * PUTS + first + h], parts, gl_SubgroupID * ALL_HELD + (h * PAIR + p) * MATRIX, TM,
                             gl_CooperativeMatrixLayoutColumnMajor);
        barrier();
        [[unroll]] for (uint some = 0; some < EACH; ++some) {
            const uint n = some * THREADS + gl_LocalInvocationID.x, h = n / MATRIX, e = n % MATRIX;
            float all[PAIR];
            if (h >= HELD || first + h >= PUTS) continue;
            [[unroll]] for (uint p = 0; p < PAIR; ++p) {
                all[p] = 0.0;
                [[unroll]] for (uint d = 0; d < DEEP; ++d) all[p] += parts[d * ALL_HELD + (h * PAIR + p) * MATRIX + e];
            }
            const uint row = (gl_WorkGroupID.x * HIGH + (first + h) / FN) * TM + e % TM;
            const uint t = (first + h) % FN * TN + e / TM;
            if (row >= args.rows || t >= tokens) continue;
            const float scale = token_scale(t);
#ifdef PAIRED
            leave(row, t, result(row, t, all[0] * scale, all[1] * scale));
#else
            leave(row, t, result(row, t, all[0] * scale));
#endif
        }
        if (first + HELD < PUTS) barrier();
    }
    leave_rows();
}
