// Keys of a cache as floats.
#pragma once

#include "base/half.h"
#include "kv_codes.h"

#include <bit>

namespace redline::cpu {
namespace {

// Halfs as floats, without branches, so that the compiler makes vectors of it: the exponent is raised by a
// product, which is exact for small halfs, too; that of infinities and NaN is set.
inline void widen(const uint16_t* halves, uint64_t n, float* out) {
    for (uint64_t i = 0; i < n; ++i) {
        const uint32_t size = halves[i] & 0x7FFFu, sign = uint32_t(halves[i] & 0x8000u) << 16;
        const auto raised = std::bit_cast<uint32_t>(std::bit_cast<float>(size << 13) * 0x1p112f);
        const uint32_t special = size >= 0x7C00u ? 0x7F800000u : 0u;
        out[i] = std::bit_cast<float>(raised | special | sign);
    }
}

// The codes of 4 or 5 bits of a group of a token's key.
inline void read_codes(const KvLayout& layout, uint64_t row, uint64_t group, int8_t (&out)[kGroup]) {
    const uint64_t block = row / kKeyBlock * kKeyBlock, lane = row % kKeyBlock;
    std::byte codes[kHalfGroup], highs[kHighBytes] = {};
    for (uint64_t i = 0; i < kHalfGroup; ++i)
        codes[i] = layout.key_codes()[block * layout.dims / 2 + (group * kHalfGroup + i) * kKeyBlock + lane];
    for (uint64_t i = 0; layout.key_code.highs && i < kHighBytes; ++i)
        highs[i] = layout.key_highs()[block * layout.dims / 8 + (group * kHighBytes + i) * kKeyBlock + lane];
    unpack_group(layout.keys, codes, highs, out);
}

// The key of a token; `halves` has room for as many.
inline void read_key(const KvHead& head, uint64_t row, float* out, uint16_t* halves) {
    const KvLayout layout(head);
    const uint64_t first = layout.key_index(row, 0);  // of its elements, which are kKeyBlock apart
    if (head.format.keys == CacheType::f32) {
        for (uint64_t i = 0; i < layout.dims; ++i) out[i] = layout.float_keys()[first + i * kKeyBlock];
    } else if (head.format.keys == CacheType::f16) {
        for (uint64_t i = 0; i < layout.dims; ++i) halves[i] = layout.half_keys()[first + i * kKeyBlock];
        widen(halves, layout.dims, out);
    } else if (head.format.keys == CacheType::bf16) {
        for (uint64_t i = 0; i < layout.dims; ++i)
            out[i] = bfloat_to_float(layout.half_keys()[first + i * kKeyBlock]);
    } else {
        const bool is_int8 = head.format.keys == CacheType::q8_0;
        for (uint64_t group = 0; group < layout.groups; ++group) {
            int8_t codes[kGroup];
            for (uint64_t i = 0; is_int8 && i < kGroup; ++i)
                codes[i] = layout.int8_keys()[first + (group * kGroup + i) * kKeyBlock];
            if (!is_int8) read_codes(layout, row, group, codes);
            const uint16_t* const scales = layout.key_scales() + layout.key_scale_index(row, group);
            const float scale = half_to_float(scales[0]),
                        low = layout.key_code.scales == 2 ? half_to_float(scales[kKeyBlock]) : 0.0f;
            for (uint64_t i = 0; i < kGroup; ++i) out[group * kGroup + i] = float(codes[i]) * scale + low;
        }
    }
}

}  // namespace
}  // namespace redline::cpu
