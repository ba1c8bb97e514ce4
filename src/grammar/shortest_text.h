// Finds a short text that completes what a grammar has begun: the shortest one of each rule, computed once,
// and for counted steps a short one that meets the count.
#pragma once

#include "grammar/automaton.h"

#include <map>
#include <optional>
#include <span>

namespace redline {

class ShortestText {
public:
    // The grammar must outlive this. Texts with named tokens are not considered.
    explicit ShortestText(const Grammar& grammar);

    // Empty: no text of at most `most` bytes is known. The automaton must be one of the grammar.
    std::optional<std::string> complete(Automaton& automaton, Automaton::State state, uint64_t most) const;

private:
    // The next symbol, with the counts of an Automaton::Element.
    struct Place {
        uint32_t position = 0;
        uint32_t least = 0;
        uint32_t most = 0;
    };

    static bool calls(const Symbol& symbol);
    // The rule that a symbol calls, and how often.
    static Grammar::Repeat limits(const Grammar& grammar, const Symbol& symbol);
    uint64_t length(const Symbol& symbol, uint32_t least) const;
    uint64_t alternative_length(uint32_t first) const;
    // The shortest way through each joint that lies below a stack.
    struct Way {
        uint64_t length;
        Automaton::Stack member;
    };
    using Ways = std::map<Automaton::Stack, Way>;
    Ways ways_below(const Automaton& automaton, std::span<const Automaton::Stack> stacks) const;
    uint64_t stack_length(const Automaton& automaton, const Ways& ways, Automaton::Stack stack) const;
    Place enter(uint32_t position, uint32_t least = 0, uint32_t most = 0) const;
    std::optional<Place> next_step(uint32_t rule, const Place& place) const;
    bool write(Place place, uint64_t most, std::string& text) const;

    const Grammar& grammar_;
    std::vector<char32_t> characters_;  // for each set a character with the fewest bytes
    std::vector<uint64_t> rules_;       // bytes of each rule's shortest text
    std::vector<uint32_t> best_;        // the alternative with that text
    std::vector<uint64_t> rests_;       // by position: bytes up to the end of the alternative
};

}  // namespace redline
