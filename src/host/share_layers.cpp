#include "host/share_layers.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace redline {

namespace {

// Each device takes layers up to its part of all that is read, or of its room; the last one takes the rest.
std::vector<uint32_t> in_order(std::span<const LayerSize> layers, std::span<const double> shares,
                               std::span<const uint64_t> room) {
    double all = 0.0;
    for (const LayerSize& layer : layers) all += double(layer.read);
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    std::vector<uint32_t> counts(shares.size());
    size_t layer = 0;
    double taken = 0.0, upto = 0.0;
    for (size_t device = 0; device < shares.size(); ++device) {
        const bool last = device + 1 == shares.size();
        upto += sum > 0.0 ? shares[device] / sum * all : 0.0;
        uint64_t held = 0;
        for (; layer < layers.size(); ++layer, ++counts[device]) {
            const auto read = double(layers[layer].read);
            held += layers[layer].held;
            if (!last && (taken + read / 2 > upto || held > room[device])) break;
            taken += read;
        }
    }
    return counts;
}

uint64_t held_by_last(std::span<const LayerSize> layers, const std::vector<uint32_t>& counts) {
    uint64_t held = 0;
    for (size_t i = layers.size() - counts.back(); i < layers.size(); ++i) held += layers[i].held;
    return held;
}

}  // namespace

std::vector<uint32_t> share_out(std::span<const LayerSize> layers, std::span<const double> shares,
                                std::span<const uint64_t> room) {
    std::vector<uint32_t> counts = in_order(layers, shares, room);
    if (held_by_last(layers, counts) <= room.back()) return counts;
    // The last device's part in layers that the others have room for beside their shares.
    std::vector<double> less(shares.begin(), shares.end());
    constexpr int kSteps = 64;
    for (int step = kSteps - 1; step >= 0; --step) {
        less.back() = shares.back() * step / kSteps;
        counts = in_order(layers, less, room);
        if (held_by_last(layers, counts) <= room.back()) return counts;
    }
    return counts;
}

}  // namespace redline
