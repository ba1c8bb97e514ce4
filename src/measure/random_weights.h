// Random weights in any format: random codes with scales of a plausible size, so that products are neither
// all zero nor out of range. Seeded by the caller.
#pragma once

#include "formats/format.h"

#include <cstring>
#include <random>
#include <vector>

namespace redline {

inline std::vector<std::byte> random_weights(const Format& format, size_t elements, std::mt19937& random) {
    std::normal_distribution<float> normal;
    std::vector<std::byte> out(elements / format.block * format.block_bytes);
    if (format.block == 1) {
        for (size_t i = 0; i < elements; ++i) {
            const float value = 0.1f * normal(random);
            const uint32_t bits = float_to_bits(value);
            const uint16_t half = format.name == "BF16" ? float_to_bfloat(value) : float_to_half(value);
            const double wide = value;
            if (format.block_bytes == 8) std::memcpy(&out[i * 8], &wide, 8);
            if (format.block_bytes == 4) std::memcpy(&out[i * 4], &bits, 4);
            if (format.block_bytes == 2) std::memcpy(&out[i * 2], &half, 2);
        }
        return out;
    }
    for (std::byte& b : out) b = std::byte(random());
    // Smaller for super-blocks, whose sub-scales are random codes.
    const float size = format.block == 256 ? 0.0005f : 0.02f;
    const auto scale = [&] {
        return size * (0.5f + float(random() % 1000) / 1000.0f) * (random() % 8 == 0 ? -1.0f : 1.0f);
    };
    for (size_t at = 0; at < out.size(); at += format.block_bytes) {
        const float first = scale();
        format.set_scales(&out[at], first, scale());
    }
    return out;
}

}  // namespace redline
