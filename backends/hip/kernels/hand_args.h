// How a launch leaves its results for the one that takes them, in the form in which that one multiplies them.
#pragma once

#include <cstdint>

namespace redline::hip::args {

// Where a launch leaves its row of results in int8 for the one that takes it, as kernels/row.h lays it out.
struct HandOver {
    void* row;          // null: nowhere
    const float* gain;  // of the norm of who takes it; null: no norm
    uint32_t units;     // of the row
};
constexpr uint32_t kHandedUnitBytes = 56;

// Rows of a step of few tokens, as halfs: what comes later is multiplied by what its norm would have divided
// by, so that each block can leave its part of a row before the others are done.
constexpr uint32_t kMostHanded = 16;  // tokens of a tile of kernels/few.h

// This is known of each part of a token's row: 16 columns of a product, or a head of an attention.
struct Reach {
    float squares;  // the sum of its elements' squares, before the gain
    float most;     // the largest of its halfs before they were scaled, either way
};

// Where a launch leaves them.
struct LeftHalfs {
    uint16_t* halfs;    // null: nowhere; (tokens, width) as few_eight() has them
    Reach* reaches;     // (tokens, parts)
    const float* gain;  // of the norm of who takes them; null: no norm
    uint32_t tokens;    // of the tile that they are laid out for
};

// Who takes them.
struct TakenHalfs {
    const Reach* reaches;  // null: they are not what a launch left
    uint32_t parts;        // of a row
    const float* x;        // (tokens, cols): what the halfs were made of
    const float* gain;     // null: no norm
    float eps;
};

}  // namespace redline::hip::args
