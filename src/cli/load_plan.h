// What runs where, and what it takes, decided and said before a byte of weights is read.
#pragma once

#include "cli/options/model_options.h"

namespace redline::cli {

// For a session like this one: that the model fits the device; or, where it does not or -ngl asks for it,
// which layers the CPU takes (then LoadedModel::placements). An error has the numbers and what would fit.
Status plan_load(LoadedModel& loaded, const ModelOptions& options, const SessionOptions& session);

// For commands that do not split a model: says so where -ngl asks for it.
void note_unsplit(const ModelOptions& options, const Model& model, const std::string& device);

// "plan: 12/32 layers on vulkan (...), 20 on cpu (...), KV cache f16 4096 tokens 512.0 MiB"; `cache` in
// bytes.
std::string plan_line(const LoadedModel& loaded, uint64_t context, uint64_t cache);

}  // namespace redline::cli
