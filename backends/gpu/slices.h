// Work cut into slices, so that no launch alone keeps the device busy for long.
#pragma once

#include "base/result.h"

#include <algorithm>

namespace redline::gpu {

constexpr double kMostTiles = 1e6;  // of a slice

// How much of what costs `flops` for each goes into a launch that may cost `most_flops`: whole tiles, as many
// as fit, at least one.
inline uint32_t slice_of(double most_flops, double flops, uint32_t tile = 1, double most_tiles = kMostTiles) {
    return uint32_t(std::max(1.0, std::min(most_flops / flops / tile, most_tiles))) * tile;
}

// cut(first, count) for each slice of `each`. The first error ends it.
template <typename Cut>
Status in_slices(uint32_t all, uint32_t each, const Cut& cut) {
    for (uint32_t first = 0; first < all; first += each) RL_TRY(cut(first, std::min(each, all - first)));
    return {};
}

// Likewise for slices that fit a launch of the encoder: a Launcher or a Recorder.
template <typename Encoder, typename Cut>
Status in_slices(const Encoder& encoder, uint32_t all, double flops, uint32_t tile, const Cut& cut,
                 double most_tiles = kMostTiles) {
    return in_slices(all, slice_of(encoder.flops_per_slice(), flops, tile, most_tiles), cut);
}

}  // namespace redline::gpu
