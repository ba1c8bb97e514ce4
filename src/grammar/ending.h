// How a text that a grammar binds is brought to its end in few tokens, so that a limit does not cut it.
#pragma once

#include "grammar/shortest_text.h"
#include "grammar/token_table.h"

namespace redline {

class Ending {
public:
    // Both must stay; the table is that of the tokens that go through the grammar.
    Ending(const Grammar& grammar, const TokenTable& table) : texts_(grammar), table_(table) {}

    // The fewest tokens of a short text that completes the state. Nothing: none is known of at most `most`.
    std::optional<std::vector<int32_t>> find(Automaton& automaton, Automaton::State state, uint64_t most);
    // True when find() would give some, which is soon said while there is plenty of room.
    bool fits(Automaton& automaton, Automaton::State state, uint64_t most);

private:
    // How the last bytes of the text are written: in so many tokens, beginning with this one.
    struct Tail {
        uint64_t tokens = 0;
        int32_t first = -1;
    };

    std::optional<std::string> text(Automaton& automaton, Automaton::State state, uint64_t most) const;
    uint64_t split(std::string text);
    Tail split_at(std::string_view rest) const;

    const ShortestText texts_;
    const TokenTable& table_;
    std::string text_;         // that was split last: texts that follow on one another end alike
    std::vector<Tail> tails_;  // by the bytes of the rest
};

}  // namespace redline
