// Short facts about a model file, as lists and reports give them.
#pragma once

#include "gguf/facts.h"
#include "plan/backend.h"

#include <string>
#include <vector>

namespace redline {

// "llama 1.10 B Q4_K_M": architecture, size, and mix of formats.
std::string model_type(const Gguf& gguf);

// A sentence for each format that the backend has no kernels for: what becomes of its tensors.
std::vector<std::string> describe_decoding(std::span<const WeightInfo> weights, const Backend& backend);

}  // namespace redline
