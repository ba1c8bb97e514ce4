// Writing one token to a KvHead, over the Vec of the including level. Every level stores the same bits (but
// for the payload of a NaN): all steps are exact or rounded once, in the same order.
#pragma once

#include "kv_layout.h"

namespace redline::cpu {
namespace {

// Calls sink(i, half) for the `count` elements of x in order.
template <typename Sink>
inline void for_each_half(const float* x, size_t count, Sink sink) {
    uint16_t halfs[Vec::kLanes];
    size_t i = 0;
    for (; i + Vec::kLanes <= count; i += Vec::kLanes) {
        Vec::load(x + i).store_half(halfs);
        for (size_t j = 0; j < Vec::kLanes; ++j) sink(i + j, halfs[j]);
    }
    float rest[Vec::kLanes] = {};
    for (size_t j = 0; i + j < count; ++j) rest[j] = x[i + j];
    Vec::load(rest).store_half(halfs);
    for (size_t j = 0; i + j < count; ++j) sink(i + j, halfs[j]);
}

// 32 elements as int8 under a half scale. The integers are made with the scale as rounded. A group that holds
// an infinity or a NaN becomes all NaN; one too large for a half scale saturates.
inline uint16_t quantize_group(const float* x, int8_t (&q)[kGroup]) {
    Vec largest = Vec::set1(0.0f);
    Vec finite = Vec::set1(0.0f);  // stays 0, or becomes NaN
    for (uint32_t i = 0; i < kGroup; i += Vec::kLanes) {
        const Vec v = Vec::load(x + i);
        largest = Vec::max(largest, Vec::abs(v));
        finite = Vec::fma(v, Vec::set1(0.0f), finite);
    }
    uint16_t halfs[Vec::kLanes];
    if (!(finite.sum() == 0.0f)) {
        for (int8_t& element : q) element = 0;
        return 0x7E00;
    }
    const Vec exact = Vec::set1(largest.largest()) / Vec::set1(127.0f);
    Vec::min(exact, Vec::set1(65504.0f)).store_half(halfs);
    const Vec scale = Vec::load_half(halfs);
    const Vec zero = Vec::set1(0.0f);
    const Vec inverse = Vec::where_less(zero, scale, Vec::set1(1.0f) / scale, zero);
    const Vec magic = Vec::set1(0x1.8p23f);
    float whole[kGroup];
    for (uint32_t i = 0; i < kGroup; i += Vec::kLanes) {
        const Vec scaled = Vec::load(x + i) * inverse;
        const Vec held = Vec::max(Vec::set1(-127.0f), Vec::min(Vec::set1(127.0f), scaled));
        ((held + magic) - magic).store(whole + i);
    }
    for (uint32_t i = 0; i < kGroup; ++i) q[i] = static_cast<int8_t>(whole[i]);
    return halfs[0];
}

inline void store_f16(const KvHead& head, uint64_t position, const float* key, const float* value) {
    const KvLayout layout(head);
    uint16_t* keys = layout.half_keys() + layout.key_index(position, 0);
    uint16_t* values = layout.half_values() + layout.value_index(position, 0);
    for_each_half(key, head.head_dim, [keys](size_t i, uint16_t half) { keys[i * kKeyBlock] = half; });
    if (head.rank == 0)
        for_each_half(value, head.head_dim, [values](size_t i, uint16_t half) { values[i] = half; });
}

inline void store_q8_0(const KvHead& head, uint64_t position, const float* key, const float* value) {
    const KvLayout layout(head);
    int8_t* keys = layout.int8_keys() + layout.key_index(position, 0);
    int8_t* values = layout.int8_values() + layout.value_index(position, 0);
    int8_t q[kGroup];
    for (uint64_t g = 0; g < layout.groups; ++g) {
        layout.key_scales()[layout.scale_index(position, g)] = quantize_group(key + g * kGroup, q);
        for (uint32_t i = 0; i < kGroup; ++i) keys[(g * kGroup + i) * kKeyBlock] = q[i];
        if (head.rank > 0) continue;
        layout.value_scales()[layout.scale_index(position, g)] = quantize_group(value + g * kGroup, q);
        for (uint32_t i = 0; i < kGroup; ++i) values[g * kGroup + i] = q[i];
    }
}

inline void store_f32(const KvHead& head, uint64_t position, const float* key, const float* value) {
    const KvLayout layout(head);
    float* keys = layout.float_keys() + layout.key_index(position, 0);
    float* values = layout.float_values() + layout.value_index(position, 0);
    for (uint32_t i = 0; i < head.head_dim; ++i) {
        keys[i * kKeyBlock] = key[i];
        if (head.rank == 0) values[i] = value[i];
    }
}

inline void kv_store(const KvHead& head, uint64_t position, const float* key, const float* value) {
    if (head.format == CacheType::q8_0)
        store_q8_0(head, position, key, value);
    else if (head.format == CacheType::f32)
        store_f32(head, position, key, value);
    else
        store_f16(head, position, key, value);
}

}  // namespace
}  // namespace redline::cpu
