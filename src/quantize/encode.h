// Encoders: from floats to the blocks of a format. Each searches for the block with the least sum of weighted
// squared errors, by trying scales and solving for the best one.
#pragma once

#include "formats/format.h"

namespace redline {

struct Encoder {
    const Format* format;
    // Encodes `count` finite floats, a multiple of the format's block. `weights` are the weights of their
    // squared errors: finite, not negative, and about 1 on average, so that no sum underflows. Null: all
    // alike.
    void (*encode)(const float* values, const float* weights, std::byte* blocks, size_t count);
};

// Null when there is none for the format of this name. All formats that recipes() name have one, except F32.
const Encoder* find_encoder(std::string_view format);

// Each encodes one block; `weights` is not null.
using EncodeBlock = void(const float* values, const float* weights, std::byte* block);
EncodeBlock encode_q8_0, encode_q4_0, encode_q5_0, encode_q4_1, encode_q5_1, encode_iq4_nl, encode_mxfp4;
EncodeBlock encode_q2_k, encode_q4_k, encode_q5_k;
EncodeBlock encode_q3_k, encode_q6_k, encode_iq4_xs;

}  // namespace redline
