// The time that steps of few rows should take, where a decision must not depend on what was timed.
#pragma once

#include <cstdint>

namespace redline {

// Implemented by backends on whose devices this was measured.
class RowCosts {
public:
    virtual ~RowCosts() = default;
    // The time of a step of so many rows of a sequence, in steps of one row, where all rows read the same
    // weights. On slower devices of the same kind, a further row costs less beside the weights.
    virtual double row_cost(uint32_t rows) const = 0;
};

}  // namespace redline
