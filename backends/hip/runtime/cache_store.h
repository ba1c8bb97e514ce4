// The caches of a plan in device memory, each a buffer of keys and one of values, as
// backends/shared/cache_rows.h lays them out. See kernels/cache.h.
#pragma once

#include "backends/hip/kernels/args.h"
#include "memory.h"

#include "plan/backend.h"

namespace redline::hip {

class HipCaches : public CacheStore {
public:
    static Result<std::unique_ptr<CacheStore>> create(Device& device, Memory& memory,
                                                      std::span<const CacheInfo> caches);

    uint64_t bytes() const override { return cache_bytes(infos_); }
    Status read(Cache cache, uint64_t first, uint64_t count, std::span<std::byte> out) override;
    Status write(Cache cache, uint64_t first, uint64_t count, std::span<const std::byte> in) override;

    // As a sequence without pages sees it.
    args::Cache operator[](Cache cache) const;
    // Zeros, by which blocks of attention count which of them are done; they leave zeros behind.
    static constexpr uint32_t kCounters = 4096;
    uint32_t* counters() const { return reinterpret_cast<uint32_t*>(counters_.data()); }

private:
    HipCaches(Device& device, std::span<const CacheInfo> caches)
        : device_(device), infos_(caches.begin(), caches.end()) {}

    struct Buffers {
        Buffer keys;
        Buffer values;
    };
    Device& device_;
    std::vector<CacheInfo> infos_;
    std::vector<Buffers> buffers_;
    Buffer staging_;  // pinned
    Buffer counters_;
};

}  // namespace redline::hip
