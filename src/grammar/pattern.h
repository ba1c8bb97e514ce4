// Regular expressions of JSON schemas as trees: what ECMA-262, Python and Rust's regex crate write alike, and
// the few things that only one of them does.
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
        ahead      // what follows begins with parts[0], or must not
    };
    static constexpr uint32_t kUnbounded = std::numeric_limits<uint32_t>::max();

    Kind kind = Kind::sequence;
    CharacterSet set;
    std::vector<Pattern> parts;
    uint32_t least = 0;
    uint32_t most = 0;
    bool negated = false;
};

// Errors say which part of the expression is not supported, and at which character.
Result<Pattern> parse_pattern(std::string_view text);

// The exact text; the empty text is a sequence without parts.
Pattern text_pattern(std::string_view text);
Pattern sequence_of(std::vector<Pattern> parts);
Pattern repeat_of(Pattern part, uint32_t least, uint32_t most);

// How many characters the texts have that match; a bound that is not tight errs to the outer side.
struct PatternLengths {
    uint64_t least = 0;
    uint64_t most = 0;  // kUnbounded and more: any number
};
PatternLengths pattern_lengths(const Pattern& pattern);

}  // namespace redline
