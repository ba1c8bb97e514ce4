// The ids of metadata value types in a GGUF file, as far as reader and writer name them.
#pragma once

#include <cstdint>

namespace redline::gguf_type {

enum : uint32_t { kU32 = 4, kBool = 7, kString = 8, kArray = 9, kTypes = 13 };

}  // namespace redline::gguf_type
