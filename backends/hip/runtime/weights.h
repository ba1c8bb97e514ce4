// Weights in device memory, taken apart into planes as backends/shared/layout.h says, and how they get there.
#pragma once

#include "backends/hip/kernels/args.h"
#include "memory.h"

#include "backends/shared/layout.h"
#include "plan/backend.h"

namespace redline::hip {

struct PlacedWeight {
    const WeightLayout* layout = nullptr;  // null: a vector of floats
    uint64_t elements = 0;
    Buffer buffer;

    args::Matrix matrix() const { return {reinterpret_cast<const uint8_t*>(buffer.data()), elements / 32}; }
};

class WeightReaders;

class HipWeights : public WeightStore {
public:
    uint64_t bytes() const override { return bytes_; }
    const PlacedWeight& operator[](Weight w) const { return placed_[size_t(w.index)]; }

private:
    friend class WeightLoader;
    std::vector<PlacedWeight> placed_;
    uint64_t bytes_ = 0;
    std::shared_ptr<WeightReaders> readers_;  // kept from one refill to the next
};

// Where weights would be placed in this memory, without their content.
Result<std::unique_ptr<WeightStore>> place_weights(Device& device, Memory& memory,
                                                   std::span<const WeightInfo> weights);
// Host memory that loading uses besides.
uint64_t staging_bytes();
Result<std::unique_ptr<WeightStore>> load_weights(Device& device, Memory& memory,
                                                  std::span<const WeightInfo> weights, ByteSource& source,
                                                  const Progress& progress);
// See Backend::refill().
Status refill_weights(Device& device, Memory& memory, WeightStore& store, std::span<const uint32_t> at,
                      std::span<const WeightInfo> weights, ByteSource& source);

}  // namespace redline::hip
