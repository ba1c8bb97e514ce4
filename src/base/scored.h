// A token with its logit, in the order in which the best come first.
#pragma once

#include <cmath>
#include <cstdint>

namespace redline {

struct Scored {
    float logit;
    int32_t id;
};

// The order of tokens by logit: NaN first, so that it is not overlooked; then higher logits, then lower ids.
inline bool comes_first(const Scored& a, const Scored& b) {
    if (std::isnan(a.logit) != std::isnan(b.logit)) return std::isnan(a.logit);
    return a.logit != b.logit && !std::isnan(a.logit) ? a.logit > b.logit : a.id < b.id;
}

}  // namespace redline
