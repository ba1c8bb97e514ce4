// How weights lie in device memory. Blocks of a quantized format are taken apart into units of 32 elements
// whose fields stand in planes, the widest field first, so that every field is aligned to its size and loads
// are wide; shaders/formats/*.glsl says what each plane holds. Float formats lie as in the file.
#pragma once

#include "plan/backend.h"

#include <array>
#include <span>

namespace redline {

struct WeightLayout {
    const char* name;  // of the format's snippet: "q4_k"
    uint32_t planes = 1;
    std::array<uint32_t, 4> bytes = {};  // of each plane, per block of the file
    bool quantized() const { return planes > 1; }
    // Takes `blocks` blocks of the file apart; out[p] is where plane p goes.
    void (*pack)(const std::byte* file, uint64_t blocks, const std::array<std::byte*, 4>& out) = nullptr;
    // Words that kernels look codes up in: see code_books.h. Behind the planes, unless kernels bring their
    // own.
    std::span<const uint32_t> book = {};
};

constexpr uint64_t kMostBookBytes = 4096;

// Where the code book of a part begins whose planes have so many bytes, and where the part ends with it.
inline uint64_t book_begin(uint64_t plane_bytes) {
    return (plane_bytes + 3) / 4 * 4;
}
inline uint64_t bytes_with_book(const WeightLayout& layout, uint64_t plane_bytes) {
    return layout.book.empty() ? plane_bytes : book_begin(plane_bytes) + layout.book.size_bytes();
}

// Null when there is none for the format.
const WeightLayout* weight_layout(const Format& format);

// How far a weight's elements are from what kernels for matrix units, which multiply halfs, make of them.
Rounding rounding_to_halves(const Format& format);

}  // namespace redline
