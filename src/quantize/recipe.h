// Which format each tensor of a model gets: the mixes of llama.cpp, by its names, so that files of one name
// are alike in size and quality.
#pragma once

#include "gguf/gguf.h"

namespace redline {

// Matrices that some mixes give another format than their base; `values`: those that make values of
// attention, alone, with queries and keys, or from a latent.
enum class Part : uint8_t { other, output, embedding, queries, keys, values, attention_output, down };

// Among the layers, or the matrices of a kind in their order.
enum class Where : uint8_t {
    everywhere,
    more_bits,  // the first and the last eighth, and every third one between
    first_two,
    first_four,
    first_eighth,
    first_sixteenth,
    grouped,                // where four heads or more share keys and values
    first_eighth_measured,  // with an importance matrix
    first_eighth_unmeasured,
};

struct Rule {
    Part part;
    Where where;
    std::string_view format;
};

struct Recipe {
    std::string_view name;             // as the user and the ecosystem write it: "Q4_K_M"
    std::string_view summary;          // for the help
    uint32_t file_type;                // general.file_type
    std::string_view base;             // format of the matrices
    std::span<const Rule> rules = {};  // the first that holds, in place of the base
};

std::span<const Recipe> recipes();
// Null when there is none of that name, in any case of letters; Q4_K is Q4_K_M, and so on.
const Recipe* find_recipe(std::string_view name);

struct MixOptions {
    bool measured = false;  // there is an importance matrix
    bool pure = false;      // the base for every matrix
};

// For each tensor of the file the name of its new format; empty where it stays as it is: vectors, norms,
// convolutions, and the small matrices that choose experts. Where rows do not divide into the blocks of a
// format a substitute is taken.
Result<std::vector<std::string_view>> choose_formats(const Recipe& recipe, const Gguf& source,
                                                     const MixOptions& options);

}  // namespace redline
