// The arguments by which kernels find their way in a layer's cache.
#pragma once

#include <cstdint>

namespace redline::hip::args {

struct Place;

// One layer's keys and values, (kv heads, capacity, head size) each; q8_0 keeps its scales behind all codes.
struct Cache {
    uint8_t* keys;
    uint8_t* values;
    uint64_t capacity;
    uint32_t kv_heads;
    uint32_t head_dim;
    uint32_t sequence_rows;  // token p of a sequence lies in its row p % sequence_rows
    const Place* places;     // by row of the step; null: there is one sequence, which has the first rows
    const uint32_t* pages;   // of kPageRows rows
};
constexpr uint32_t kPageRows = 256;

}  // namespace redline::hip::args
