// The expert that all rows of a block of experts go to, apart from the others.
#pragma once

#include "plan/ops.h"

namespace redline::gpu {

// Its parts of the block: they stand behind the norm, the router and the products of the others.
inline std::vector<Op> shared_parts(const ExpertBlock& block) {
    std::vector<Op> parts = block_parts(block);
    parts.erase(parts.begin(), parts.begin() + 4);
    return parts;
}

}  // namespace redline::gpu
