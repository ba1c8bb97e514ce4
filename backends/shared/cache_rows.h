// How backends with device memory lay caches out, and how rows of them are copied: a buffer of keys and one
// of values, each (kv heads, capacity, head size) in its type. Quantized types keep high bits and scales, (kv
// heads, capacity, head size / 32) of each, behind all codes. States are what there is in the first buffer;
// the other is empty.
#pragma once

#include "base/result.h"
#include "plan/types.h"

#include <functional>
#include <vector>

namespace redline {

// Bytes of the buffer of keys, and of that of values.
inline std::array<uint64_t, 2> cache_side_bytes(const CacheInfo& cache) {
    const std::array<uint64_t, 6> planes = cache.planes();
    const uint64_t rows = cache.capacity * cache.kv_heads;
    return {rows * (planes[0] + planes[1] + planes[2]), rows * (planes[3] + planes[4] + planes[5])};
}

// Types that all kernels on caches have, alike for keys and values.
inline bool is_plain_cache(CacheTypes types) {
    return types.are(CacheType::f16) || types.are(CacheType::q8_0) || types.are(CacheType::f32);
}

// What CacheStore's functions may be asked for.
inline void check_cache_rows(const CacheInfo& cache, uint64_t first, uint64_t count, uint64_t bytes) {
    RL_CHECK(first + count <= cache.capacity && bytes == count * cache.row_bytes() * cache.kv_heads,
             "cache rows {} to {} as {} bytes", first, first + count, bytes);
}

// A run of bytes that lies in one piece on the device and in what CacheStore::read() gives.
struct CacheRun {
    bool values = false;  // else keys
    uint64_t device = 0;  // offset in that buffer
    uint64_t plain = 0;   // offset in the rows as they are read
    uint64_t staged = 0;  // offset in the staging buffer
    uint64_t bytes = 0;
};

// Memory of the host through which rows are copied, for caches like these.
uint64_t cache_staging_bytes(std::span<const CacheInfo> caches);

// All runs of rows [first, first + count), in groups that fit a staging buffer of so many bytes. The first
// error of `copy` ends it.
Status for_cache_runs(const CacheInfo& cache, uint64_t first, uint64_t count, uint64_t staging,
                      const std::function<Status(std::span<const CacheRun>)>& copy);

}  // namespace redline
