#include "cache_store.h"

#include "backends/shared/cache_rows.h"

#include <algorithm>
#include <cstring>

namespace redline::vulkan {

static Error too_large(const Device& device, const CacheInfo& cache) {
    const uint64_t bytes = cache_side_bytes(cache)[0], most = device.largest_buffer();
    if (cache.is_state())
        return error("{} states need buffers of {} bytes per layer; {} takes at most {}: use fewer sequences",
                     cache.capacity, bytes, device.report().name, most);
    return error(
        "a cache of {} tokens needs buffers of {} bytes per layer; {} takes at most {}: use a context of at "
        "most {}",
        cache.capacity, bytes, device.report().name, most, most / (bytes / cache.capacity));
}

Result<std::unique_ptr<CacheStore>> VulkanCaches::create(Device& device, Memory& memory,
                                                         std::span<const CacheInfo> caches) {
    std::unique_ptr<VulkanCaches> made(new VulkanCaches(device, caches));
    for (const CacheInfo& cache : caches) {
        const auto [key_bytes, value_bytes] = cache_side_bytes(cache);
        const std::string_view what = cache.is_state() ? "states" : "the key-value cache";
        if (std::max(key_bytes, value_bytes) > device.largest_buffer()) return too_large(device, cache);
        Buffer keys = RL_TRY(memory.allocate(key_bytes, Use::cache, what));
        Buffer values = RL_TRY(memory.allocate(value_bytes, Use::cache, what));
        made->buffers_.push_back({std::move(keys), std::move(values)});
    }
    made->staging_ = RL_TRY(memory.allocate(cache_staging_bytes(caches), Use::readback, "cache rows"));
    made->counters_ = RL_TRY(memory.allocate((kCounters + kLeaveCounters) * 4, Use::scratch, "counters"));
    if (!memory.counts_only()) RL_TRY(made->clear_counters());
    return std::unique_ptr<CacheStore>(std::move(made));
}

Status VulkanCaches::clear_counters() {
    return device_.run_once(
        [&](VkCommandBuffer commands) {
            vkCmdFillBuffer(commands, counters_.handle(), 0, (kCounters + kLeaveCounters) * 4, 0);
            const VkMemoryBarrier after = {VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr,
                                           VK_ACCESS_TRANSFER_WRITE_BIT,
                                           VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT};
            vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                                 VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &after, 0, nullptr, 0, nullptr);
        },
        "clearing counters");
}

Status VulkanCaches::read(Cache cache, uint64_t first, uint64_t count, std::span<std::byte> out) {
    const CacheInfo& info = infos_[size_t(cache.index)];
    check_cache_rows(info, first, count, out.size());
    const auto copy = [&](std::span<const CacheRun> runs) -> Status {
        RL_TRY(device_.run_once(
            [&](VkCommandBuffer commands) {
                const Buffers& from = buffers_[size_t(cache.index)];
                for (const CacheRun& run : runs) {
                    const VkBufferCopy region = {run.device, run.staged, run.bytes};
                    vkCmdCopyBuffer(commands, (run.values ? from.values : from.keys).handle(),
                                    staging_.handle(), 1, &region);
                }
                const VkMemoryBarrier after = {VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr,
                                               VK_ACCESS_TRANSFER_WRITE_BIT, VK_ACCESS_HOST_READ_BIT};
                vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0,
                                     1, &after, 0, nullptr, 0, nullptr);
            },
            "reading the cache"));
        RL_TRY(staging_.invalidate());
        for (const CacheRun& run : runs)
            std::memcpy(out.data() + run.plain, staging_.mapped() + run.staged, run.bytes);
        return {};
    };
    return for_cache_runs(info, first, count, staging_.size(), copy);
}

Status VulkanCaches::write(Cache cache, uint64_t first, uint64_t count, std::span<const std::byte> in) {
    const CacheInfo& info = infos_[size_t(cache.index)];
    check_cache_rows(info, first, count, in.size());
    const auto copy = [&](std::span<const CacheRun> runs) -> Status {
        for (const CacheRun& run : runs)
            std::memcpy(staging_.mapped() + run.staged, in.data() + run.plain, run.bytes);
        RL_TRY(staging_.flush());
        return device_.run_once(
            [&](VkCommandBuffer commands) {
                const Buffers& to = buffers_[size_t(cache.index)];
                for (const CacheRun& run : runs) {
                    const VkBufferCopy region = {run.staged, run.device, run.bytes};
                    vkCmdCopyBuffer(commands, staging_.handle(), (run.values ? to.values : to.keys).handle(),
                                    1, &region);
                }
                const VkMemoryBarrier after = {
                    VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_TRANSFER_WRITE_BIT,
                    VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT |
                        VK_ACCESS_TRANSFER_WRITE_BIT};
                vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                                     VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT, 0,
                                     1, &after, 0, nullptr, 0, nullptr);
            },
            "writing the cache");
    };
    return for_cache_runs(info, first, count, staging_.size(), copy);
}

}  // namespace redline::vulkan
