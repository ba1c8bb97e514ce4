// Weights in device memory: tensors cut into parts that one kernel can see whole, and how they get there.
#pragma once

#include "backends/gpu/loader.h"
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
using VulkanWeights = gpu::PlacedWeights<PlacedWeight>;

// Rows of a matrix that one buffer has, and whether that is all of them.
uint64_t rows_per_part(const Device& device, const Tensor& tensor);
inline bool in_one_part(const Device& device, const Tensor& tensor) {
    return tensor.shape.rows * tensor.shape.count <= rows_per_part(device, tensor);
}

// For gpu::WeightLoader.
struct Loading {
    using Device = vulkan::Device;
    using Memory = vulkan::Memory;
    using Placed = PlacedWeight;

    // Host memory that the device copies from, by a command buffer for each.
    class Upload {
    public:
        Upload(Device& device, Memory& memory) : device_(device), memory_(memory) {}
        ~Upload();
        Status prepare();
        std::byte* data(size_t i) const { return buffers_[i].mapped(); }
        Status send(size_t i, std::span<const CopyRegion> regions, const PlacedWeight& to, uint32_t part);
        Status wait(size_t i) { return device_.wait(fences_[i], "copying weights to the device"); }

        bool busy[2] = {};

    private:
        Device& device_;
        Memory& memory_;
        Buffer buffers_[2];
        VkCommandBuffer commands_[2] = {};
        VkFence fences_[2] = {};
        VkCommandPool pool_ = VK_NULL_HANDLE;
    };

    static constexpr bool kBooks = true;
    static bool stages(const Memory& memory) { return !memory.unified(); }
    static Status enter(Device&) { return {}; }
    static Result<PlacedWeight> place(Device& device, Memory& memory, const WeightInfo& weight);
    static uint64_t bytes(const PlacedWeight& placed);
    static bool fits(const PlacedWeight& placed, const WeightInfo& weight);
    static std::byte* mapped(const PlacedWeight& placed, uint32_t part) {
        return placed.parts[part].buffer.mapped();
    }
    static void add_items(std::vector<LoadItem>& items, uint32_t index, const Tensor& tensor,
                          const PlacedWeight& placed);
    static Status written(const PlacedWeight& placed);
};
using WeightLoader = gpu::WeightLoader<Loading>;

}  // namespace redline::vulkan
