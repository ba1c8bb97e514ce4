// Random weights in any format: random codes under scales of a sane size, so that products are neither all
// zero nor out of range. Seeded by the caller.
#pragma once

#include "formats/format.h"

#include <cstring>
#include <random>
#include <string_view>
#include <vector>

namespace redline {

// Byte offsets of the half-precision fields of a block.
inline std::vector<size_t> half_fields(std::string_view format) {
    if (format == "Q4_1" || format == "Q5_1" || format == "Q4_K" || format == "Q5_K") return {0, 2};
    if (format == "Q2_K") return {80, 82};
    if (format == "Q3_K") return {108};
    if (format == "Q6_K") return {208};
    if (format == "MXFP4" || format == "F32" || format == "F16" || format == "BF16") return {};
    return {0};
}

inline std::vector<std::byte> random_weights(const Format& format, size_t elements, std::mt19937& random) {
    std::normal_distribution<float> normal;
    std::vector<std::byte> out(elements / format.block * format.block_bytes);
    if (format.block == 1) {
        for (size_t i = 0; i < elements; ++i) {
            const float value = 0.1f * normal(random);
            const uint32_t bits = float_to_bits(value);
            const uint16_t half = format.name == "BF16" ? float_to_bfloat(value) : float_to_half(value);
            if (format.block_bytes == 4) std::memcpy(&out[i * 4], &bits, 4);
            if (format.block_bytes == 2) std::memcpy(&out[i * 2], &half, 2);
        }
        return out;
    }
    for (std::byte& b : out) b = std::byte(random());
    const bool has_sub_scales = format.block == 256;
    for (size_t at = 0; at < out.size(); at += format.block_bytes) {
        if (format.name == "MXFP4") out[at] = std::byte(118 + random() % 8);
        for (const size_t field : half_fields(format.name)) {
            const float size = has_sub_scales ? 0.0005f : 0.02f;
            const uint16_t scale = float_to_half(size * (0.5f + float(random() % 1000) / 1000.0f) *
                                                 (random() % 8 == 0 ? -1.0f : 1.0f));
            std::memcpy(&out[at + field], &scale, 2);
        }
    }
    return out;
}

}  // namespace redline
