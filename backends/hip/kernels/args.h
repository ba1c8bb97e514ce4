// What kernels are told: one struct per kernel, passed by value, read by host and device code alike.
#pragma once

#include "cache_args.h"  // tests include this file without the kernels' folder
#include "hand_args.h"

#include <cstddef>
#include <cstdint>

namespace redline::hip::args {

// What varies per token: backends/shared/step_inputs.h.
struct Step {
    uint32_t rows;
    uint32_t position;  // of the first row
    uint32_t first_output;
    uint32_t outputs;
    uint32_t best_among;
    uint32_t output_rows;  // words from here to the list of rows that have an output; 0: from first_output on
    uint32_t places, pages;
    uint32_t segments;  // sequences that have rows
    uint32_t states;
    uint32_t row_states;  // words from here to the states behind rows, see state_behind(); 0: none are kept
    uint32_t tiles;
    uint32_t tile_count;  // of a mixed step
    uint32_t lone_rows;   // likewise: so many from the first on are in no tile
    uint32_t unused[50];
};
static_assert(sizeof(Step) == 256);

// Of a row, where caches have pages.
struct Place {
    uint32_t position;
    uint32_t list;  // where its sequence's pages begin in Cache::pages
};

// Rows of a mixed step, of one sequence, that share what is read of its keys.
struct RowTile {
    uint32_t first_row, end_row;
};

// Of a sequence that has rows in the step: where its states were, and where they will be.
struct SegmentState {
    uint32_t first_row, rows;
    uint32_t from;  // kZeroState: they are zeros
    uint32_t to;
};
constexpr uint32_t kZeroState = UINT32_MAX;

// A weight in planes, as backends/shared/layout.h lays it out.
struct Matrix {
    const uint8_t* data;
    uint64_t units;  // of 32 elements in the whole weight: where planes begin follows from it
};

// Bytes that the planes of a quantized weight have per eight units.
struct Planes {
    uint32_t bytes[4];
    constexpr uint32_t before(uint32_t plane) const {
        uint32_t sum = 0;
        for (uint32_t p = 0; p < plane; ++p) sum += bytes[p];
        return sum;
    }
    constexpr uint32_t all() const { return before(4); }
};

// How kernels/stream.h copies rows ahead: each wave has a ring of stages, which hold so many units of each of
// its matrices.
struct StreamShape {
    uint32_t units;
    uint32_t stages;
    uint32_t stage_bytes;
};
constexpr StreamShape stream_shape(uint32_t bytes_per_eight, uint32_t matrices) {
    constexpr uint32_t kRoom =
        4736;  // of a wave: two blocks of 16 with their rows shall fit a multiprocessor
    // Each matrix begins where 16 bytes can be copied.
    const auto bytes = [&](uint32_t units) {
        return (units / 8 * bytes_per_eight + 15) / 16 * 16 * matrices;
    };
    // Few bytes come in longer stages: a wave waits, copies and finds its rows once per stage.
    uint32_t units = 16 * bytes_per_eight * matrices * 4 <= kRoom ? 256 : 128;
    do units /= 2;
    while (bytes(units) * 2 > kRoom && units > 8);
    const uint32_t fit = kRoom / bytes(units);
    return {units, fit < 4 ? fit : 4, bytes(units)};
}

// backends/shared/best.h.
constexpr uint32_t kBestSlice = 4096;
struct BestArgs {
    const Step* step;
    const void* from;  // outputs, or with `merge` what was picked before: words of a float and of an id
    void* to;
    uint32_t count;  // that a block picks
    uint32_t merge;
    uint32_t entries;  // of a row in `from`
};

struct EmbedArgs {
    const Step* step;
    Matrix table;
    float* y;
    uint32_t rows;  // of the table
    uint32_t cols;
    float scale;
};

struct NormArgs {
    const Step* step;
    const float* x;
    float* y;
    const float* gain;  // null: none
    uint32_t width;     // elements normalised together
    uint32_t groups;    // of that width per row
    uint32_t of_outputs;
    float eps;
    float factor;       // of what is normalised
    uint32_t act;       // of the gate
    const float* gate;  // or null
    uint32_t gains;     // groups that the gain is of: all of a row, or 1
};

struct NormedSumArgs {
    const Step* step;
    const float* first;
    const float* second;
    const float* first_gain;
    const float* second_gain;
    const float* gain;
    float* y;
    uint32_t width;
    uint32_t of_outputs;
    float first_eps;
    float second_eps;
    float eps;
    float scale;
};

struct EachArgs {
    const Step* step;
    const float* x;  // or the column
    const float* z;
    float* y;
    uint32_t width;
    uint32_t of_outputs;
    float values[4];
};

constexpr uint32_t kGateSigmoid = 0, kGateSoftplus = 1;

struct ConvolveArgs {
    const Step* step;
    const SegmentState* states;
    const float* x;
    float* y;
    const float* w;       // (width, taps)
    float* state;         // rows of (taps - 1, width)
    const float* before;  // null: 1
    const float* behind;
    const float* bias;  // null: none
    uint32_t width;
    uint32_t silu;
};
struct ConvolveApartArgs {
    ConvolveArgs convolve;  // whose state has (taps - 1) * apart rows
    uint32_t taps;
    uint32_t apart;  // rows from a tap to the next
};

constexpr uint32_t kConvolvedRows = 32;  // of a sequence, that a thread goes over

struct ScanArgs {
    const Step* step;
    const SegmentState* states;
    const float* x;
    const float* steps;
    const float* a;
    const float* step_bias;
    const float* through;
    float* y;
    float* state;  // rows of (heads, head_dim, state_dim)
    uint32_t heads;
    uint32_t groups;
    uint32_t head_dim;
    uint32_t state_dim;
    uint32_t first_row;  // of the step: rows first_row .. end_row - 1
    uint32_t end_row;
};

struct ExpertFactorArgs {
    const Step* step;
    const float* factor;  // (experts)
    const int32_t* ids;
    float* scales;
    uint32_t experts;
    uint32_t used;
};

struct ExpertBiasArgs {
    const Step* step;
    const float* bias;  // (experts, width)
    float* y;
    const int32_t* ids;
    const float* scales;  // null: not weighted
    uint32_t width;
    uint32_t experts;
    uint32_t used;
};

struct LinearArgs {
    const Step* step;
    Matrix w;
    Matrix up;          // gated kernels only
    const float* x;     // (tokens, cols)
    float* y;           // (tokens, rows)
    const float* bias;  // null: none
    uint32_t rows;
    uint32_t cols;
    uint32_t first_token;  // of the step, for long steps cut into several launches
    uint32_t of_outputs;
    uint32_t accumulate;
    uint32_t act;
};

// A product for each head, with weights of (heads, rows, cols).
struct HeadArgs {
    const Step* step;
    Matrix w;
    const float* x;  // (tokens, x_width)
    float* y;        // (tokens, y_width)
    uint32_t heads;
    uint32_t rows;
    uint32_t cols;
    uint32_t x_width;
    uint32_t x_stride;  // from a head to the next
    uint32_t y_width;
    uint32_t y_stride;
    uint32_t first_token;  // of the step, for long steps cut into several launches
    uint32_t of_outputs;
};

// One of the matrices that share their activations.
struct DotPart {
    Matrix w;
    float* y;           // (tokens, rows)
    const float* bias;  // null: none
    uint32_t rows;
};

// The experts that one row goes to, where a product is with their matrices.
struct Chosen {
    const int32_t* ids;   // (rows of the step, used)
    const float* scales;  // likewise; null: not weighted
    uint32_t experts;
    uint32_t used;
    uint32_t rows;      // of one expert
    uint32_t per_unit;  // 2^31 / units of a row, rounded up
};

// The expert that every row goes to beside those that are chosen: its results are behind theirs, and so are
// its activations of the sum.
struct SharedExpert {
    Matrix w;            // gate, or of the sum the only one
    Matrix up;           // gate and up only
    float* y;            // (rows), gate and up only
    const float* scale;  // of the sum: what it counts for each row of the step; null: 1
    uint32_t units;      // of the sum: of a row of its matrix
};

// How experts are chosen by a router's logits.
struct RouteArgs {
    const Step* step;
    const float* logits;
    const float* bias;  // null: none
    int32_t* ids;
    float* scales;
    uint32_t bias_of_logits;
    uint32_t experts;
    uint32_t used;
    uint32_t gating;
    uint32_t normalise;
    float scale;
    uint32_t groups;  // of experts
    uint32_t groups_used;
    uint32_t by_two;
    const float* table;   // (tokens, used): experts by token; null: the best
    float* shared_scale;  // of each row: becomes the sigmoid of the logit behind the experts'; null: none is
    uint32_t apart;       // from the logits of a row to those of the next
};
constexpr uint32_t kMostExperts = 1024;
constexpr uint32_t kMostGroups = 256;
constexpr uint32_t kMostUsed = 64;
constexpr uint32_t kRouteBytes = 10 << 10;  // of shared memory, as kernels/route.h needs it

// Kernels of experts compute the rows of a step each as if it were alone: a row for each y of the grid. So
// far a row is from the next, in floats, and where it is left or taken as int8 in bytes.
struct RowsApart {
    uint32_t x, y, shared_y, left;
};

// Products in int8. The grid's blocks take or quantize one row, or several were prepared.
struct DotArgs {
    const Step* step;
    DotPart parts[4];   // of a gated kernel the second is `up`
    uint32_t begin[4];  // the first row of each among the rows of all; of those not there beyond all
    uint32_t rows;      // of all
    const float* x;     // (tokens, cols)
    // (tokens, cols / 32) of kDotUnitBytes, or a row that was left; null: blocks make it.
    const void* prepared;
    const float* gain;  // null: no norm
    float eps;
    uint32_t cols;
    uint32_t first_token;
    uint32_t of_outputs;
    uint32_t accumulate;
    uint32_t act;
    HandOver hand;        // one row only
    uint32_t second;      // of kernels of two formats: the first row of the second
    Chosen chosen;        // of kernels of experts
    SharedExpert shared;  // of those that have it as well
    RowsApart apart;      // likewise
    // Of the first product with experts: its blocks choose, and one writes what is chosen. Without logits it
    // is chosen already.
    RouteArgs choice;
};
constexpr uint32_t kDotUnitBytes = 48;  // codes of 32 activations, their scale and sums

// Activations for kernels of many or several tokens.
struct PrepareArgs {
    const Step* step;
    const float* x;
    const float* gain;  // null: no norm
    void* to;           // units of kDotUnitBytes, halfs, or int8
    float* row_scales;  // with halfs: what a row of them is to be multiplied by; with int8: TileArgs
    uint32_t cols;
    uint32_t per_token;  // rows of x that a token has
    uint32_t of_outputs;
    float eps;
    uint32_t tokens;  // for kernels/few.h: of its tiles
};

// Products on matrix units.
struct TileArgs {
    const Step* step;
    DotPart parts[4];   // of a gated kernel the second is `up`
    uint32_t begin[4];  // the first tile of rows of each; of those not there beyond all
    // (tokens, cols), halfs or for kernels/byte_tile.h int8; for kernels/few.h as prepare_few() lays them
    // out.
    const uint16_t* halves;
    const float* row_scales;  // for kernels/byte_tile.h (tokens, cols / 32, 2): of each unit scale and sum
    uint32_t cols;
    uint32_t first_token;
    uint32_t of_outputs;
    uint32_t accumulate;
    uint32_t act;
    uint32_t tiles;  // of rows, for kernels/few.h
    // For kernels/tile.h: blocks that share a tile's columns, what each has of them, and where they leave
    // sums.
    uint32_t shares;
    uint32_t share;
    uint32_t token_tiles;
    float* partials;
    uint32_t* counters;  // zeros, one of each tile; blocks leave zeros behind
};

struct ExpertArgs {
    const Step* step;
    Matrix w;
    Matrix up;  // gated kernels only
    const float* x;
    float* y;
    const int32_t* ids;
    const float* scales;   // null: not weighted
    const float* bias;     // (experts, rows); null: none
    const float* up_bias;  // gated kernels only
    uint32_t rows;         // of one expert
    uint32_t cols;
    uint32_t experts;
    uint32_t used;
    uint32_t first_token;
    uint32_t per_expert;
    uint32_t act;
};

// The places (token, one of its experts) in the order of their experts.
struct Groups {
    int32_t* places;   // (tokens * used): those of expert 0, then those of expert 1, ...
    uint32_t* begin;   // (experts)
    uint32_t* counts;  // (experts)
};

struct GroupArgs {
    const Step* step;
    const int32_t* ids;  // (tokens, used)
    Groups groups;
    uint32_t experts;
    uint32_t used;
};

// Products of the places of each expert with its matrix, on matrix units.
struct ExpertTileArgs {
    const Step* step;
    Matrix w;
    Matrix up;  // gated kernels only
    Groups groups;
    const uint16_t* halves;  // (tokens, cols), or (places, cols); also int8, as in TileArgs
    const float* row_scales;
    float* y;              // (places, rows)
    const float* bias;     // (experts, rows); null: none
    const float* up_bias;  // gated kernels only
    uint32_t rows;         // of one expert
    uint32_t cols;
    uint32_t used;
    uint32_t first_row;  // for long steps cut into several launches
    uint32_t per_expert;
    uint32_t act;
};

// y[t] += the sum over places of scales * x[place].
struct GatherArgs {
    const Step* step;
    const float* x;       // (places, width)
    const float* scales;  // (tokens, used)
    float* y;             // (tokens, width)
    uint32_t width;
    uint32_t used;
};

// Of one row.
struct RouteRowArgs {
    RouteArgs choice;
    Matrix w;
    Matrix shared;  // one more row, of the router of a shared expert; without data: none
    const float* x;
    const float* gain;  // null: no norm
    float* logits;      // those of `choice`
    uint32_t* counter;  // zero: of blocks that are done; null: who takes the logits chooses
    uint32_t cols;
    float eps;
    float factor;  // of what is normed
};

struct RopeArgs {
    const Step* step;
    const float* table;  // per row `pairs` cosines, then `pairs` sines
    float* x;
    uint32_t heads;
    uint32_t head_dim;
    uint32_t pairs;
    uint32_t half_split;
    uint32_t first;  // element of a head that the turned ones begin with
};

struct StoreArgs {
    const Step* step;
    const float* k;
    const float* v;
    Cache cache;
};

struct LatentStoreArgs {
    const Step* step;
    const float* latent;  // (rows, rank)
    const float* key;     // (rows, the rest of the cache's rows)
    Cache cache;
    uint32_t rank;
    uint32_t ratio;  // tokens of a row, of which the last stores
};

// How heads are normed and turned.
struct Turn {
    const float* table;   // per row: cosines, then sines
    const float* q_gain;  // null: no norm
    const float* k_gain;
    uint32_t pairs;
    uint32_t half_split;
    float q_eps;
    float k_eps;
};

struct RopeStoreArgs {
    const Step* step;
    float* q;
    float* k;
    const float* v;
    Turn turn;
    Cache cache;
    uint32_t heads;
};
constexpr uint32_t kMostHeadDim = 512;

struct AttentionArgs {
    const Step* step;
    const float* q;
    float* y;
    const float* sinks;  // null: none
    float* partials;     // with several splits: per (row, head, split) weighted values, then maxima and sums
    uint32_t*
        counters;  // zeros: of splits that are done, by what a block works at; blocks leave zeros behind
    Cache cache;
    uint32_t rows;  // of the class of steps: at most so many
    uint32_t heads;
    uint32_t window;
    uint32_t chunks;  // 1: windows are chunks
    uint32_t splits;
    uint32_t groups;      // of queries: blocks along y
    uint32_t row_groups;  // of each row, or tile of rows, where they may be of several sequences; else 0
    uint32_t first_row;   // of the step, or its first tile, for long steps cut into several launches
    float scale;
    float softcap;
    const RowTile* tiles;  // of a mixed step, on matrix units
    uint32_t lone;         // 1: of a mixed step the rows that are in no tile
    HandOver hand;         // one row only
    LeftHalfs left;        // of several; each head leaves a part of a row
    // One row only: its queries are still to be turned, and so is its key, which goes to the cache with its
    // value.
    Turn turn;  // table null: all is done
    const float* k;
    const float* v;
};

// Products of matrices that stay in registers, to measure the machine by.
struct PeakArgs {
    float* out;  // a number per thread: the mean of its sums
    uint32_t rounds;
    uint32_t varied;  // 0: all factors are one; 1: as good as random
};

}  // namespace redline::hip::args
