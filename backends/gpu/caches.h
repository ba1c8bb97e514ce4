// The caches of a plan in device memory, each a buffer of keys and one of values, as
// backends/shared/cache_rows.h lays them out, and counters that kernels share results by.
//
// A backend says by a struct Gpu what differs:
//   Device, Memory, Buffer; enter(device): what each thread calls first
//   kCounters, kLeaveCounters; uses of memory kCache, kScratch and kStaging, of that kLeastStaging bytes
//   check(device, cache): whether the device takes buffers for it
//   clear(device, counters, staging): makes zeros of them
//   counters(buffer): as kernels want it; host(staging): where the host sees it
//   copy(device, sides, runs, staging, in): to the device or, unless `in`, from there, until it is done
#pragma once

#include "backends/shared/cache_rows.h"
#include "plan/backend.h"

#include <cstring>

namespace redline::gpu {

template <class Buffer>
struct CacheSides {
    Buffer keys;
    Buffer values;
    const Buffer& of(const CacheRun& run) const { return run.values ? values : keys; }
};

template <class Gpu>
class Caches : public CacheStore {
public:
    using Device = typename Gpu::Device;
    using Memory = typename Gpu::Memory;
    using Sides = CacheSides<typename Gpu::Buffer>;
    // Zeros between steps, by which work-groups of attention find out that they are the last. Behind them
    // follow those of kernels that leave rows.
    static constexpr uint32_t kCounters = Gpu::kCounters, kLeaveCounters = Gpu::kLeaveCounters;

    static Result<std::unique_ptr<CacheStore>> create(Device& device, Memory& memory,
                                                      std::span<const CacheInfo> caches) {
        RL_TRY(Gpu::enter(device));
        std::unique_ptr<Caches> made(new Caches(device, caches));
        for (const CacheInfo& cache : caches) {
            RL_TRY(Gpu::check(device, cache));
            const auto [key_bytes, value_bytes] = cache_side_bytes(cache);
            const std::string_view what = cache.is_state() ? "states" : "the key-value cache";
            // One by one: gcc 12 leaks the first of a list whose second returns early.
            auto keys = RL_TRY(memory.allocate(key_bytes, Gpu::kCache, what));
            auto values = RL_TRY(memory.allocate(value_bytes, Gpu::kCache, what));
            made->sides_.push_back({std::move(keys), std::move(values)});
        }
        const uint64_t staging = std::max<uint64_t>(cache_staging_bytes(caches), Gpu::kLeastStaging);
        made->staging_ = RL_TRY(memory.allocate(staging, Gpu::kStaging, "cache rows"));
        made->counters_ =
            RL_TRY(memory.allocate((kCounters + kLeaveCounters) * 4, Gpu::kScratch, "counters"));
        if (!memory.counts_only()) RL_TRY(Gpu::clear(device, made->counters_, made->staging_));
        return std::unique_ptr<CacheStore>(std::move(made));
    }

    uint64_t bytes() const override { return cache_bytes(infos_); }
    Status read(Cache cache, uint64_t first, uint64_t count, std::span<std::byte> out) override {
        return copy(cache, first, count, out.size(), [&](std::span<const CacheRun> runs) -> Status {
            RL_TRY(Gpu::copy(device_, (*this)[cache], runs, staging_, false));
            for (const CacheRun& run : runs)
                std::memcpy(out.data() + run.plain, Gpu::host(staging_) + run.staged, run.bytes);
            return {};
        });
    }
    Status write(Cache cache, uint64_t first, uint64_t count, std::span<const std::byte> in) override {
        return copy(cache, first, count, in.size(), [&](std::span<const CacheRun> runs) -> Status {
            for (const CacheRun& run : runs)
                std::memcpy(Gpu::host(staging_) + run.staged, in.data() + run.plain, run.bytes);
            return Gpu::copy(device_, (*this)[cache], runs, staging_, true);
        });
    }

    const Sides& operator[](Cache cache) const { return sides_[size_t(cache.index)]; }
    const CacheInfo& info(Cache cache) const { return infos_[size_t(cache.index)]; }
    decltype(auto) counters() const { return Gpu::counters(counters_); }

private:
    Caches(Device& device, std::span<const CacheInfo> caches)
        : device_(device), infos_(caches.begin(), caches.end()) {}

    template <typename Copy>
    Status copy(Cache cache, uint64_t first, uint64_t count, uint64_t bytes, const Copy& some) {
        check_cache_rows(info(cache), first, count, bytes);
        RL_TRY(Gpu::enter(device_));
        return for_cache_runs(info(cache), first, count, staging_.size(), some);
    }

    Device& device_;
    std::vector<CacheInfo> infos_;
    std::vector<Sides> sides_;
    typename Gpu::Buffer staging_;  // of the host
    typename Gpu::Buffer counters_;
};

}  // namespace redline::gpu
