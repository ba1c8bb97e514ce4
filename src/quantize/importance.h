// An importance matrix: how large the inputs of a model's matrices are on a text, column by column. Encoders
// weigh the errors of weights by it, as an error counts as much as the input that it is multiplied by.
#pragma once

#include "gguf/gguf.h"

#include <map>

namespace redline {

struct TensorImportance {
    // For each matrix of the tensor (experts, heads) the sums of squares of its input's columns.
    std::vector<float> squares;
    // Inputs that each matrix has had; one number may be for all of them.
    std::vector<float> counts;
};

struct Importance {
    std::map<std::string, TensorImportance, std::less<>> tensors;
    std::vector<std::string> datasets;  // names of the texts
    uint64_t chunks = 0;
    uint64_t chunk_tokens = 0;
};

// Files of llama-imatrix: in GGUF form, or the older .dat.
Result<Importance> read_importance(const std::string& path);

// In GGUF form, whole or not at all.
Status write_importance(const std::string& path, const Importance& importance);

// The weights of one tensor's columns as encoders want them, each matrix with a mean of 1. A matrix without
// data has all ones, and is counted.
struct ColumnWeights {
    std::vector<float> weights;  // (matrices, columns); empty: no data at all
    uint64_t unmeasured = 0;     // matrices
};
// An error when the file's data are of another shape.
Result<ColumnWeights> column_weights(const Importance& importance, const Tensor& tensor);

}  // namespace redline
