// Rope of a file, beyond what run/arch.h has of it.
#pragma once

#include "arch/arch.h"

namespace redline {

// As common_rope(), with the base of another key.
Result<RopeSpec> rope_of_base(const ModelFile& file, const Config& config, bool half_split,
                              std::span<const float> factors, bool rounded, std::string_view base_key);

}  // namespace redline
