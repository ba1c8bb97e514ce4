// Where the elements of a KvHead lie. Keys stand in blocks of 16 tokens, [block][dimension][token of the
// block], so that a vector lane is a key; values stand [token][dimension], so that a lane is a dimension.
// Of latents there are keys alone.
//   f32, f16, bf16: the elements
//   quantized: codes, each of 8 bits, or two dimensions of a group to a byte as CacheCode says; behind the
//         codes of keys and of values the bytes of high bits of both, then the scales (halfs) of both. Scales
//         stand [block][scale][token of the block], and so do codes and high bits of keys. A group is 32
//         dimensions of one token.
#pragma once

#include "kernels.h"

namespace redline::cpu {
namespace {

constexpr uint64_t kKeyBlock = 16;  // tokens
constexpr uint32_t kGroup = kCacheBlock;

inline uint64_t padded_tokens(uint64_t capacity) {
    return (capacity + kKeyBlock - 1) / kKeyBlock * kKeyBlock;
}

struct KvLayout {
    std::byte* data;
    uint64_t tokens;  // capacity, rounded up to whole blocks
    uint64_t dims;
    uint64_t groups;
    uint64_t rank;  // > 0: values are the first `rank` dimensions of keys
    CacheType keys, values;
    CacheCode key_code, value_code;

    explicit KvLayout(const KvHead& head)
        : data(head.data),
          tokens(padded_tokens(head.capacity)),
          dims(head.head_dim),
          groups(head.head_dim / kGroup),
          rank(head.rank),
          keys(head.format.keys),
          values(head.format.values),
          key_code(cache_code(keys)),
          value_code(cache_code(values)) {}

    // The element (token, dimension) of the keys and of the values, counted in elements.
    uint64_t key_index(uint64_t token, uint64_t dim) const {
        return token / kKeyBlock * kKeyBlock * dims + dim * kKeyBlock + token % kKeyBlock;
    }
    uint64_t value_index(uint64_t token, uint64_t dim) const { return token * dims + dim; }
    // The scale of a group, of `scales` that each group has.
    static uint64_t scale_index(uint64_t token, uint64_t scale, uint64_t all) {
        return token / kKeyBlock * kKeyBlock * all + scale * kKeyBlock + token % kKeyBlock;
    }
    uint64_t key_scale_index(uint64_t token, uint64_t group) const {
        return scale_index(token, group * key_code.scales, groups * key_code.scales);
    }
    uint64_t value_scale_index(uint64_t token, uint64_t group) const {
        return scale_index(token, group * value_code.scales, groups * value_code.scales);
    }

    uint64_t key_bytes() const { return tokens * dims * key_code.bits / 8; }
    uint64_t value_bytes() const { return rank > 0 ? 0 : tokens * dims * value_code.bits / 8; }
    std::byte* key_codes() const { return data; }
    std::byte* value_codes() const { return data + key_bytes(); }
    std::byte* key_highs() const { return value_codes() + value_bytes(); }
    std::byte* value_highs() const { return key_highs() + (key_code.highs ? tokens * dims / 8 : 0); }
    uint16_t* key_scales() const {
        return reinterpret_cast<uint16_t*>(value_highs() +
                                           (value_code.highs && rank == 0 ? tokens * dims / 8 : 0));
    }
    uint16_t* value_scales() const { return key_scales() + tokens * groups * key_code.scales; }

    float* float_keys() const { return reinterpret_cast<float*>(key_codes()); }
    float* float_values() const { return reinterpret_cast<float*>(value_codes()); }
    uint16_t* half_keys() const { return reinterpret_cast<uint16_t*>(key_codes()); }  // or bfloat16
    uint16_t* half_values() const { return reinterpret_cast<uint16_t*>(value_codes()); }
    int8_t* int8_keys() const { return reinterpret_cast<int8_t*>(key_codes()); }
    int8_t* int8_values() const { return reinterpret_cast<int8_t*>(value_codes()); }
};

}  // namespace
}  // namespace redline::cpu
