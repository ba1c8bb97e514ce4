// The caches of a plan in device memory. See shaders/caches.
#pragma once

#include "backends/gpu/caches.h"
#include "memory.h"

namespace redline::vulkan {

// For gpu::Caches.
struct Caching {
    using Device = vulkan::Device;
    using Memory = vulkan::Memory;
    using Buffer = vulkan::Buffer;
    using Sides = gpu::CacheSides<Buffer>;

    static constexpr uint32_t kCounters = 1024, kLeaveCounters = 64;
    static constexpr Use kCache = Use::cache, kScratch = Use::scratch, kStaging = Use::readback;
    static constexpr uint64_t kLeastStaging = 0;
    static Status enter(Device&) { return {}; }
    static Status check(const Device& device, const CacheInfo& cache);
    static Status clear(Device& device, const Buffer& counters, const Buffer& staging);
    static const Buffer& counters(const Buffer& words) { return words; }
    static std::byte* host(const Buffer& staging) { return staging.mapped(); }
    static Status copy(Device& device, const Sides& sides, std::span<const CacheRun> runs,
                       const Buffer& staging, bool in);
};
using VulkanCaches = gpu::Caches<Caching>;

}  // namespace redline::vulkan
