// Parts of the keys that kernel_key() and handed_key() make. Names of slots, weights and caches are not in a
// key, nor is the length of the context.
#pragma once

#include <cstdint>
#include <string_view>

namespace redline {

// The version of files that store such keys. It rises when the same key may name another kernel than before.
constexpr uint64_t kKernelKeyVersion = 2;

// The readable part of a key: without the fingerprint.
std::string_view kernel_text(std::string_view key);

}  // namespace redline
