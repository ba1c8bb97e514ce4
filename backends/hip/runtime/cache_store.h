// The caches of a plan in device memory. See kernels/cache.h.
#pragma once

#include "backends/gpu/caches.h"
#include "backends/hip/kernels/args.h"
#include "memory.h"

namespace redline::hip {

// For gpu::Caches.
struct Caching {
    using Device = hip::Device;
    using Memory = hip::Memory;
    using Buffer = hip::Buffer;
    using Sides = gpu::CacheSides<Buffer>;

    static constexpr uint32_t kCounters = 4096, kLeaveCounters = 0;
    static constexpr Use kCache = Use::cache, kScratch = Use::scratch, kStaging = Use::pinned;
    static constexpr uint64_t kLeastStaging = kCounters * 4;
    static Status enter(Device& device) { return device.use(); }
    static Status check(const Device&, const CacheInfo&) { return {}; }
    static Status clear(Device& device, const Buffer& counters, const Buffer& staging);
    static uint32_t* counters(const Buffer& words) { return reinterpret_cast<uint32_t*>(words.data()); }
    static std::byte* host(const Buffer& staging) { return staging.data(); }
    static Status copy(Device& device, const Sides& sides, std::span<const CacheRun> runs,
                       const Buffer& staging, bool in);
};
using HipCaches = gpu::Caches<Caching>;

// As a sequence without pages sees it.
args::Cache cache_args(const HipCaches& caches, Cache cache);

}  // namespace redline::hip
