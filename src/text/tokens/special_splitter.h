// Finds the special tokens that are written out in a text and cuts it at them.
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
    // The tokens of `swallows` (ascending) take the white space on their right with them.
    SpecialSplitter() = default;
    SpecialSplitter(const Vocabulary& vocabulary, const std::vector<Token>& swallows);

    // The result is that of taking the special tokens longest first, each searched from left to right in all
    // text that is still raw. Control and unknown tokens count only where they lie whole inside one of
    // `trusted` (ascending, disjoint); user-defined tokens count everywhere. Empty raw fragments are left
    // out.
    std::vector<Fragment> split(std::string_view text, std::span<const TextRange> trusted) const;

private:
    struct Special {
        std::string text;
        Token token;
        bool anywhere;  // user-defined
        bool swallows;
    };
    class Run;

    std::vector<Special> specials_;         // by text, so that those with a common start are neighbours
    std::vector<uint32_t> rank_;            // place of each in the order longest first
    std::array<uint32_t, 257> first_ = {};  // specials_ by first byte: [first_[b], first_[b + 1])
};

}  // namespace redline
