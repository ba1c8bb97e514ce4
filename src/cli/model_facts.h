// What can be said of a model file from its tensor directory alone: for info and bench.
#pragma once

#include "gguf/gguf.h"
#include "plan/backend.h"

#include <string>
#include <vector>

namespace redline::cli {

struct FormatShare {
    std::string format;  // "Q4_K"
    uint64_t tensors = 0;
    uint64_t bytes = 0;
    uint64_t elements = 0;
};
// Largest share of bytes first.
std::vector<FormatShare> format_shares(const Gguf& gguf);
uint64_t parameter_count(const Gguf& gguf);
// "1.10 B", "0.26 M".
std::string short_count(uint64_t parameters);
// "llama 1.10 B Q4_K": architecture, size, and the format of most bytes.
std::string model_type(const Gguf& gguf);

// A sentence for each format that the backend has no kernels for: what becomes of its tensors.
std::vector<std::string> describe_decoding(std::span<const WeightInfo> weights, const Backend& backend);

}  // namespace redline::cli
