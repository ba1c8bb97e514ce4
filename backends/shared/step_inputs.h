// The inputs of a step as backends with device memory send them: a header, the tokens, where caches have
// pages the rows' places and the lists of pages, where they have states those of each sequence, the rope
// tables, and what an Input and a Lookup take. Kernels see them as StepBuffer in shaders/include/step.glsl,
// args::Step in backends/hip/kernels/args.h.
#pragma once

#include "plan/step_params.h"

namespace redline {

struct StepHeader {
    uint32_t rows;
    uint32_t position;      // of the first row
    uint32_t first_output;  // rows from it on have one
    uint32_t outputs;
    uint32_t best_among;
    // Words from the header's beginning on; 0: there is none.
    uint32_t output_rows;  // where the list of rows that have an output begins
    uint32_t places;       // the StepPlace of each row
    uint32_t pages;        // the lists of pages
    uint32_t segments;     // how many StepState there are: sequences that have rows
    uint32_t states;       // where they begin
    uint32_t row_states;   // for each row the row of states that gets those behind it, or kZeroState: none
    uint32_t tiles;        // the StepTiles of a mixed step
    uint32_t tile_count;
    uint32_t lone_rows;  // of a mixed step: so many from the first on are in no tile
    uint32_t unused[50];
};
static_assert(sizeof(StepHeader) == 256);

struct StepPlace {
    uint32_t position;  // of the row in its sequence
    uint32_t list;      // where the sequence's pages begin among all lists
};

// Of a sequence that has rows in the step, where the plan has caches of states.
struct StepState {
    uint32_t first_row, rows;
    uint32_t from;  // the row of caches of states that has its states; kZeroState: they are zeros
    uint32_t to;    // the row that gets them
};
constexpr uint32_t kZeroState = UINT32_MAX;

// Rows of a mixed step, of one sequence and at most kTileRows, that share what is read of its keys. The first
// sequences of a step have none while they have at most kLoneRows rows.
struct StepTile {
    uint32_t first_row, end_row;
};
constexpr uint32_t kTileRows = 16;

// Where the parts of a step's inputs begin, in bytes, for steps of a kind and at most so many rows.
struct StepLayout {
    StepLayout(const Plan& plan, uint32_t rows, StepKind kind);
    void write(const Plan& plan, const StepParams& params, std::byte* to) const;

    // Sequences that a step of the kind has at most.
    static uint32_t most_segments(const Plan& plan, uint32_t rows, StepKind kind);
    // Tiles that a mixed step has at most.
    static uint32_t most_tiles(const Plan& plan, uint32_t rows);
    // Rows of it that are in no tile, at most.
    static uint32_t most_lone(const Plan& plan, uint32_t rows);

    StepKind kind;
    uint64_t output_rows = 0, places = 0, pages = 0;  // not of a sequence alone
    uint64_t tiles = 0;                               // of a mixed step
    std::vector<uint64_t> ropes;                      // per rope: of each row cosines, then sines
    uint64_t states = 0, row_states = 0;              // 0: the plan has none
    uint64_t input = 0, lookups = 0;
    uint64_t bytes = 0;

private:
    void write_states(const StepParams& params, std::byte* to) const;
    void write_tiles(const StepParams& params, StepHeader& header, std::byte* to) const;
    void write_places(const Plan& plan, const StepParams& params, std::byte* to) const;
};

}  // namespace redline
