#include "cache_store.h"

#include <cstring>

namespace redline::vulkan {

Result<std::unique_ptr<CacheStore>> VulkanCache::create(Device& device, Memory& memory,
                                                        const CacheShape& shape) {
    std::unique_ptr<VulkanCache> made(new VulkanCache(device, shape));
    const uint64_t bytes = shape.token_bytes() / 2 * shape.kv_heads * shape.capacity;
    if (bytes > memory.largest_buffer())
        return error(
            "a cache of {} tokens needs buffers of {} bytes per layer; {} takes at most {}: use a context of "
            "at "
            "most {}",
            shape.capacity, bytes, device.report().name, memory.largest_buffer(),
            memory.largest_buffer() / (bytes / shape.capacity));
    for (uint32_t layer = 0; layer < shape.layers; ++layer) {
        Buffer keys = RL_TRY(memory.allocate(bytes, Use::cache, "the key-value cache"));
        Buffer values = RL_TRY(memory.allocate(bytes, Use::cache, "the key-value cache"));
        made->layers_.push_back({std::move(keys), std::move(values)});
    }
    made->transfer_ =
        RL_TRY(memory.allocate(shape.token_bytes() * shape.kv_heads, Use::readback, "cache rows"));
    made->counters_ = RL_TRY(memory.allocate(kCounters * 4, Use::scratch, "counters"));
    RL_TRY(device.run_once(
        [&](VkCommandBuffer commands) {
            vkCmdFillBuffer(commands, made->counters_.handle(), 0, VK_WHOLE_SIZE, 0);
            const VkMemoryBarrier after = {VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr,
                                           VK_ACCESS_TRANSFER_WRITE_BIT,
                                           VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT};
            vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                                 VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &after, 0, nullptr, 0, nullptr);
        },
        "clearing counters"));
    return std::unique_ptr<CacheStore>(std::move(made));
}

std::vector<VulkanCache::Piece> VulkanCache::pieces(uint64_t position) const {
    std::vector<Piece> out;
    const uint64_t tokens = uint64_t(shape_.kv_heads) * shape_.capacity, dims = shape_.head_dim;
    uint64_t row = 0;
    const auto add = [&](bool values, uint64_t offset, uint64_t bytes) {
        out.push_back({values, offset, row, bytes});
        row += bytes;
    };
    for (uint32_t head = 0; head < shape_.kv_heads; ++head)
        for (const bool values : {false, true}) {
            const uint64_t token = head * shape_.capacity + position;
            if (shape_.type != CacheType::q8_0) {
                const uint64_t element = shape_.type == CacheType::f32 ? 4 : 2;
                add(values, token * dims * element, dims * element);
                continue;
            }
            for (uint64_t group = 0; group < dims / 32; ++group) {
                add(values, tokens * dims + (token * (dims / 32) + group) * 2, 2);
                add(values, token * dims + group * 32, 32);
            }
        }
    return out;
}

Status VulkanCache::read(uint32_t layer, uint64_t position, std::span<std::byte> out) {
    RL_CHECK(out.size() == shape_.token_bytes() * shape_.kv_heads && position < shape_.capacity,
             "cache row of {} bytes", out.size());
    RL_TRY(device_.run_once(
        [&](VkCommandBuffer commands) {
            for (const Piece& piece : pieces(position)) {
                const VkBufferCopy region = {piece.buffer_offset, piece.row_offset, piece.bytes};
                const Layer& l = layers_[layer];
                vkCmdCopyBuffer(commands, (piece.values ? l.values : l.keys).handle(), transfer_.handle(), 1,
                                &region);
            }
            const VkMemoryBarrier after = {VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr,
                                           VK_ACCESS_TRANSFER_WRITE_BIT, VK_ACCESS_HOST_READ_BIT};
            vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
                                 &after, 0, nullptr, 0, nullptr);
        },
        "reading the cache"));
    RL_TRY(transfer_.invalidate());
    std::memcpy(out.data(), transfer_.mapped(), out.size());
    return {};
}

Status VulkanCache::write(uint32_t layer, uint64_t position, std::span<const std::byte> in) {
    RL_CHECK(in.size() == shape_.token_bytes() * shape_.kv_heads && position < shape_.capacity,
             "cache row of {} bytes", in.size());
    std::memcpy(transfer_.mapped(), in.data(), in.size());
    RL_TRY(transfer_.flush());
    return device_.run_once(
        [&](VkCommandBuffer commands) {
            for (const Piece& piece : pieces(position)) {
                const VkBufferCopy region = {piece.row_offset, piece.buffer_offset, piece.bytes};
                const Layer& l = layers_[layer];
                vkCmdCopyBuffer(commands, transfer_.handle(), (piece.values ? l.values : l.keys).handle(), 1,
                                &region);
            }
            const VkMemoryBarrier after = {VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr,
                                           VK_ACCESS_TRANSFER_WRITE_BIT,
                                           VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                                               VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT};
            vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                                 VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1,
                                 &after, 0, nullptr, 0, nullptr);
        },
        "writing the cache");
}

}  // namespace redline::vulkan
