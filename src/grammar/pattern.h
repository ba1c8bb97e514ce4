// Parses the regular expressions of JSON schemas into trees: the syntax that ECMA-262, Python and Rust's
// regex crate share, and a few extensions of each.
#pragma once

#include "base/result.h"
#include "grammar/character_set.h"

#include <limits>
#include <string_view>
#include <vector>

namespace redline {

struct Pattern {
    enum class Kind : uint8_t {
        set,       // one character
        sequence,  // all parts; without parts the empty text
        either,    // one of the parts
        repeat,    // parts[0], `least` to `most` times
        begin,     // ^
        end,       // $
        ahead      // a lookahead: the text must begin with parts[0], or must not
    };
    static constexpr uint32_t kUnbounded = std::numeric_limits<uint32_t>::max();

    Kind kind = Kind::sequence;
    CharacterSet set;
    std::vector<Pattern> parts;
    uint32_t least = 0;
    uint32_t most = 0;
    bool negated = false;
};

// Errors name the part of the expression that is not supported, and its character.
Result<Pattern> parse_pattern(std::string_view text);

// The pattern of exactly this text; for the empty text a sequence without parts.
Pattern text_pattern(std::string_view text);
Pattern sequence_of(std::vector<Pattern> parts);
Pattern repeat_of(Pattern part, uint32_t least, uint32_t most);

// Bounds on the number of characters of matching texts; they may be too wide, never too narrow.
struct PatternLengths {
    uint64_t least = 0;
    uint64_t most = 0;  // kUnbounded and more: any number
};
PatternLengths pattern_lengths(const Pattern& pattern);

}  // namespace redline
