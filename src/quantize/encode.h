// Encoders: from floats to the blocks of a format. All of them look for the block that decodes to the least
// sum of squared errors, by trying scales and solving for the best one; none looks at what the weights are
// used for.
#pragma once

#include "formats/format.h"

namespace redline {

struct Encoder {
    const Format* format;
    // Encodes `count` finite floats, a multiple of the format's block.
    void (*encode)(const float* values, std::byte* blocks, size_t count);
};

// Null when there is none for the format of this name: "Q8_0", "Q4_0", "Q4_K", "Q6_K".
const Encoder* find_encoder(std::string_view format);

// One block each.
void encode_q8_0(const float* values, std::byte* block);
void encode_q4_0(const float* values, std::byte* block);
void encode_q4_k(const float* values, std::byte* block);
void encode_q6_k(const float* values, std::byte* block);

}  // namespace redline
