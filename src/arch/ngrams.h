// A table of n-grams (n of 2 and more): each token has rows of it, whose numbers are hashes of the token and
// its predecessors. The table is larger than all other weights of a model, and stays in the file: rows are
// read as tokens come.
#pragma once

#include "gguf/gguf.h"
#include "text/tokens/vocabulary.h"

namespace redline {

struct NgramTable {
    std::string tensor;                  // (rows, width)
    uint32_t width = 0;                  // elements of a row
    uint32_t heads = 0;                  // rows for each n
    std::vector<uint64_t> multipliers;   // for a token, its predecessor, and so on
    std::vector<uint64_t> sizes, first;  // by n, then head: how many rows, and the first of them
    Token end = -1;                      // ends a text: nothing before it is a predecessor

    uint32_t floats() const { return uint32_t(sizes.size()) * width; }  // for each token
    size_t reach() const { return multipliers.size() - 1; }  // predecessors that a token's rows depend on
    // The rows of text[index].
    std::vector<uint64_t> rows_of(std::span<const Token> text, size_t index) const;
    // For each token of `text` from `begin` on, its rows one after another.
    Status look_up(const Gguf& gguf, std::span<const Token> text, size_t begin, std::span<float> out) const;
};

}  // namespace redline
