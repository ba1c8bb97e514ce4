// Steps that compute each row as if it were alone, bit for bit: then guesses that a step checks together
// change no text.
#pragma once

#include "plan/backend.h"

namespace redline {

// Implemented by backends that can promise it.
class AlikeRows {
public:
    virtual ~AlikeRows() = default;
    // True when the kernels of the plan do so with up to kAlikeRows rows of a sequence.
    virtual bool alike_rows(const BoundPlan& bound) const = 0;
};
constexpr uint32_t kAlikeRows = 16;

// False where the backend does not say.
inline bool alike_rows(const Backend& backend, const BoundPlan& bound) {
    const auto* says = dynamic_cast<const AlikeRows*>(&backend);
    return says && says->alike_rows(bound);
}

}  // namespace redline
