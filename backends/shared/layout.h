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
};

// Null when there is none for the format.
const WeightLayout* weight_layout(const Format& format);

// How far a weight's elements are from what kernels for matrix units, which multiply halfs, make of them.
Rounding rounding_to_halves(const Format& format);

}  // namespace redline
