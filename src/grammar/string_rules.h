// Patterns as rules of GBNF. They match the characters inside of a JSON string; characters that need escapes
// are matched in their short form where there is one.
#pragma once

#include "grammar/json_rules.h"
#include "grammar/language.h"

namespace redline {

// Strings that contain the pattern. Empty: it has anchors or lookaheads inside, or repeats a part that may be
// empty, so that only its automaton can express it.
std::optional<std::string> pattern_rule(const Pattern& pattern);

// The strings of an automaton that has a state, between `least` and `most` characters long.
std::string dfa_rule(JsonRules& rules, const Dfa& dfa, uint64_t least, std::optional<uint64_t> most);

}  // namespace redline
