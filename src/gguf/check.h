// Checks a single GGUF file, also a later part of a split model, or the beginning of a file.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace redline {

// The part of a split model that a file claims to be, from 0; without a claim it is 0 of 1.
struct SplitPart {
    uint64_t index = 0;
    uint64_t count = 1;
};

// The header must be sound, and all tensors must lie within the file.
Result<SplitPart> check_gguf_file(const std::string& path);
// Checks that a GGUF file may begin with these bytes; the error names the kind of file that `name` is.
Status check_gguf_start(std::span<const std::byte> start, const std::string& name);

}  // namespace redline
