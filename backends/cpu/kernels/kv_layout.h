// Where the elements of a KvHead lie. Keys stand in blocks of 16 tokens, [block][dimension][token of the
// block], so that a vector lane is a key; values stand [token][dimension], so that a lane is a dimension.
// Of latents there are keys alone.
//   f16:  keys, values, as halfs; f32 likewise, as floats
//   q8_0: keys, values, as int8; then the scales (halfs) of keys and of values, each [block][group][token of
//   the
//         block], a group being 32 dimensions of one token
#pragma once

#include "kernels.h"

namespace redline::cpu {
namespace {

constexpr uint64_t kKeyBlock = 16;  // tokens
constexpr uint32_t kGroup = 32;     // elements under one q8_0 scale

inline uint64_t padded_tokens(uint64_t capacity) {
    return (capacity + kKeyBlock - 1) / kKeyBlock * kKeyBlock;
}

struct KvLayout {
    std::byte* data;
    uint64_t tokens;  // capacity, rounded up to whole blocks
    uint64_t dims;
    uint64_t groups;
    uint64_t rank;  // > 0: values are the first `rank` dimensions of keys

    explicit KvLayout(const KvHead& head)
        : data(head.data),
          tokens(padded_tokens(head.capacity)),
          dims(head.head_dim),
          groups(head.head_dim / kGroup),
          rank(head.rank) {}

    // The element (token, dimension) of the keys and of the values, counted in elements.
    uint64_t key_index(uint64_t token, uint64_t dim) const {
        return token / kKeyBlock * kKeyBlock * dims + dim * kKeyBlock + token % kKeyBlock;
    }
    uint64_t value_index(uint64_t token, uint64_t dim) const { return token * dims + dim; }
    uint64_t scale_index(uint64_t token, uint64_t group) const {
        return token / kKeyBlock * kKeyBlock * groups + group * kKeyBlock + token % kKeyBlock;
    }

    float* float_keys() const { return reinterpret_cast<float*>(data); }
    float* float_values() const { return float_keys() + tokens * dims; }
    uint16_t* half_keys() const { return reinterpret_cast<uint16_t*>(data); }
    uint16_t* half_values() const { return half_keys() + tokens * dims; }
    int8_t* int8_keys() const { return reinterpret_cast<int8_t*>(data); }
    int8_t* int8_values() const { return int8_keys() + tokens * dims; }
    uint16_t* key_scales() const {
        return reinterpret_cast<uint16_t*>(data + (rank > 0 ? 1 : 2) * tokens * dims);
    }
    uint16_t* value_scales() const { return key_scales() + tokens * groups; }
};

}  // namespace
}  // namespace redline::cpu
