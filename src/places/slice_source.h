// Gives a backend the parts that a rank has of some weights, out of a source of the whole ones.
#pragma once

#include "plan/passes/shard.h"

namespace redline {

class SliceSource : public ByteSource {
public:
    // `whole` are the weights of `source`, and `slices` has a part of each; all of them outlive this.
    SliceSource(ByteSource& source, std::span<const WeightInfo> whole, std::span<const WeightSlice> slices)
        : source_(source), whole_(whole), slices_(slices) {}

    // Threads may read at the same time.
    Status read(size_t tensor, uint64_t offset, std::span<std::byte> out) override;

private:
    ByteSource& source_;
    std::span<const WeightInfo> whole_;
    std::span<const WeightSlice> slices_;
};

}  // namespace redline
