// A pattern as a nondeterministic automaton; its sets of places are followed through a string.
#pragma once

#include "grammar/pattern.h"

#include <optional>
#include <set>

namespace redline {

class Nfa {
public:
    // A lookahead that is being checked: one of its nodes must still reach an end, or, negated, none may.
    struct Obligation {
        bool negated = false;
        std::set<uint32_t> nodes;
        auto operator<=>(const Obligation&) const = default;
    };
    struct Place {
        uint32_t node = 0;
        std::set<Obligation> obligations;
        auto operator<=>(const Place&) const = default;
    };
    using Places = std::set<Place>;

    // Matches strings that contain the pattern. It has too many nodes when fits() is false.
    explicit Nfa(const Pattern& pattern);
    bool fits() const;

    // These three return nothing when the places weigh too much.
    std::optional<Places> start() const;
    // The places after a character; `contains(set)` tells whether it is in a set.
    template <typename Contains>
    std::optional<Places> step(const Places& places, Contains contains) const;
    std::optional<bool> ends(const Places& places, bool at_start) const;
    // The size of the places with their lookaheads' nodes, for limits on memory and work.
    static size_t weight(const Places& places);
    // Adds the numbers of the sets that the next character is compared with.
    void add_sets(const Places& places, std::set<uint32_t>& numbers) const;
    const CharacterSet& set(uint32_t number) const { return sets_[number]; }

private:
    struct Node {
        enum class Kind : uint8_t { split, set, begin, end, ahead, accept };
        Kind kind = Kind::accept;
        std::vector<uint32_t> next;
        uint32_t number = 0;   // of a set; of a lookahead: its first node
        bool negated = false;  // for a lookahead
    };
    struct Edges {
        bool start = false;
        bool end = false;
    };

    uint32_t add(Node node);
    uint32_t build(const Pattern& pattern, uint32_t next);
    uint32_t build_repeat(const Pattern& pattern, uint32_t next);
    void close(uint32_t node, std::set<uint32_t>& out, Edges edges) const;
    // `work` counts the places followed, over several calls.
    void close(Place place, Places& out, Edges edges, size_t& work) const;
    static size_t weight(const Place& place);
    bool is_met(const Obligation& obligation) const { return obligation.nodes.count(kAccept) > 0; }
    template <typename Contains>
    bool step(std::set<Obligation>& obligations, Contains contains) const;

    static constexpr uint32_t kAccept = 0;
    static constexpr size_t kMostWeight = 200'000;  // of one step
    std::vector<Node> nodes_;
    std::vector<CharacterSet> sets_;
    uint32_t start_ = 0;
};

// Advances lookaheads by a character. False: one of them fails. Those that are fulfilled are removed.
template <typename Contains>
bool Nfa::step(std::set<Obligation>& obligations, Contains contains) const {
    std::set<Obligation> left;
    for (const Obligation& each : obligations) {
        Obligation next{each.negated, {}};
        for (const uint32_t node : each.nodes)
            if (nodes_[node].kind == Node::Kind::set && contains(nodes_[node].number))
                close(nodes_[node].next[0], next.nodes, {});
        if (is_met(next) ? next.negated : next.nodes.empty() && !next.negated) return false;
        if (!is_met(next) && !next.nodes.empty()) left.insert(std::move(next));
    }
    obligations = std::move(left);
    return true;
}

template <typename Contains>
std::optional<Nfa::Places> Nfa::step(const Places& places, Contains contains) const {
    Places out;
    size_t work = 0;
    for (const Place& place : places) {
        const Node& node = nodes_[place.node];
        if (node.kind != Node::Kind::set || !contains(node.number)) continue;
        Place next{node.next[0], place.obligations};
        if (step(next.obligations, contains)) close(std::move(next), out, {}, work);
        if (work > kMostWeight) return {};
    }
    return out;
}

}  // namespace redline
