// Finds the special tokens that are written out in a text and cuts the text at them.
#pragma once

#include "text/tokens/vocabulary.h"

#include <array>
#include <span>

namespace redline {

// A range of bytes of a text: a special token, or raw text (token = kNoToken).
struct Fragment {
    size_t begin = 0;
    size_t end = 0;
    Token token = kNoToken;
};

struct TextRange {
    size_t begin = 0;
    size_t end = 0;
};

class SpecialSplitter {
public:
    // The tokens of `swallows` (ascending) include the white space to their right.
    SpecialSplitter() = default;
    SpecialSplitter(const Vocabulary& vocabulary, const std::vector<Token>& swallows);

    // The result is that of taking the special tokens longest first, each searched from left to right in all
    // text that is still raw. Control and unknown tokens are found only entirely inside one of `trusted`
    // (ascending, disjoint); user-defined tokens everywhere. Empty raw fragments are omitted.
    std::vector<Fragment> split(std::string_view text, std::span<const TextRange> trusted) const;

private:
    struct Special {
        std::string text;
        Token token;
        bool anywhere;  // user-defined
        bool swallows;
    };
    class Run;

    std::vector<Special> specials_;  // sorted by text, so that those with a common prefix are neighbours
    std::vector<uint32_t> rank_;     // each one's place in the order longest first
    std::array<uint32_t, 257> first_ = {};  // specials_ by first byte: [first_[b], first_[b + 1])
};

}  // namespace redline
