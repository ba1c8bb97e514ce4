// Scans many floats at once, in the compiler's vector types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace redline::floats {

// The vector width of the smallest CPUs; four vectors make a block.
inline constexpr size_t kLanes = 4;
inline constexpr size_t kBlock = 4 * kLanes;
typedef float Floats __attribute__((vector_size(kLanes * sizeof(float))));
typedef int32_t Mask __attribute__((vector_size(kLanes * sizeof(int32_t))));

inline Floats load(const float* from) {
    Floats x;
    std::memcpy(&x, from, sizeof x);
    return x;
}

inline bool any(Mask mask) {
    uint64_t words[2];
    std::memcpy(words, &mask, sizeof mask);
    return (words[0] | words[1]) != 0;
}

// True when test(Floats) -> Mask holds for any of the 16 values.
template <typename Test>
bool any_of_block(const float* block, Test test) {
    return any((test(load(block)) | test(load(block + kLanes))) |
               (test(load(block + 2 * kLanes)) | test(load(block + 3 * kLanes))));
}

}  // namespace redline::floats
