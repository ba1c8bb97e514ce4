// How products with a weight are computed, and up to how many rows.
#pragma once

#include "backends/gpu/defaults.h"
#include "backends/shared/layout.h"
#include "plan/alike_rows.h"
#include "plan/backend.h"

#include <algorithm>

namespace redline::gpu {

// The most rows of a pass by vector, which reads each weight once for all of them.
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

// Up to so many rows a step's places (row, chosen expert) are computed one by one; above it they are sorted
// by expert for matrix units, so that each expert's matrix is read once for all its places. So few rows as go
// by vector are never sorted.
inline Default unsorted_rows(const DeviceClass& device, uint64_t experts, uint64_t used) {
    Default usual = default_of(kExpertDefaults, "unsorted_rows", device);
    const uint64_t first = (usual.value * experts + used - 1) / used;  // number of rows that is sorted
    usual.value = uint32_t(std::max<uint64_t>(kFewRows + 1, first)) - 1;
    return usual;
}
// The same as a choice of steps of some rows.
inline Default some_unsorted_rows(const DeviceClass& device, uint64_t experts, uint64_t used) {
    Default usual = unsorted_rows(device, experts, used);
    usual.value = std::min(usual.value, kFewTileRows);
    return usual;
}
// Places of a tile of an expert's, for so many places of all: the value of the choice "tile_tokens", or where
// that is 0 the fewest that most experts fill no more than once. `narrow`: the default.
constexpr uint32_t kNarrowPlaces = 32, kWidePlaces = 64;
inline uint32_t tile_places(uint32_t chosen, const Default& narrow, uint64_t places, uint64_t experts) {
    if (chosen > 0) return chosen;
    return places <= narrow.value * experts ? kNarrowPlaces : kWidePlaces;
}
// Steps of at most so many rows compute each row of a block of experts as if it were alone: so many hardly
// share experts.
inline Default rows_alone(const DeviceClass& device, uint64_t experts, uint32_t used) {
    Default usual = default_of(kExpertDefaults, "alone_rows", device);
    usual.value = std::clamp(uint32_t(experts / used), kFewRows, usual.value);
    return usual;
}

}  // namespace redline::gpu
