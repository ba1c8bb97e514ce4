// Which calls attention on AMX tiles takes, and the memory that it needs for them: plain sizes, for every
// level.
#pragma once

#include "attention_flash.h"

namespace redline::cpu {
namespace {

constexpr size_t kTileQueries = 32;  // worked on together
constexpr size_t kTileKeys = 256;    // whose scores are held at a time

// Fewer queries would not make up for the conversion of keys and values.
inline bool tiles_suit(size_t queries, uint32_t dims) {
    return queries >= 2 * kTileQueries && dims % 32 == 0 && dims >= 64 && dims <= 256;
}

// What a block needs besides Scratch, behind it. The sums of a last, partial chunk of queries reach into the
// part of Scratch that holds queries as floats, which tiles do not use.
struct TileMemory {
    uint16_t* queries;  // [chunk][32 dimensions][part][32][32]
    uint16_t* keys;     // [16 keys][32 dimensions][part][16 pairs of dimensions][16][2]
    uint16_t* values;   // [32 keys][16 dimensions][16 pairs of keys][16][2]
    uint16_t* weights;  // (kTileQueries, kTileKeys)
    float* scores;      // (kTileQueries, kTileKeys)

    static size_t floats(size_t queries, size_t dims) {
        return Scratch::floats(queries, dims) + 16 +
               (round_up(queries, kTileQueries) + kTileKeys) * dims +  // two parts
               kTileKeys * dims / 2 + kTileQueries * kTileKeys / 2 * 3;
    }
    TileMemory(std::byte* memory, size_t count, size_t dims) {
        const auto start = (reinterpret_cast<uintptr_t>(memory) + 63) / 64 * 64;
        const size_t base = round_up(Scratch::floats(count, dims), 16);
        scores = reinterpret_cast<float*>(start) + base;
        queries = reinterpret_cast<uint16_t*>(scores + kTileQueries * kTileKeys);
        keys = queries + round_up(count, kTileQueries) * dims * 2;
        values = keys + kTileKeys * dims * 2;
        weights = values + kTileKeys * dims;
    }
};

}  // namespace
}  // namespace redline::cpu
