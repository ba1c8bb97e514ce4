#include "cache_store.h"

namespace redline::vulkan {

Status Caching::check(const Device& device, const CacheInfo& cache) {
    const auto [bytes, value_bytes] = cache_side_bytes(cache);
    const uint64_t most = device.largest_buffer();
    if (std::max(bytes, value_bytes) <= most) return {};
    if (cache.is_state())
        return error("{} states need buffers of {} bytes per layer; {} takes at most {}: use fewer sequences",
                     cache.capacity, bytes, device.report().name, most);
    return error(
        "a cache of {} tokens needs buffers of {} bytes per layer; {} takes at most {}: use a context of at "
        "most {}",
        cache.capacity, bytes, device.report().name, most, most / (bytes / cache.capacity));
}

// Behind copies and what else a transfer wrote, for those who read it.
static void barrier(VkCommandBuffer commands, VkPipelineStageFlags readers, VkAccessFlags access) {
    const VkMemoryBarrier after = {VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_TRANSFER_WRITE_BIT,
                                   access};
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, readers, 0, 1, &after, 0, nullptr, 0,
                         nullptr);
}

Status Caching::clear(Device& device, const Buffer& counters, const Buffer&) {
    return device.run_once(
        [&](VkCommandBuffer commands) {
            vkCmdFillBuffer(commands, counters.handle(), 0, counters.size(), 0);
            barrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                    VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT);
        },
        "clearing counters");
}

Status Caching::copy(Device& device, const Sides& sides, std::span<const CacheRun> runs,
                     const Buffer& staging, bool in) {
    if (in) RL_TRY(staging.flush());
    const auto record = [&](VkCommandBuffer commands) {
        for (const CacheRun& run : runs) {
            const VkBuffer there = sides.of(run).handle(), here = staging.handle();
            const VkBufferCopy region = {in ? run.staged : run.device, in ? run.device : run.staged,
                                         run.bytes};
            vkCmdCopyBuffer(commands, in ? here : there, in ? there : here, 1, &region);
        }
        if (in)
            barrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
                    VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT |
                        VK_ACCESS_TRANSFER_WRITE_BIT);
        else
            barrier(commands, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    };
    RL_TRY(device.run_once(record, in ? "writing the cache" : "reading the cache"));
    return in ? Status() : staging.invalidate();
}

}  // namespace redline::vulkan
