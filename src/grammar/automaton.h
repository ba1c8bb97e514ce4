// Matches a grammar byte by byte. A state is the set of all stacks that the text so far allows. Stacks share
// their lower parts; states and the steps between them are computed once, when they are first needed.
#pragma once

#include "grammar/grammar.h"

#include <array>
#include <map>
#include <memory>
#include <span>
#include <unordered_set>
#include <vector>

namespace redline {

class Automaton {
public:
    using Stack = uint32_t;  // the index of its top element
    using State = uint32_t;
    static constexpr Stack kEmpty = 0;    // the text may end
    static constexpr Stack kUnknown = 1;  // the elements below are not known
    static constexpr State kDead = 0;     // no text continues from here

    // A position in the grammar. In a repetition `least` and `most` are the passes that must and may still
    // follow; in a counted rule the steps. A joint stands for several stacks below a top that they share; it
    // is never the top of a state.
    struct Element {
        uint32_t position = 0;
        uint32_t least = 0;
        uint32_t most = 0;
        Stack below = kEmpty;
        bool operator==(const Element&) const = default;
    };

    // The grammar must outlive this.
    explicit Automaton(const Grammar& grammar);

    State start();
    State step(State from, uint8_t byte) {
        const Steps* steps = states_[from].steps.get();
        const State known = steps ? (*steps)[byte] : kUnset;
        return known != kUnset ? known : make_step(from, byte);
    }
    // Passes a token that the grammar names, where `takes` is true for the top symbol.
    template <typename Takes>
    State step_token(State from, Takes takes);

    // Each has a character set or a token on top; never kEmpty or kUnknown.
    std::span<const Stack> stacks(State state) const { return states_[state].stacks; }
    bool can_end(State state) const { return states_[state].can_end; }
    bool escapes(State state) const { return states_[state].escapes; }  // reached kUnknown
    bool inside_character(State state) const { return states_[state].missing > 0; }

    const Element& element(Stack stack) const { return elements_[stack]; }
    // Stacks below a stack have smaller indices.
    bool is_joint(Stack stack) const { return elements_[stack].position == kJoint; }
    std::span<const Stack> joined(Stack joint) const {
        return std::span(joined_).subspan(elements_[joint].least, elements_[joint].most);
    }
    const Symbol& symbol(Stack stack) const { return grammar_.symbols()[elements_[stack].position]; }
    Stack push(const Element& element);
    State state_of(Stack stack);  // the state of a single stack, whatever its top is

    // The state of the stacks of both; neither may be inside a character.
    State join(State a, State b);

    // Counts work; a grammar that matches in too many ways at once is an error from then on.
    void begin_work() { work_ = 0; }
    void add_work(uint64_t steps) { work_ += steps; }
    Status check() const;
    // True when memory is to be freed: forget_all_but() drops all states and stacks except the one it
    // returns.
    bool is_full() const;
    State forget_all_but(State state);

private:
    static constexpr State kUnset = ~State(0);
    // The position of a joint, whose `most` members begin at `least` in joined_.
    static constexpr uint32_t kJoint = ~uint32_t(0);
    using Steps = std::array<State, 256>;
    struct StateData {
        std::vector<Stack> stacks;  // ascending
        bool can_end = false;
        bool escapes = false;
        uint8_t missing = 0;  // bytes of the current character that are still to come
        bool any = false;     // all stacks accept the current character, whatever its other bytes are
        char32_t code = 0;    // the bits of the current character so far
        std::unique_ptr<Steps> steps;
        bool same(const StateData& other) const;
    };
    struct ElementHash {
        const Automaton* automaton;
        size_t operator()(Stack stack) const;
    };
    struct ElementEqual {
        const Automaton* automaton;
        bool operator()(Stack a, Stack b) const { return automaton->elements_[a] == automaton->elements_[b]; }
    };
    struct StateHash {
        const Automaton* automaton;
        size_t operator()(State state) const;
    };
    struct StateEqual {
        const Automaton* automaton;
        bool operator()(State a, State b) const { return automaton->states_[a].same(automaton->states_[b]); }
    };

    void reset();
    Stack enter(uint32_t position, Stack below, uint32_t least = 0, uint32_t most = 0);
    // The rest of the alternative behind an element, with the remaining steps.
    Stack pass(const Element& element) {
        const bool counts = symbol_at(element.position).kind != Symbol::Kind::repeat &&
                            symbol_at(element.position).kind != Symbol::Kind::counted;
        return enter(element.position + 1, element.below, counts ? element.least : 0,
                     counts ? element.most : 0);
    }
    const Symbol& symbol_at(uint32_t position) const { return grammar_.symbols()[position]; }
    void take_step(const Element& top, uint32_t rule);
    void follow(Stack stack) { waiting_.push_back(stack); }
    State settle();
    void expand(Stack stack);
    void merge_tops();
    Stack joint_of(std::vector<Stack> members);
    State intern(StateData data);
    State make_step(State from, uint8_t byte);
    State step_character(const StateData& from, char32_t code, bool any);
    State narrow(const StateData& from, char32_t code, uint8_t missing, char32_t least);

    const Grammar& grammar_;
    std::vector<Element> elements_;
    std::vector<Stack> joined_;  // members of joints
    std::vector<StateData> states_;
    std::map<std::vector<Stack>, Stack> known_joints_;
    std::unordered_set<Stack, ElementHash, ElementEqual> known_elements_;
    std::unordered_set<State, StateHash, StateEqual> known_states_;
    // Temporaries of a state being computed: stacks to expand, the round in which each stack was last seen,
    // results.
    std::vector<Stack> waiting_;
    std::vector<uint32_t> seen_;
    uint32_t round_ = 0;
    StateData found_;
    uint64_t work_ = 0;
    bool failed_ = false;
};

template <typename Takes>
Automaton::State Automaton::step_token(State from, Takes takes) {
    if (inside_character(from)) return kDead;
    for (const Stack stack : states_[from].stacks)
        if (takes(symbol(stack))) follow(pass(Element(elements_[stack])));
    return settle();
}

}  // namespace redline
