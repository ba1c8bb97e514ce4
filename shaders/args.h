// What kernels are told through push constants: one struct per kernel, read by GLSL and C++ alike. All
// members are 32 bits wide, so both lay them out the same.
#ifndef RL_SHADER_ARGS
#define RL_SHADER_ARGS
#ifdef __cplusplus
#include <cstdint>
namespace redline::vulkan::args {
using uint = uint32_t;
#endif

// As StepKind, for constants.
#define RL_STEP_ALONE 0
#define RL_STEP_PAGED 1
#define RL_STEP_SEVERAL 2
#define RL_STEP_MIXED 3  // of a mixed step the rows that are in no tile
#define RL_PAGE_ROWS 256u
#define RL_TILE_ROWS 16u  // as kTileRows

// How many rows a slot has in this step.
#define RL_ROWS_ALL 0
#define RL_ROWS_OUTPUTS 1

struct EmbedArgs {
    uint cols;
    uint units;      // of 32 elements in this part of the table
    uint first_row;  // of the table in this part
    uint part_rows;
    float scale;
};

struct NormArgs {
    uint width;   // elements normalised together
    uint groups;  // of that width per row
    uint rows_of;
    uint gains;  // groups that there is a gain of: all of a row, 1 for all the same, 0 for none
    float eps;
    uint act;  // of a gate
    float factor;  // of what is normalised
};

struct NormedSumArgs {
    uint rows_of;
    float first_eps;
    float second_eps;
    float eps;
    float scale;
};

#define RL_STEP
#define RL_BUFFER(type, name)
#define RL_GIVEN(name) uint name;
#include "../backends/gpu/plain_args.def"
#undef RL_STEP
#undef RL_BUFFER
#undef RL_GIVEN

struct EachArgs {
    uint width;
    uint rows_of;
    float values[4];
};

struct ExpertBiasArgs {
    uint width;
    uint experts;
    uint used;
    uint weighted;
};

struct ExpertFactorArgs {
    uint experts;
    uint used;
};

#define RL_GATE_SIGMOID 0u  // as GateOf
#define RL_GATE_SOFTPLUS 1u

#define RL_NO_STATE 0xFFFFFFFFu  // in place of the row of a state: zeros
#define RL_CONVOLVED_ROWS 32u    // of a sequence, that an invocation goes over
struct ConvolveArgs {
    uint width;
    uint silu;
    uint has_before;
    uint has_behind;
    uint has_bias;
};

struct ConvolveApartArgs {
    uint width;
    uint apart;  // rows from a tap to the next
    uint silu;
    uint has_before;
    uint has_behind;
};

// Of block_scores.comp, and of block_attention.comp.
struct BlockArgs {
    uint heads;
    uint kv_heads;
    uint head_dim;
    uint ratio;
    uint blocks;  // of a context, or most that are chosen
    uint capacity;
    uint sequence_rows;  // see cache_rows.glsl
    uint first_page;
    uint window;  // 0, and:
    uint chunks;
    uint first_row;  // of the step: rows first_row .. end_row - 1
    uint end_row;
    float scale;
    uint row_tokens;   // of the cache: 1, or ratio
    uint has_weights;  // scores of heads are weighted
};

#define RL_DELTA_COLUMNS 4u  // of the state, that invocations share
#define RL_DELTA_EPS 1e-6f   // DeltaNet::kEps
#define RL_DELTA_ROWS 8u     // that are taken at once
#define RL_DELTA_PAIRS 41u   // vec4 that delta_pairs.comp leaves of so many rows of a head
struct DeltaArgs {
    uint heads;
    uint key_heads;
    uint in_turns;
    uint first_row;  // of the step: rows first_row .. end_row - 1
    uint end_row;
};

struct ScanArgs {
    uint heads;
    uint groups;
    uint first_row;  // of the step: rows first_row .. end_row - 1
    uint end_row;
};

#define RL_BEST_SLICE 4096u  // entries that a work-group of best.comp picks from
struct BestArgs {
    uint count;    // that are picked of a slice
    uint merge;    // of what was picked before
    uint entries;  // of a row of either
};

struct RopeArgs {
    uint heads;
    uint head_dim;
    uint pairs;
    uint half_split;
    uint table;  // where this rope's rows begin, in floats
    uint first;  // element of a head that the turned ones begin with
};

struct StoreArgs {
    uint kv_heads;
    uint head_dim;
    uint capacity;
    uint sequence_rows;  // see cache_rows.glsl
    uint first_page;
};

struct LatentStoreArgs {
    uint rank;
    uint width;  // of a row
    uint capacity;
    uint sequence_rows;  // see cache_rows.glsl
    uint first_page;
    uint ratio;  // tokens of a row, of which the last stores
};

// How heads are turned, for constants: see turn_head.glsl.
#define RL_TURN_HEADS 1   // they are
#define RL_TURN_HALVES 2  // pairs lie half the turned elements apart
#define RL_TURN_Q_NORM 4
#define RL_TURN_K_NORM 8

struct RopeStoreArgs {
    uint heads;
    uint kv_heads;
    uint capacity;
    uint sequence_rows;  // see cache_rows.glsl
    uint first_page;
    uint pairs;  // of a head that are turned
    uint table;  // where this rope's rows begin, in floats
    float q_eps;
    float k_eps;
};

struct AttentionArgs {
    uint heads;
    uint kv_heads;
    uint capacity;
    uint sequence_rows;  // see cache_rows.glsl
    uint first_page;
    uint window;
    uint chunks;  // 1: windows are chunks
    uint splits;
    uint first_row;  // of the step, for long steps cut into several dispatches
    uint has_sinks;
    float scale;
    float softcap;
    uint first_stat;  // attention.comp: element of the partial results behind their sums
    uint hand_units;  // as in LinearArgs
    uint hand_normed;
    uint pairs;  // as in RopeStoreArgs, where heads are turned here
    uint table;
    float q_eps;
    float k_eps;
    float v_eps;  // above 0: values are normed here
};

// Of entry_attention.comp; the cache of tokens is as above.
struct BlockFewArgs {
    uint heads;
    uint kv_heads;
    uint capacity;
    uint sequence_rows;
    uint first_page;
    uint window;  // 0, and:
    uint chunks;
    uint splits;
    uint first_row;
    uint has_sinks;  // 0
    float scale;
    uint first_stat;
    uint ratio;  // tokens of a block
    uint most;   // blocks that are chosen
};
struct EntryArgs {
    uint heads;
    uint kv_heads;
    uint capacity;
    uint sequence_rows;
    uint first_page;
    uint window;
    uint chunks;  // 0
    uint splits;
    uint first_row;
    uint has_sinks;
    float scale;
    uint first_stat;
    uint entries_capacity;
    uint entries_page;  // as first_page
    uint ratio;         // tokens of an entry; 0: there are none
    uint most;          // that are chosen; 0: all are seen
};

struct LinearArgs {
    uint rows;  // of the weight in this part
    uint cols;
    uint units;      // of 32 elements in this part
    uint first_row;  // of the result that the part's first row gives
    uint stride;     // elements between rows of the result
    uint rows_of;
    uint has_bias;
    uint accumulate;
    uint act;
    uint first_token;
    uint has_norm;
    float eps;
    uint hand_units;   // of the row that is left for the next dispatch, see leave_row.glsl; 0: none is
    uint hand_normed;  // it is going to be normed
    uint function;     // of the result: one more than in Function, or 0 for none
};

// Arguments of linear_few.comp and gated_few.comp, named as above.
struct FewArgs {
    uint rows;
    uint cols;
    uint units;
    uint first_row;
    uint stride;
    uint rows_of;
    uint has_bias;
    uint accumulate;
    uint act;
    // Rows that were left as few_hands.glsl has them: the parts of one, and its norm; and those that are left here.
    uint taken_parts;
    uint has_norm;
    float eps;
    uint hand_normed;
    float hand_eps;
    uint hand_counter;
};

// A product for each head; rows of the weights are counted over all heads.
struct HeadArgs {
    uint rows;  // of one head
    uint cols;
    uint units;      // of 32 elements in this part
    uint flat_rows;  // rows in this part
    uint first_flat;
    uint first_token;
    uint rows_of;
    uint x_width;   // of a row
    uint x_stride;  // from a head to the next
    uint y_width;
    uint y_stride;
};

struct QuantizeArgs {
    uint width;
    uint rows_of;
    uint has_norm;
    float eps;
};

struct UnpackArgs {
    uint units;  // of 32 elements in this part
    uint first;  // of those that are unpacked
    uint count;
};

struct HalvesArgs {
    uint width;
    uint pieces;  // of that width per row
    uint rows_of;
    uint has_norm;
    float eps;
};

struct RouteArgs {
    uint experts;
    uint used;
    uint normalise;
    float scale;
    uint rows;  // of the router in this part
    uint cols;
    uint units;      // of 32 elements in this part
    uint first_row;  // of the router that the part's first row is
    uint first_token;
    uint groups;  // of work-groups that make a token's logits
    float eps;    // of the norm
    float factor;  // of what is normed
};

struct ExpertArgs {
    uint rows;  // of one expert
    uint cols;
    uint units;
    uint experts;
    uint used;
    uint first_flat;  // row of the first expert's first row in this part, over all experts
    uint flat_rows;   // rows in this part
    uint per_expert;
    uint weighted;
    uint act;
    uint first_token;
    uint has_bias;
    uint has_norm;
    float eps;
    uint function;  // as in LinearArgs
};

// Of one token's experts, whose weights are in one part.
struct ExpertRowArgs {
    uint units;  // of 32 elements in the weight
    uint experts;
    uint act;
    uint has_bias;
    uint has_norm;
    float eps;
    uint hand_units;  // as in LinearArgs
    uint hand_normed;
    uint normalise;  // as in RouteArgs, where they are chosen here
    float scale;
};

struct GroupArgs {
    uint experts;
    uint used;
    uint first_expert;  // of this dispatch
    uint most_tiles;
};

struct ExpertCoopArgs {
    uint rows;  // of one expert
    uint cols;
    uint units;
    uint used;
    uint first_flat;  // row of the first expert's first row in this part, over all experts
    uint flat_rows;   // rows in this part
    uint per_expert;
    uint first_tile;  // of this dispatch
    uint first_row;   // of an expert: rows first_row .. end_row - 1 of the product go to y
    uint end_row;
    uint stride;  // elements between entries of y
};

struct ExpertSumArgs {
    uint rows;       // summed by this dispatch
    uint first_row;  // of y that the first of them goes to
    uint stride;     // elements between rows of y
};

#ifdef __cplusplus
}  // namespace redline::vulkan::args
#endif
#endif
