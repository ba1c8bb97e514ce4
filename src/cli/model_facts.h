// What can be said of a model file from its tensor directory alone: for info and bench.
#pragma once

#include "gguf/gguf.h"

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

}  // namespace redline::cli
