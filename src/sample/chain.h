// The chain of samplers: a table of its steps, and the order in which a user names them.
#pragma once

#include "sample/candidates.h"
#include "sample/dry.h"
#include "sample/history.h"
#include "sample/parameters.h"

#include <random>
#include <string_view>
#include <vector>

namespace redline {

// All that a step may read and change.
struct SamplerState {
    const SamplerOptions& options;
    Candidates& candidates;
    const TokenCounts& counts;
    DryHistory& dry;
    std::mt19937& xtc_random;
};

struct SamplerStep {
    std::string_view name;
    char letter;
    bool keeps_best;  // the likeliest token before it is the likeliest one behind it, too
    bool (*active)(const SamplerOptions& options);  // whether the options let it do anything
    void (*apply)(const SamplerState& state);
};

// Two of them are of interest to the sampler itself.
inline constexpr std::string_view kTopK = "top_k", kTemperature = "temperature";

std::span<const SamplerStep> sampler_steps();
const SamplerStep& sampler_step(std::string_view name);

// Steps in the order of their names, separated by ';' (blanks around them do not matter), or of their
// letters. Empty: the final draw only.
Result<std::vector<const SamplerStep*>> parse_chain(std::string_view text);

}  // namespace redline
