// Finds the tokens that complete a constrained text quickly, so that a limit does not cut it off.
#pragma once

#include "grammar/shortest_text.h"
#include "grammar/token_table.h"

namespace redline {

class Ending {
public:
    // Both must outlive this; the table's tokens are those of the constraint.
    Ending(const Grammar& grammar, const TokenTable& table) : texts_(grammar), table_(table) {}

    // The fewest tokens of a short text that completes the state. Empty: no ending of at most `most` is
    // known.
    std::optional<std::vector<int32_t>> find(Automaton& automaton, Automaton::State state, uint64_t most);
    // True when find() would return tokens, which is fast while there is plenty of room.
    bool fits(Automaton& automaton, Automaton::State state, uint64_t most);

private:
    // The split of the last bytes of the text: into `tokens` tokens, beginning with `first`.
    struct Tail {
        uint64_t tokens = 0;
        int32_t first = -1;
    };

    std::optional<std::string> text(Automaton& automaton, Automaton::State state, uint64_t most) const;
    uint64_t split(std::string text);
    Tail split_at(std::string_view rest) const;

    const ShortestText texts_;
    const TokenTable& table_;
    std::string text_;         // the text that was split last: consecutive texts have the same ending
    std::vector<Tail> tails_;  // by the number of remaining bytes
};

}  // namespace redline
