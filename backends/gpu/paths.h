// How products with a weight are computed, and up to how many rows.
#pragma once

#include "backends/shared/layout.h"
#include "plan/alike_rows.h"
#include "plan/backend.h"

#include <algorithm>

namespace redline::gpu {

// Up to this many rows products go by vector, each weight read once for all of them; above it by tiles.
constexpr uint32_t kFewRows = 8;
// Up to this many rows products on matrix units can go at the pace of the weights: Path::few.
constexpr uint32_t kMostFew = 64;
// Up to this many a tile has all rows, so that each element of a weight is decoded once anyway.
constexpr uint32_t kFewTileRows = 128;
// Kernels take other values of choices where they go other ways.
static_assert(row_class_of(kFewRows) == RowClass::few && row_class_of(kFewRows + 1) == RowClass::some);
static_assert(row_class_of(kFewTileRows) == RowClass::some &&
              row_class_of(kFewTileRows + 1) == RowClass::many);
static_assert(kLoneRows == kFewRows && kFewAlike == kFewRows);
// A number of rows of each class, with which all ways of the class can be met.
constexpr uint64_t rows_in(RowClass rows) {
    constexpr uint64_t kRows[] = {1, kFewRows, kMostFew, kFewTileRows + 1};
    return kRows[size_t(rows)];
}

enum class Path : uint8_t {
    floats,        // few rows, activations in f32
    floats_own,    // likewise, normed by each work-group itself; HIP: of one row
    dot_own,       // one row, quantized to int8 by each work-group itself, or left in it
    dot_prepared,  // few rows, quantized to int8 beforehand
    few,           // up to kMostFew rows, halfs on matrix units, at the pace of the weights
    tiles,         // many rows, in f32
    matrices,      // many rows, halfs on matrix units
    // Vulkan alone:
    halves,    // likewise, the weight is halfs
    unpacked,  // likewise, the weight is decoded to halfs in scratch first
    bfloats,   // many rows, in bfloat16, which the weight is
    // Both: many rows, int8 on matrix units; codes of weights, and activations quantized beforehand.
    int8_matrices,
};
inline bool on_matrices(Path path) {
    return path == Path::few || path == Path::matrices || path == Path::halves || path == Path::unpacked ||
           path == Path::bfloats;
}

inline Precision precision_of(Path path, const Format& format) {
    if (path == Path::dot_own || path == Path::dot_prepared) return {.activations = to_int8(16)};
    if (path == Path::int8_matrices) return {.activations = to_int8(32)};
    if (path == Path::bfloats) return {.activations = kToBfloat};
    // Rows that another kernel leaves are scaled by a number that is the same for all.
    if (path == Path::few) return {.weights = rounding_to_halves(format), .activations = to_half(-5)};
    if (on_matrices(path)) return {.weights = rounding_to_halves(format), .activations = to_half(9)};
    return {};
}

// True where a step's places (row, chosen expert) are sorted by expert for matrix units, so that each
// expert's matrix is read once for all its places; else places are computed one by one. So few rows as go by
// vector are never sorted. HIP sorts all others; Vulkan those whose experts have a place each on average:
// there, places one by one read 1.6 times the bytes. With two, 24 rows of Qwen3-30B-A3B took 14.2 ms on an
// H200, and 32 rows, which were sorted, 11.3.
constexpr uint32_t kHipPlaces = 0, kVulkanPlaces = 1;
inline bool sorts_experts(uint64_t rows, uint64_t used, uint64_t experts, uint32_t least_places) {
    return rows > kFewRows && rows * used >= least_places * experts;
}
// Steps of at most so many rows compute each row of a block of experts as if it were alone: so many hardly
// share experts. On an H200 32 rows of Qwen3.5-35B-A3B take 12.9 ms alone, and 23.7 sorted (HIP).
inline uint32_t rows_alone(uint64_t experts, uint32_t used) {
    constexpr uint32_t kMost = 32;
    return std::clamp(uint32_t(experts / used), kFewRows, kMost);
}

}  // namespace redline::gpu
