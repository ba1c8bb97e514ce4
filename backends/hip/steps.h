// What the files of kernels share: launch shapes, and launches that several ops need.
#pragma once

#include "executable.h"

#include <algorithm>

namespace redline::hip {

// Threads of a block, of kernels that have no reason for another number: as kernels/wave.h has it.
constexpr uint32_t kThreads = 128;
// Up to this many rows products go by vector, each weight read once for all of them; above it by tiles.
constexpr uint32_t kFewRows = 8;
// A grid longer than this gains nothing: its blocks take several rows each.
constexpr uint64_t kMostBlocks = 65535;

inline uint32_t blocks_for(uint64_t work, uint64_t per_block) {
    return uint32_t(std::clamp<uint64_t>((work + per_block - 1) / per_block, 1, kMostBlocks));
}

inline uint32_t power_of_two(uint32_t n) {
    uint32_t p = 1;
    while (p < n) p *= 2;
    return p;
}

// Blocks for `rows` rows of a matrix of which a wave owns `per_wave` at a time.
inline uint32_t row_blocks(uint64_t rows, uint32_t per_wave, const Device& device) {
    return blocks_for(rows, uint64_t(per_wave) * (kThreads / device.report().wave()));
}

// y = norm(x) over groups of `width`.
Status launch_norm(Launcher& launcher, const View& view, Slot x, const Norm& norm, uint32_t width, float* y);

// A product of rows with a weight: y (+)= w * x + bias.
struct Product {
    Weight w;
    const float* x;  // (rows, cols)
    float* y;        // (rows, rows of w)
    uint32_t rows = 1;
    uint32_t of_outputs = 0;
    Weight bias = {};
    bool accumulate = false;
};
Status launch_product(Launcher& launcher, const View& view, const Product& product);
args::LinearArgs linear_args(const View& view, const Product& product);

}  // namespace redline::hip
