// Sharing a run of layers out over several devices, by how fast each is and how much it has room for.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace redline {

struct LayerSize {
    uint64_t held = 0;  // bytes of weights and caches
    uint64_t read = 0;  // bytes that a step of one token reads
};

// How many of these layers each device has, in order: as near to its share of what is read as whole layers
// come, and no more than it has room for in bytes held. Where all devices together have no room, the last
// one gets what is left.
std::vector<uint32_t> share_out(std::span<const LayerSize> layers, std::span<const double> shares,
                                std::span<const uint64_t> room);

}  // namespace redline
