// Steps that compute each row as if it were alone, bit for bit: then guesses that a step checks together
// change no text.
#pragma once

#include "plan/backend.h"

namespace redline {

// The most rows of a sequence in a step that anyone asks this of.
constexpr uint32_t kAlikeRows = 16;
// Backends whose kernels of one row sum in another order than those of several do so where CacheSizing says
// alike_rows, and with kFewAlike rows: then a step of one row takes the kernels of several.

// Implemented by backends that can promise it.
class AlikeRows {
public:
    virtual ~AlikeRows() = default;
    // The most rows with which the kernels of the plan do so; 1: with none.
    virtual uint32_t alike_rows(const BoundPlan& bound) const = 0;
};

// 1 where the backend does not say.
inline uint32_t alike_rows(const Backend& backend, const BoundPlan& bound) {
    const auto* says = dynamic_cast<const AlikeRows*>(&backend);
    return says ? says->alike_rows(bound) : 1;
}

}  // namespace redline
