// Reads what the user asked of the sampler: the order of the chain and the ranges of the options.
#pragma once

#include "base/result.h"
#include "sample/sampler.h"

#include <string_view>
#include <vector>

namespace redline {

enum class SamplerStep : uint8_t {
    penalties,
    dry,
    top_n_sigma,
    top_k,
    typical_p,
    top_p,
    min_p,
    xtc,
    temperature,
};

// Names separated by ';' (blanks around them do not matter), or one letter per sampler. Empty: the final draw
// only.
Result<std::vector<SamplerStep>> parse_chain(std::string_view text);

// Whether the options let this step do anything.
bool active(SamplerStep step, const SamplerOptions& options);

// What can be said of the options without a model: the chain's names and all ranges.
Status check_options(const SamplerOptions& options);
Status check_bias(const SamplerOptions& options, int32_t vocabulary_size);

}  // namespace redline
