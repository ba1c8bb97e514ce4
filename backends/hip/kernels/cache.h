// The types of the key-value cache: how an element is read and a head is stored. `at` is head * capacity +
// position.
#pragma once

#include "args.h"
#include "kernels/wave.h"

namespace redline::hip {

using args::Cache;

struct cache_f32 {
    static constexpr uint32_t kGroup = 1;  // elements stored together
    RL_DEVICE static float value(const Cache& c, const uint8_t* data, size_t at, uint32_t i) {
        return load<float>(data, at * c.head_dim + i);
    }
    template <typename New>
    RL_DEVICE static void store(const Cache& c, uint8_t* data, size_t at, uint32_t i, New value) {
        reinterpret_cast<float*>(data)[at * c.head_dim + i] = value(i);
    }
};

struct cache_f16 {
    static constexpr uint32_t kGroup = 1;
    RL_DEVICE static float value(const Cache& c, const uint8_t* data, size_t at, uint32_t i) {
        return half_value(load<uint16_t>(data, at * c.head_dim + i));
    }
    template <typename New>
    RL_DEVICE static void store(const Cache& c, uint8_t* data, size_t at, uint32_t i, New value) {
        reinterpret_cast<uint16_t*>(data)[at * c.head_dim + i] = half_bits(value(i));
    }
};

// Codes in bytes; behind all of them the scales (halfs) of 32 elements each.
struct cache_q8_0 {
    static constexpr uint32_t kGroup = 32;
    RL_DEVICE static size_t scale_index(const Cache& c, size_t at, uint32_t i) {
        return c.capacity * c.kv_heads * (c.head_dim / 2) + at * (c.head_dim / 32) + i / 32;
    }
    RL_DEVICE static float value(const Cache& c, const uint8_t* data, size_t at, uint32_t i) {
        const float d = half_value(load<uint16_t>(data, scale_index(c, at, i)));
        return d * float(int8_t(data[at * c.head_dim + i]));
    }
    template <typename New>
    RL_DEVICE static void store(const Cache& c, uint8_t* data, size_t at, uint32_t first, New value) {
        float most = 0.0f;
        for (uint32_t i = 0; i < 32; ++i) most = larger(most, __builtin_fabsf(value(first + i)));
        const uint16_t bits = half_bits(most / 127.0f);
        const float d = half_value(bits);
        reinterpret_cast<uint16_t*>(data)[scale_index(c, at, first)] = bits;
        for (uint32_t i = 0; i < 32; ++i) {
            const float code = d > 0.0f ? round_of(value(first + i) / d) : 0.0f;
            data[at * c.head_dim + first + i] = uint8_t(int32_t(code > 127.0f    ? 127.0f
                                                                : code < -127.0f ? -127.0f
                                                                                 : code));
        }
    }
};

}  // namespace redline::hip
