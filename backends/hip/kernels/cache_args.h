// The arguments by which kernels find their way in a layer's cache.
#pragma once

#include <cstdint>

namespace redline::hip::args {

struct Place;

// The numbers of src/plan/types.h.
enum class CacheType : uint8_t { f16, q8_0, f32, bf16, q5_1, q5_0, q4_1, q4_0, iq4_nl };

// One layer's keys and values, (kv heads, capacity, head size) each; quantized types keep high bits and
// scales behind all codes.
struct Cache {
    uint8_t* keys;
    uint8_t* values;
    uint64_t capacity;
    uint32_t kv_heads;
    uint32_t head_dim;
    uint32_t sequence_rows;  // token p of a sequence lies in its row p % sequence_rows
    CacheType key_type;      // the types, for the kernels that are built for all
    CacheType value_type;
    const Place* places;    // by row of the step; null: there is one sequence, which has the first rows
    const uint32_t* pages;  // of kPageRows rows
};
constexpr uint32_t kPageRows = 256;

}  // namespace redline::hip::args
