// Whether a file is a GGUF file, looked at alone: also a later part of a split model, or one of which only
// the beginning is there.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace redline {

// Which part of a split model a file says it is, from 0; a file that says nothing is 0 of 1.
struct SplitPart {
    uint64_t index = 0;
    uint64_t count = 1;
};

// The header must be sound, and all tensors must lie within the file.
Result<SplitPart> check_gguf_file(const std::string& path);
// Whether a GGUF file may begin with these bytes; the error says what `name` is instead.
Status check_gguf_start(std::span<const std::byte> start, const std::string& name);

}  // namespace redline
