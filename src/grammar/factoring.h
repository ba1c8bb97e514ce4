// Left-factors alternatives: those that begin with the same symbols share these, so that the matcher follows
// one way instead of many. The language stays the same.
#pragma once

#include "grammar/grammar.h"

#include <array>
#include <bitset>
#include <deque>
#include <map>
#include <optional>

namespace redline {

class Factoring {
public:
    using Sequence = std::vector<Symbol>;
    using Alternatives = std::vector<Sequence>;

    // `rules` are the grammar's, already checked for left recursion. They are rewritten, and new ones are
    // appended.
    Factoring(std::vector<Alternatives>& rules, const Grammar& grammar);

    void run();
    // The original rule that each added rule belongs to.
    const std::vector<uint32_t>& owners() const { return owners_; }
    // The most alternatives in one place that still may begin with the same character.
    const std::optional<Grammar::Crowd>& crowd() const { return crowd_; }

private:
    // The rest of an alternative with all that follows: a linked list whose ends are shared.
    using Tail = uint32_t;
    static constexpr Tail kEnd = 0;
    // First characters; beyond ASCII several share a bit.
    using First = std::bitset<256>;
    struct Node {
        Symbol symbol;
        Tail next = kEnd;
        uint32_t level = 0;  // rules inlined around it
        First first;
        bool nullable = false;
    };
    using Set = std::vector<Tail>;  // ascending
    // Tails of a set, grouped by the symbol that they begin with, which is removed.
    struct Groups {
        std::map<std::array<uint32_t, 4>, std::pair<Symbol, Set>> by_symbol;
        bool ends = false;
    };

    uint32_t callee(const Symbol& symbol) const;
    void find_firsts();
    First first_of(const Symbol& symbol) const;
    bool nullable(const Symbol& symbol) const;
    bool has_steps(uint32_t rule) const;
    std::optional<std::array<uint32_t, 4>> head(const Sequence& sequence) const;
    bool begin_alike(const Alternatives& alternatives) const;
    std::array<uint32_t, 4> key(const Symbol& symbol) const;
    Tail push(const Symbol& symbol, Tail next, uint32_t level);
    Tail push(const Sequence& sequence, Tail next);
    First first_of(const std::pair<Symbol, Set>& group) const;
    bool expandable(const std::pair<Symbol, Set>& group) const;
    void add(Groups& groups, Tail tail) const;
    bool expand_overlapping(Groups& groups);
    Groups split(const Set& set);
    void note_crowd(const Groups& groups, uint32_t owner);
    void note_crowd(size_t alternatives, uint32_t owner);
    bool spent() const;
    uint32_t rule_of(Set set, uint32_t owner);
    void append(Sequence& sequence, Set set, uint32_t owner);
    void append(Sequence& sequence, Tail tail) const;
    Alternatives written(const Groups& groups, uint32_t owner);

    std::vector<Alternatives>& rules_;
    const Grammar& grammar_;
    const size_t given_;  // rules
    std::vector<First> firsts_;
    std::vector<uint32_t> owners_;
    std::optional<Grammar::Crowd> crowd_;
    std::vector<Node> nodes_;
    std::map<std::array<uint32_t, 3>, Tail> known_nodes_;
    std::map<Set, uint32_t> known_sets_;            // rules
    std::deque<std::pair<Set, uint32_t>> waiting_;  // sets whose rules are still to be written
    size_t work_ = 0;
    size_t most_work_ = 0;
};

}  // namespace redline
