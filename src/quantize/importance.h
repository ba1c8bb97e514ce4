// An importance matrix: the mean squares of the inputs of a model's matrices on a text, column by column.
// Encoders weight the errors of weights by it, since an error is multiplied by its input.
#pragma once

#include "gguf/gguf.h"

#include <map>

namespace redline {

struct TensorImportance {
    // For each matrix of the tensor (experts, heads) the sums of squares of its input's columns.
    std::vector<float> squares;
    // The number of inputs of each matrix; a single number is for all of them.
    std::vector<float> counts;
};

struct Importance {
    std::map<std::string, TensorImportance, std::less<>> tensors;
    std::vector<std::string> datasets;  // names of the texts
    uint64_t chunks = 0;
    uint64_t chunk_tokens = 0;
};

// Reads a file of llama-imatrix: in GGUF form, or the older .dat.
Result<Importance> read_importance(const std::string& path);

// Writes a file in GGUF form, whole or not at all.
Status write_importance(const std::string& path, const Importance& importance);

// The weights of one tensor's columns for an encoder; each matrix has a mean of 1. A matrix without data has
// all ones, and is counted.
struct ColumnWeights {
    std::vector<float> weights;  // (matrices, columns); empty: no data at all
    uint64_t unmeasured = 0;     // matrices
};
// An error when the importance matrix has another shape than the tensor.
Result<ColumnWeights> column_weights(const Importance& importance, const Tensor& tensor);

}  // namespace redline
