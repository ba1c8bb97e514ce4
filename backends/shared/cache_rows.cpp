#include "backends/shared/cache_rows.h"

#include <algorithm>

namespace redline {

uint64_t cache_staging_bytes(std::span<const CacheInfo> caches) {
    constexpr uint64_t kMost = uint64_t(8) << 20;
    return std::clamp<uint64_t>(cache_bytes(caches), 1, kMost);
}

static std::vector<CacheRun> cache_runs(const CacheInfo& cache, uint64_t first, uint64_t count) {
    const std::array<uint64_t, 6> planes = cache.planes();
    const uint64_t all_rows = cache.kv_heads * cache.capacity;
    std::vector<CacheRun> runs;
    uint64_t plain = 0;
    for (uint32_t head = 0; head < cache.kv_heads; ++head)
        for (size_t p = 0; p < planes.size(); ++p) {
            if (planes[p] == 0) continue;
            // Planes of a buffer stand one behind the other.
            uint64_t plane = 0;
            for (size_t q = p / 3 * 3; q < p; ++q) plane += all_rows * planes[q];
            const uint64_t row = head * cache.capacity + first;
            runs.push_back({p >= 3, plane + row * planes[p], plain, 0, count * planes[p]});
            plain += count * planes[p];
        }
    return runs;
}

Status for_cache_runs(const CacheInfo& cache, uint64_t first, uint64_t count, uint64_t staging,
                      const std::function<Status(std::span<const CacheRun>)>& copy) {
    std::vector<CacheRun> group;
    uint64_t used = 0;
    for (CacheRun rest : cache_runs(cache, first, count))
        while (rest.bytes > 0) {
            CacheRun part = rest;
            part.bytes = std::min(rest.bytes, staging - used);
            part.staged = used;
            group.push_back(part);
            used += part.bytes;
            rest = {rest.values, rest.device + part.bytes, rest.plain + part.bytes, 0,
                    rest.bytes - part.bytes};
            if (used < staging) continue;
            RL_TRY(copy(group));
            group.clear();
            used = 0;
        }
    return group.empty() ? Status() : copy(group);
}

}  // namespace redline
