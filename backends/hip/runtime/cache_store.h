// The key-value cache: per layer a buffer of keys and one of values, each (kv heads, capacity, head size) in
// the cache's type; q8_0 keeps its scales behind all codes. See kernels/cache.h.
#pragma once

#include "backends/hip/kernels/args.h"
#include "memory.h"

#include "plan/backend.h"

namespace redline::hip {

class HipCache : public CacheStore {
public:
    static Result<std::unique_ptr<CacheStore>> create(Device& device, Memory& memory,
                                                      const CacheShape& shape);

    const CacheShape& shape() const override { return shape_; }
    uint64_t bytes() const override { return shape_.bytes(); }
    Status read(uint32_t layer, uint64_t position, std::span<std::byte> out) override;
    Status write(uint32_t layer, uint64_t position, std::span<const std::byte> in) override;

    args::Cache layer(uint32_t index) const;
    // Zeros, by which blocks of attention count which of them are done; they leave zeros behind.
    static constexpr uint32_t kCounters = 4096;
    uint32_t* counters() const { return reinterpret_cast<uint32_t*>(counters_.data()); }

private:
    HipCache(Device& device, const CacheShape& shape) : device_(device), shape_(shape) {}
    // A field of one token's keys or values: where it lies on the device, and in the exported row.
    struct Piece {
        std::byte* device;
        uint64_t row_offset;
        uint64_t bytes;
    };
    std::vector<Piece> pieces(uint32_t layer, uint64_t position) const;

    struct Layer {
        Buffer keys;
        Buffer values;
    };
    Device& device_;
    CacheShape shape_;
    std::vector<Layer> layers_;
    Buffer transfer_;  // one token's row, pinned
    Buffer counters_;
};

}  // namespace redline::hip
