// Weights in device memory: tensors cut into parts that one kernel can see whole, and how they get there.
#pragma once

#include "backends/shared/layout.h"
#include "memory.h"

namespace redline::vulkan {

// Rows [first, first + rows) of a weight, rows counted over all its experts.
struct WeightPart {
    uint64_t first = 0;
    uint64_t rows = 0;
    Buffer buffer;
};

struct PlacedWeight {
    const WeightLayout* layout = nullptr;  // null: a vector of floats in its one part
    uint64_t cols = 0;
    std::vector<WeightPart> parts;

    // Units of 32 elements in a part; 0 for float formats, which do not ask.
    uint32_t units(const WeightPart& part) const { return uint32_t(part.rows * cols / 32); }
};

class WeightReaders;

class VulkanWeights : public WeightStore {
public:
    uint64_t bytes() const override { return bytes_; }
    const PlacedWeight& operator[](Weight w) const { return placed_[size_t(w.index)]; }

private:
    friend class WeightLoader;
    std::vector<PlacedWeight> placed_;
    uint64_t bytes_ = 0;
    std::shared_ptr<WeightReaders> readers_;  // kept from one refill to the next
};

// Rows of a matrix that one buffer has, and whether that is all of them.
uint64_t rows_per_part(const Device& device, const Tensor& tensor);
inline bool in_one_part(const Device& device, const Tensor& tensor) {
    return tensor.shape.rows * tensor.shape.count <= rows_per_part(device, tensor);
}
// Where weights would be placed in this memory, without their content.
Result<std::unique_ptr<WeightStore>> place_weights(Device& device, Memory& memory,
                                                   std::span<const WeightInfo> weights);
// Host memory that loading uses besides.
uint64_t staging_bytes(const Memory& memory);
Result<std::unique_ptr<WeightStore>> load_weights(Device& device, Memory& memory,
                                                  std::span<const WeightInfo> weights, ByteSource& source,
                                                  const Progress& progress);
// See Backend::refill().
Status refill_weights(Device& device, Memory& memory, WeightStore& store, std::span<const uint32_t> at,
                      std::span<const WeightInfo> weights, ByteSource& source);

}  // namespace redline::vulkan
