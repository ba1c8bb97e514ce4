// Patterns as rules of GBNF. They match the characters of a string as JSON writes it, without its quotes;
// some characters are escapes there, in their short form where there is one.
#pragma once

#include "grammar/json_rules.h"
#include "grammar/language.h"

namespace redline {

// Strings in which the pattern is found. Nothing: it has anchors or conditions inside, or it repeats what may
// be empty, so that only its automaton says it.
std::optional<std::string> pattern_rule(const Pattern& pattern);

// The strings of an automaton that has a state, between `least` and `most` characters long.
std::string dfa_rule(JsonRules& rules, const Dfa& dfa, uint64_t least, std::optional<uint64_t> most);

}  // namespace redline
