// Writes a copy of a model file with its matrices in smaller formats. It reads, encodes and writes a few rows
// at a time, so that memory stays bounded whatever the size of the model.
#pragma once

#include "base/file.h"
#include "quantize/importance.h"
#include "quantize/recipe.h"

#include <atomic>
#include <functional>

namespace redline {

struct QuantizeOptions {
    uint32_t threads = 1;
    bool allow_requantize = false;                          // accepts sources that are quantized already
    bool pure = false;                                      // the recipe's base format for every matrix
    const Importance* importance = nullptr;                 // null: all columns count alike
    std::function<void(uint64_t, uint64_t)> progress = {};  // bytes of the source done, and in all
    const std::atomic<bool>* cancel = nullptr;
};

struct QuantizedTensor {
    std::string name;
    std::string_view from, to;
    Shape shape;
    uint64_t bytes_before = 0, bytes_after = 0;
    double rmse = 0.0;  // root mean square of the differences between the new values and the old ones
    double rms = 0.0;   // of the old values
    // With an importance matrix, for encoded tensors: the number of matrices, and of those without data.
    uint64_t matrices = 0, unmeasured = 0;
};

struct QuantizeReport {
    std::vector<QuantizedTensor> tensors;        // in file order, including copied ones
    uint64_t bytes_before = 0, bytes_after = 0;  // of the tensors
    uint64_t file_bytes = 0;                     // of the new file
    bool cancelled = false;                      // the new file was not written
};

Result<QuantizeReport> quantize(const Gguf& source, const std::string& target, const Recipe& recipe,
                                const QuantizeOptions& options);

}  // namespace redline
