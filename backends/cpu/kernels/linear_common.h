// What the matrix kernels of every level share. Only for files that are compiled for one level: everything
// here has internal linkage and is inlined, for a function with AVX-512 code that the linker also used for
// other files would crash an older CPU. For the same reason nothing of the standard library is called.
#pragma once

#include "linear.h"

#include <utility>

#define RL_ALWAYS_INLINE __attribute__((always_inline))

namespace redline::cpu {
namespace {

template <int kValue>
struct Index {
    constexpr RL_ALWAYS_INLINE operator int() const { return kValue; }
};

template <class Body, int kBegin, int... kAt>
RL_ALWAYS_INLINE inline void unroll_each(Body& body, std::integer_sequence<int, kAt...>, Index<kBegin>) {
    (body(Index<kBegin + kAt>{}), ...);
}

// Calls body(Index<kBegin>{}) .. body(Index<kEnd - 1>{}). All calls are in one function: were each inlined
// into the one before it, the compiler would optimise the last of n calls n times.
template <int kBegin, int kEnd, class Body>
RL_ALWAYS_INLINE inline void unroll(Body&& body) {
    if constexpr (kBegin < kEnd)
        unroll_each(body, std::make_integer_sequence<int, kEnd - kBegin>{}, Index<kBegin>{});
}

// A pointer of unknown origin: loads through it are not moved out of a loop. Hoisted, the activations of a
// block would be spilled, and each broadcast of one from a register costs a vector instruction that memory
// does not.
template <class T>
RL_ALWAYS_INLINE inline T* opaque(T* pointer) {
    asm("" : "+r"(pointer));
    return pointer;
}

RL_ALWAYS_INLINE inline size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

// The sizes of a packed matrix, as numbers.
struct PanelView {
    const uint8_t* data;
    size_t panel_bytes;
    size_t blocks;  // along the columns
    size_t rows;
    const uint8_t* next;  // read after the panels of a product; null: the panel that follows them

    RL_ALWAYS_INLINE explicit PanelView(const PackedMatrix& w)
        : data(reinterpret_cast<const uint8_t*>(w.data)),
          panel_bytes(kPanelRows * (w.cols / w.format->block * packed_block_bytes(*w.format))),
          blocks(w.cols / w.format->block),
          rows(w.rows),
          next(reinterpret_cast<const uint8_t*>(w.next)) {}
    RL_ALWAYS_INLINE const uint8_t* panel(size_t p) const { return data + p * panel_bytes; }
    // From the end of panel p to the panel that is read after p .. p + streams of those before `end`.
    RL_ALWAYS_INLINE ptrdiff_t jump(size_t p, size_t streams, size_t end) const {
        const uint8_t* then = next && p + streams >= end ? next : panel(p + streams);
        return then - panel(p + 1);
    }
    RL_ALWAYS_INLINE unsigned rows_in(size_t p) const {
        return unsigned(smaller(kPanelRows, rows - p * kPanelRows));
    }
};

}  // namespace
}  // namespace redline::cpu
