// The strings that satisfy several patterns, as a deterministic automaton.
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
        std::vector<Edge> edges;  // with disjoint sets
        bool ends = false;
    };
    std::vector<State>
        states;  // [0]: the start; empty: there is no such string. An end can be reached from each.
};

struct Condition {
    Pattern pattern;  // to be found anywhere in the string, as in JSON schemas
    bool negated = false;
};

// The smallest such automaton; empty when it, or an intermediate one, has too many states.
std::optional<Dfa> intersection(const std::vector<Condition>& conditions);

bool matches(const Dfa& dfa, std::string_view text);

}  // namespace redline
