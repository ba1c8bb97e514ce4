// The key-value cache: per layer a buffer of keys and one of values, each (kv heads, capacity, head size) in
// the cache's type; q8_0 keeps its scales behind all codes. See shaders/caches.
#pragma once

#include "memory.h"

namespace redline::vulkan {

class VulkanCache : public CacheStore {
public:
    static Result<std::unique_ptr<CacheStore>> create(Device& device, Memory& memory,
                                                      const CacheShape& shape);

    const CacheShape& shape() const override { return shape_; }
    uint64_t bytes() const override { return shape_.bytes(); }
    Status read(uint32_t layer, uint64_t position, std::span<std::byte> out) override;
    Status write(uint32_t layer, uint64_t position, std::span<const std::byte> in) override;

    struct Layer {
        Buffer keys;
        Buffer values;
    };
    const Layer& layer(uint32_t index) const { return layers_[index]; }
    // By which work-groups of attention find out that they are the last: zeros between steps.
    static constexpr uint32_t kCounters = 1024;
    const Buffer& counters() const { return counters_; }
    // Of the snippet in shaders/caches.
    static std::string_view snippet(CacheType type) { return cache_type_name(type); }

private:
    VulkanCache(Device& device, const CacheShape& shape) : device_(device), shape_(shape) {}
    // A field of one token's keys or values: where it lies in the buffer, and in the exported row.
    struct Piece {
        bool values;
        uint64_t buffer_offset;
        uint64_t row_offset;
        uint64_t bytes;
    };
    std::vector<Piece> pieces(uint64_t position) const;

    Device& device_;
    CacheShape shape_;
    std::vector<Layer> layers_;
    Buffer transfer_;  // one token's row
    Buffer counters_;
};

}  // namespace redline::vulkan
