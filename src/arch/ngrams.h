// A table of n-grams (n of 2 and more): each token has rows of it, whose numbers are hashes of the token and
// its predecessors. It is larger than what else a model has, and stays in the file: rows are read as tokens
// come.
#pragma once

#include "gguf/gguf.h"
#include "text/tokens/vocabulary.h"

namespace redline {

struct NgramTable {
    std::string tensor;                  // of (rows, width); empty: the model has none
    uint32_t width = 0;                  // of a row
    uint32_t heads = 0;                  // rows for each n
    std::vector<uint64_t> multipliers;   // of a token, its predecessor, and so on
    std::vector<uint64_t> sizes, first;  // by n, then head: rows, and where they begin
    Token end = -1;                      // ends a text: nothing before it is a predecessor

    explicit operator bool() const { return !tensor.empty(); }
    uint32_t floats() const { return uint32_t(sizes.size()) * width; }  // of a token
    // The rows of text[index].
    std::vector<uint64_t> rows_of(std::span<const Token> text, size_t index) const;
    // For each token of `text` from `begin` on, its rows one after another.
    Status look_up(const Gguf& gguf, std::span<const Token> text, size_t begin, std::span<float> out) const;
};

}  // namespace redline
