// The normalization rules of SentencePiece as GGUF carries them (tokenizer.ggml.precompiled_charsmap): texts
// to replace, in a double-array trie, and their replacements.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace redline {

class CharsMap {
public:
    struct Rule {
        size_t bytes = 0;  // length of the replaced text; 0: no rule applies
        std::string_view replacement;
    };

    CharsMap() = default;  // no rules
    // `stored`: the trie's size in bytes (u32), the trie (u32 each, little endian) and the replacements, each
    // ended by a zero byte. Inconsistent sizes are errors.
    static Result<CharsMap> read(std::string_view stored);

    // The rule for the longest text that begins at `at`.
    Rule find(std::string_view text, size_t at) const;

private:
    std::vector<uint32_t> trie_;
    std::string replacements_;
};

}  // namespace redline
