// What can be said of a model file from its tensor directory alone.
#pragma once

#include "gguf/gguf.h"

namespace redline {

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

}  // namespace redline
