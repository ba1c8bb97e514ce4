// Weights in device memory, taken apart into planes as backends/shared/layout.h says, and how they get there.
#pragma once

#include "backends/hip/kernels/args.h"
#include "memory.h"

#include "backends/gpu/loader.h"

namespace redline::hip {

struct PlacedWeight {
    const WeightLayout* layout = nullptr;  // null: a vector of floats
    uint64_t elements = 0;
    Buffer buffer;

    args::Matrix matrix() const { return {reinterpret_cast<const uint8_t*>(buffer.data()), elements / 32}; }
};
using HipWeights = gpu::PlacedWeights<PlacedWeight>;

// For gpu::WeightLoader. Code books are in the kernels' modules.
struct Loading {
    using Device = hip::Device;
    using Memory = hip::Memory;
    using Placed = PlacedWeight;

    // Pinned memory that the device copies from on a stream of the reader's.
    class Upload {
    public:
        Upload(Device& device, Memory& memory) : device_(device), memory_(memory) {}
        ~Upload();
        Status prepare();
        std::byte* data(size_t i) const { return buffers_[i].data(); }
        Status send(size_t i, std::span<const CopyRegion> regions, const PlacedWeight& to, uint32_t part);
        Status wait(size_t i);

        bool busy[2] = {};

    private:
        Device& device_;
        Memory& memory_;
        Buffer buffers_[2];
        Event events_[2] = {};  // behind the copy from each
        Stream stream_ = nullptr;
    };

    static constexpr bool kBooks = false;
    static bool stages(const Memory&) { return true; }
    static Status enter(Device& device) { return device.use(); }
    static Result<PlacedWeight> place(Device& device, Memory& memory, const WeightInfo& weight);
    static uint64_t bytes(const PlacedWeight& placed) { return placed.buffer.size(); }
    static bool fits(const PlacedWeight& placed, const WeightInfo& weight) {
        return placed.elements == weight.tensor.shape.elements();
    }
    static std::byte* mapped(const PlacedWeight&, uint32_t) { return nullptr; }
    static void add_items(std::vector<LoadItem>& items, uint32_t index, const Tensor& tensor,
                          const PlacedWeight& placed) {
        redline::add_items(items, *tensor.format,
                           {.weight = index, .part_blocks = placed.elements / tensor.format->block});
    }
    static Status written(const PlacedWeight&) { return {}; }
};
using WeightLoader = gpu::WeightLoader<Loading>;

}  // namespace redline::hip
