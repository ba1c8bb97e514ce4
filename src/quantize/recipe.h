// The choice of a format for each tensor: the mixes of llama.cpp, by its names, so that files of the same
// name are alike in size and quality.
#pragma once

#include "gguf/gguf.h"

namespace redline {

// Kinds of matrices to which some mixes give another format than their base. `values`: matrices that compute
// the values of attention, alone, with queries and keys, or from a latent.
enum class Part : uint8_t { other, output, embedding, queries, keys, values, attention_output, down };

// The layers that a rule applies to, or the matrices of a kind in their order.
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
    std::string_view name;             // as users and other programs write it: "Q4_K_M"
    std::string_view summary;          // for the help
    uint32_t file_type;                // general.file_type
    std::string_view base;             // format of the matrices
    std::span<const Rule> rules = {};  // the first that applies replaces the base
};

std::span<const Recipe> recipes();
// Finds a recipe by name, in any case of letters; null when there is none. Q4_K means Q4_K_M, and so on.
const Recipe* find_recipe(std::string_view name);

struct MixOptions {
    bool measured = false;  // there is an importance matrix
    bool pure = false;      // uses the base format for every matrix
};

// The name of the new format for each tensor of the file; empty where it is copied: vectors, norms,
// convolutions, and the small matrices that choose experts. Where a row is no multiple of a format's block, a
// substitute is chosen.
Result<std::vector<std::string_view>> choose_formats(const Recipe& recipe, const Gguf& source,
                                                     const MixOptions& options);

}  // namespace redline
