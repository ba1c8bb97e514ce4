// Which format each tensor of a model gets.
#pragma once

#include "gguf/gguf.h"

namespace redline {

struct Recipe {
    std::string_view name;     // as the user and the ecosystem write it: "Q4_K_M"
    std::string_view summary;  // for the help
    uint32_t file_type;        // general.file_type
    std::string_view base;     // format of the matrices
    std::string_view output;   // of the output matrix, and of an embedding that serves as one
    std::string_view
        better;  // of attn_v and ffn_down in the layers chosen by gets_more_bits; empty: as the rest
};

std::span<const Recipe> recipes();
// Null when there is none of that name, in any case of letters.
const Recipe* find_recipe(std::string_view name);

// The first and the last eighth of the layers, and every third one between.
bool gets_more_bits(uint64_t layer, uint64_t layers);
// Matrices of weights. Vectors, norms, convolutions and the small matrices that choose experts stay as they
// are.
bool is_quantized(const GgufTensor& tensor);
// The name of the format for a tensor that is_quantized: the recipe's, or Q8_0 or F16 where the rows do not
// divide into blocks.
std::string_view format_for(const Recipe& recipe, const GgufTensor& tensor, uint64_t layers, bool tied);

}  // namespace redline
