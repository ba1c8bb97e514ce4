// Strings that several patterns describe together, as a deterministic automaton.
#pragma once

#include "grammar/pattern.h"

#include <optional>

namespace redline {

struct Dfa {
    struct Edge {
        CharacterSet set;
        uint32_t to;
    };
    struct State {
        std::vector<Edge> edges;  // their sets exclude each other
        bool ends = false;
    };
    std::vector<State> states;  // [0]: the start; none: there is no string. From each an end is reached.
};

struct Condition {
    Pattern pattern;  // found somewhere in the string, as in JSON schemas
    bool negated = false;
};

// The smallest such automaton; nothing when it, or the way there, has too many states.
std::optional<Dfa> intersection(const std::vector<Condition>& conditions);

bool matches(const Dfa& dfa, std::string_view text);

}  // namespace redline
