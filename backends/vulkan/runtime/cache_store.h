// The caches of a plan in device memory, each a buffer of keys and one of values, as
// backends/shared/cache_rows.h lays them out. See shaders/caches.
#pragma once

#include "backends/shared/cache_rows.h"
#include "backends/vulkan/runtime/memory.h"

namespace redline::vulkan {

class VulkanCaches : public CacheStore {
public:
    static Result<std::unique_ptr<CacheStore>> create(Device& device, Memory& memory,
                                                      std::span<const CacheInfo> caches);

    uint64_t bytes() const override { return cache_bytes(infos_); }
    Status read(Cache cache, uint64_t first, uint64_t count, std::span<std::byte> out) override;
    Status write(Cache cache, uint64_t first, uint64_t count, std::span<const std::byte> in) override;

    struct Buffers {
        Buffer keys;
        Buffer values;
    };
    const Buffers& operator[](Cache cache) const { return buffers_[size_t(cache.index)]; }
    // By which work-groups of attention find out that they are the last: zeros between steps.
    // Behind those of kernels whose work-groups share results follow some of kernels that leave rows.
    static constexpr uint32_t kCounters = 1024, kLeaveCounters = 64;
    const Buffer& counters() const { return counters_; }
    // The name of the snippet in shaders/caches: types that are alike and common have one each.
    static std::string_view snippet(CacheTypes types) {
        return is_plain_cache(types) ? cache_type_name(types.keys) : "mixed";
    }

private:
    VulkanCaches(Device& device, std::span<const CacheInfo> caches)
        : device_(device), infos_(caches.begin(), caches.end()) {}
    Status clear_counters();

    Device& device_;
    std::vector<CacheInfo> infos_;
    std::vector<Buffers> buffers_;
    Buffer staging_;
    Buffer counters_;
};

}  // namespace redline::vulkan
