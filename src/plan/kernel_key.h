// Parts of the keys that kernel_key() and handed_key() make. Names of slots, weights and caches are not in a
// key, nor is the length of the context.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace redline {

// The version of files that store such keys. It rises when the same key may name another kernel than before.
constexpr uint64_t kKernelKeyVersion = 2;

// A key or a verdict's key without the fingerprint, for people.
std::string kernel_text(std::string_view key);

// The key of a verdict: on a kernel in a variant, of which there is a taken_text(); by default the kernel's.
std::string verdict_key(std::string_view key, std::string_view taken);
// The kernel's key in it.
std::string_view kernel_of_verdict(std::string_view key);

}  // namespace redline
