#include "arch/config.h"

#include <cmath>

namespace redline {

float Config::attention_scale() const {
    return scale > 0.0f ? scale : 1.0f / std::sqrt(float(heads.head_dim));
}

}  // namespace redline
