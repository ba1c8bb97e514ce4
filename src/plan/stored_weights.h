// The formats in which a backend stores weights: matrices in a format that it has no kernels for are decoded
// to F16 while they are loaded. Backend::load() and lower() take care of it, so that no backend meets such a
// format.
#pragma once

#include "plan/backend.h"

namespace redline {

// `format` itself or F16.
const Format& stored_format(const Format& format, const Backend& backend);
// The weights as Backend::load() places them. Vectors keep their format: every backend decodes those to f32.
std::vector<WeightInfo> stored_weights(std::span<const WeightInfo> weights, const Backend& backend);

// Matrices of one format that are decoded while they are loaded.
struct DecodedFormat {
    const Format* format = nullptr;
    uint64_t tensors = 0;
    uint64_t file_bytes = 0;
    uint64_t stored_bytes = 0;
};
std::vector<DecodedFormat> decoded_formats(std::span<const WeightInfo> weights, const Backend& backend);

}  // namespace redline
