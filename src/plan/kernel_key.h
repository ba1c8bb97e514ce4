// What there is to know of the keys that kernel_key() and int8_key() make. Names of slots, weights and caches
// are not part of them, nor is the length of the context.
#pragma once

#include <cstdint>
#include <string_view>

namespace redline {

// Of files that have such keys. It rises when what is kept under a key may be another kernel's by now.
constexpr uint64_t kKernelKeyVersion = 2;

// A key as people read it: without the fingerprint.
std::string_view kernel_text(std::string_view key);

}  // namespace redline
