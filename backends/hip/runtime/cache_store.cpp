#include "cache_store.h"

#include "backends/shared/cache_rows.h"

#include <algorithm>
#include <cstring>

namespace redline::hip {

static_assert(uint8_t(args::CacheType::f32) == uint8_t(CacheType::f32) &&
              uint8_t(args::CacheType::q5_1) == uint8_t(CacheType::q5_1) &&
              uint8_t(args::CacheType::iq4_nl) == uint8_t(CacheType::iq4_nl));

Result<std::unique_ptr<CacheStore>> HipCaches::create(Device& device, Memory& memory,
                                                      std::span<const CacheInfo> caches) {
    RL_TRY(device.use());
    std::unique_ptr<HipCaches> made(new HipCaches(device, caches));
    for (const CacheInfo& cache : caches) {
        const auto [key_bytes, value_bytes] = cache_side_bytes(cache);
        const std::string_view what = cache.is_state() ? "states" : "the key-value cache";
        // One by one: gcc 12 leaks the first of a list whose second returns early.
        Buffer keys = RL_TRY(memory.allocate(key_bytes, Use::cache, what));
        Buffer values = RL_TRY(memory.allocate(value_bytes, Use::cache, what));
        made->buffers_.push_back({std::move(keys), std::move(values)});
    }
    const uint64_t counter_bytes = kCounters * 4;
    const uint64_t staging = std::max(cache_staging_bytes(caches), counter_bytes);
    made->staging_ = RL_TRY(memory.allocate(staging, Use::pinned, "cache rows"));
    made->counters_ = RL_TRY(memory.allocate(counter_bytes, Use::scratch, "counters"));
    if (memory.counts_only()) return std::unique_ptr<CacheStore>(std::move(made));
    std::memset(made->staging_.data(), 0, counter_bytes);
    RL_TRY(device.checked(
        device.call().copy_in(made->counters_.data(), made->staging_.data(), counter_bytes, device.stream()),
        "clearing the counters"));
    RL_TRY(device.synchronize("clearing the counters"));
    return std::unique_ptr<CacheStore>(std::move(made));
}

args::Cache HipCaches::operator[](Cache cache) const {
    const Buffers& b = buffers_[size_t(cache.index)];
    const CacheInfo& info = infos_[size_t(cache.index)];
    return {reinterpret_cast<uint8_t*>(b.keys.data()),
            reinterpret_cast<uint8_t*>(b.values.data()),
            info.capacity,
            info.kv_heads,
            info.head_dim,
            uint32_t(info.sequence_rows),
            args::CacheType(info.types.keys),
            args::CacheType(info.types.values),
            nullptr,
            nullptr};
}

Status HipCaches::read(Cache cache, uint64_t first, uint64_t count, std::span<std::byte> out) {
    const CacheInfo& info = infos_[size_t(cache.index)];
    check_cache_rows(info, first, count, out.size());
    RL_TRY(device_.use());
    return for_cache_runs(info, first, count, staging_.size(), [&](std::span<const CacheRun> runs) -> Status {
        const Buffers& from = buffers_[size_t(cache.index)];
        for (const CacheRun& run : runs)
            RL_TRY(device_.checked(
                device_.call().copy_out(staging_.data() + run.staged,
                                        (run.values ? from.values : from.keys).data() + run.device, run.bytes,
                                        device_.stream()),
                "reading the cache"));
        RL_TRY(device_.synchronize("reading the cache"));
        for (const CacheRun& run : runs)
            std::memcpy(out.data() + run.plain, staging_.data() + run.staged, run.bytes);
        return {};
    });
}

Status HipCaches::write(Cache cache, uint64_t first, uint64_t count, std::span<const std::byte> in) {
    const CacheInfo& info = infos_[size_t(cache.index)];
    check_cache_rows(info, first, count, in.size());
    RL_TRY(device_.use());
    return for_cache_runs(info, first, count, staging_.size(), [&](std::span<const CacheRun> runs) -> Status {
        const Buffers& to = buffers_[size_t(cache.index)];
        for (const CacheRun& run : runs) {
            std::memcpy(staging_.data() + run.staged, in.data() + run.plain, run.bytes);
            RL_TRY(device_.checked(
                device_.call().copy_in((run.values ? to.values : to.keys).data() + run.device,
                                       staging_.data() + run.staged, run.bytes, device_.stream()),
                "writing the cache"));
        }
        return device_.synchronize("writing the cache");
    });
}

}  // namespace redline::hip
