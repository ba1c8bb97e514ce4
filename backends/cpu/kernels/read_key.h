// Keys of a cache as floats.
#pragma once

#include "base/half.h"
#include "kv_layout.h"

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

// The key of a token; `halves` has room for as many.
inline void read_key(const KvHead& head, uint64_t row, float* out, uint16_t* halves) {
    const KvLayout layout(head);
    const uint64_t first = layout.key_index(row, 0);  // of its elements, which are kKeyBlock apart
    if (head.format == CacheType::f32) {
        for (uint64_t i = 0; i < layout.dims; ++i) out[i] = layout.float_keys()[first + i * kKeyBlock];
    } else if (head.format == CacheType::f16) {
        for (uint64_t i = 0; i < layout.dims; ++i) halves[i] = layout.half_keys()[first + i * kKeyBlock];
        widen(halves, layout.dims, out);
    } else {
        for (uint64_t i = 0; i < layout.dims; ++i)
            out[i] = float(layout.int8_keys()[first + i * kKeyBlock]) *
                     half_to_float(layout.key_scales()[layout.scale_index(row, i / kGroup)]);
    }
}

}  // namespace
}  // namespace redline::cpu
