#include "cache_store.h"

#include <algorithm>
#include <cstring>

namespace redline::hip {

Result<std::unique_ptr<CacheStore>> HipCache::create(Device& device, Memory& memory,
                                                     const CacheShape& shape) {
    RL_TRY(device.use());
    std::unique_ptr<HipCache> made(new HipCache(device, shape));
    const uint64_t bytes = shape.token_bytes() / 2 * shape.kv_heads * shape.capacity;
    for (uint32_t layer = 0; layer < shape.layers; ++layer) {
        // One by one: gcc 12 leaks the first of a list whose second returns early.
        Buffer keys = RL_TRY(memory.allocate(bytes, Use::cache, "the key-value cache"));
        Buffer values = RL_TRY(memory.allocate(bytes, Use::cache, "the key-value cache"));
        made->layers_.push_back({std::move(keys), std::move(values)});
    }
    const uint64_t row_bytes = shape.token_bytes() * shape.kv_heads, counter_bytes = kCounters * 4;
    made->transfer_ = RL_TRY(memory.allocate(std::max(row_bytes, counter_bytes), Use::pinned, "cache rows"));
    made->counters_ = RL_TRY(memory.allocate(counter_bytes, Use::scratch, "counters"));
    std::memset(made->transfer_.data(), 0, counter_bytes);
    RL_TRY(device.checked(
        device.call().copy_in(made->counters_.data(), made->transfer_.data(), counter_bytes, device.stream()),
        "clearing the counters"));
    RL_TRY(device.synchronize("clearing the counters"));
    return std::unique_ptr<CacheStore>(std::move(made));
}

args::Cache HipCache::layer(uint32_t index) const {
    const Layer& l = layers_[index];
    return {reinterpret_cast<uint8_t*>(l.keys.data()), reinterpret_cast<uint8_t*>(l.values.data()),
            shape_.capacity, shape_.kv_heads, shape_.head_dim};
}

std::vector<HipCache::Piece> HipCache::pieces(uint32_t layer, uint64_t position) const {
    std::vector<Piece> out;
    const uint64_t tokens = uint64_t(shape_.kv_heads) * shape_.capacity, dims = shape_.head_dim;
    uint64_t row = 0;
    for (uint32_t head = 0; head < shape_.kv_heads; ++head)
        for (const Buffer* buffer : {&layers_[layer].keys, &layers_[layer].values}) {
            const auto add = [&](uint64_t offset, uint64_t bytes) {
                out.push_back({buffer->data() + offset, row, bytes});
                row += bytes;
            };
            const uint64_t token = head * shape_.capacity + position;
            if (shape_.type != CacheType::q8_0) {
                const uint64_t element = shape_.type == CacheType::f32 ? 4 : 2;
                add(token * dims * element, dims * element);
                continue;
            }
            for (uint64_t group = 0; group < dims / 32; ++group) {
                add(tokens * dims + (token * (dims / 32) + group) * 2, 2);
                add(token * dims + group * 32, 32);
            }
        }
    return out;
}

Status HipCache::read(uint32_t layer, uint64_t position, std::span<std::byte> out) {
    RL_CHECK(out.size() == shape_.token_bytes() * shape_.kv_heads && position < shape_.capacity,
             "cache row of {} bytes", out.size());
    RL_TRY(device_.use());
    for (const Piece& piece : pieces(layer, position))
        RL_TRY(device_.checked(device_.call().copy_out(transfer_.data() + piece.row_offset, piece.device,
                                                       piece.bytes, device_.stream()),
                               "reading the cache"));
    RL_TRY(device_.synchronize("reading the cache"));
    std::memcpy(out.data(), transfer_.data(), out.size());
    return {};
}

Status HipCache::write(uint32_t layer, uint64_t position, std::span<const std::byte> in) {
    RL_CHECK(in.size() == shape_.token_bytes() * shape_.kv_heads && position < shape_.capacity,
             "cache row of {} bytes", in.size());
    RL_TRY(device_.use());
    std::memcpy(transfer_.data(), in.data(), in.size());
    for (const Piece& piece : pieces(layer, position))
        RL_TRY(device_.checked(device_.call().copy_in(piece.device, transfer_.data() + piece.row_offset,
                                                      piece.bytes, device_.stream()),
                               "writing the cache"));
    return device_.synchronize("writing the cache");
}

}  // namespace redline::hip
