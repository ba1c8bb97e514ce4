// The ids by which a GGUF file tells the types of metadata values apart: those that reader and writer name.
#pragma once

#include <cstdint>

namespace redline::gguf_type {

enum : uint32_t { kU32 = 4, kBool = 7, kString = 8, kArray = 9, kTypes = 13 };

}  // namespace redline::gguf_type
