// Bytes of a table that the nibbles of a word name.
#pragma once

#include "kernels/wave.h"

namespace redline::hip {

// Bytes of low:high that the nibbles of a word (0 to 7) name: by those below in its bytes, and by those
// above.
struct TwoWords {
    uint32_t below, above;
};
#if defined(__CUDACC__)
// By four neighbouring nibbles at once. None has its highest bit set, from which __byte_perm() would guard.
RL_DEVICE uint32_t pick_four(uint32_t nibbles, uint32_t low, uint32_t high) {
    uint32_t out;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(out) : "r"(low), "r"(high), "r"(nibbles));
    return out;
}
#endif
RL_DEVICE TwoWords pick_eight(uint32_t nibbles, uint32_t low, uint32_t high) {
#if defined(__CUDACC__)
    const uint32_t first = pick_four(nibbles, low, high), second = pick_four(nibbles >> 16, low, high);
    return {__byte_perm(first, second, 0x6420u), __byte_perm(first, second, 0x7531u)};
#else
    return {pick_bytes(nibbles & 0x0F0F0F0Fu, low, high),
            pick_bytes((nibbles >> 4) & 0x0F0F0F0Fu, low, high)};
#endif
}
// The same of 16 bytes, four words of levels.
RL_DEVICE TwoWords pick_levels(uint32_t nibbles, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
#if defined(__CUDACC__)
    const uint32_t select = nibbles & 0x77777777u, upper = ((nibbles >> 1) & 0x44444444u) | 0x32103210u;
    const auto four = [&](uint32_t s, uint32_t u) {
        return pick_four(u, pick_four(s, a, b), pick_four(s, c, d));
    };
    const uint32_t first = four(select, upper), second = four(select >> 16, upper >> 16);
    return {__byte_perm(first, second, 0x6420u), __byte_perm(first, second, 0x7531u)};
#else
    const auto four = [&](uint32_t n) {
        const uint32_t select = n & 0x07070707u, upper = ((n >> 1) & 0x04040404u) | 0x03020100u;
        return pick_bytes(upper, pick_bytes(select, a, b), pick_bytes(select, c, d));
    };
    return {four(nibbles), four(nibbles >> 4)};
#endif
}

// Twice the E2M1 numbers by the nibbles that backends/shared/layout.cpp has for them.
RL_DEVICE TwoWords pick_e2m1(uint32_t nibbles) {
    return pick_levels(nibbles, 0xFDFCF4FAu, 0x0100F8FEu, 0x0804FF02u, 0x0C080306u);
}

}  // namespace redline::hip
