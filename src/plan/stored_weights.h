// Weights as a backend keeps them: matrices in a format that it has no kernels for are decoded to halfs (F16)
// while they are loaded. Backend::load() and lower() see to it, so that no backend meets such a format.
#pragma once

#include "plan/backend.h"

namespace redline {

// `format` itself or F16.
const Format& stored_format(const Format& format, const Backend& backend);
// What Backend::load() places for `weights`. Vectors stay as they are: every backend decodes those to f32.
std::vector<WeightInfo> stored_weights(std::span<const WeightInfo> weights, const Backend& backend);

// Matrices of one format that are decoded.
struct DecodedFormat {
    const Format* format = nullptr;
    uint64_t tensors = 0;
    uint64_t file_bytes = 0;
    uint64_t stored_bytes = 0;
};
std::vector<DecodedFormat> decoded_formats(std::span<const WeightInfo> weights, const Backend& backend);

}  // namespace redline
