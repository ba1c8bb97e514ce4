// Matches a grammar byte by byte. A state is the set of all stacks that the text so far allows; stacks share
// their lower parts, states and the steps between them are made once, when they are first needed.
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
    using Stack = uint32_t;  // its top element, with the rest below
    using State = uint32_t;
    static constexpr Stack kEmpty = 0;    // the text may end
    static constexpr Stack kUnknown = 1;  // what lies below is left open
    static constexpr State kDead = 0;     // no text goes on from here

    // A place in the grammar. In a repetition, how often it must and may still be passed; in a counted rule,
    // how many steps must and may still be taken. A joint stands for several stacks, below a top that they
    // share; it is on no top of a state.
    struct Element {
        uint32_t position = 0;
        uint32_t least = 0;
        uint32_t most = 0;
        Stack below = kEmpty;
        bool operator==(const Element&) const = default;
    };

    // The grammar must stay.
    explicit Automaton(const Grammar& grammar);

    State start();
    State step(State from, uint8_t byte) {
        const Steps* steps = states_[from].steps.get();
        const State known = steps ? (*steps)[byte] : kUnset;
        return known != kUnset ? known : make_step(from, byte);
    }
    // Passes a token that the grammar names, by the tops that `takes` is true for.
    template <typename Takes>
    State step_token(State from, Takes takes);

    // Each on top of a character set or a token; never kEmpty or kUnknown.
    std::span<const Stack> stacks(State state) const { return states_[state].stacks; }
    bool can_end(State state) const { return states_[state].can_end; }
    bool escapes(State state) const { return states_[state].escapes; }  // reached kUnknown
    bool inside_character(State state) const { return states_[state].missing > 0; }

    const Element& element(Stack stack) const { return elements_[stack]; }
    // The stacks below another one have smaller numbers than that.
    bool is_joint(Stack stack) const { return elements_[stack].position == kJoint; }
    std::span<const Stack> joined(Stack joint) const {
        return std::span(joined_).subspan(elements_[joint].least, elements_[joint].most);
    }
    const Symbol& symbol(Stack stack) const { return grammar_.symbols()[elements_[stack].position]; }
    Stack push(const Element& element);
    State state_of(Stack stack);  // of a single stack, whatever is on top

    // The state of all stacks of both, of which none may be inside a character.
    State join(State a, State b);

    // Work is counted; a grammar that is matched in too many ways at once is an error from then on.
    void begin_work() { work_ = 0; }
    void add_work(uint64_t steps) { work_ += steps; }
    Status check() const;
    // True when it is time to forget: then all states and stacks are made anew, but for the returned one.
    bool is_full() const;
    State forget_all_but(State state);

private:
    static constexpr State kUnset = ~State(0);
    // In place of a position: `most` members stand at `least` in joined_.
    static constexpr uint32_t kJoint = ~uint32_t(0);
    using Steps = std::array<State, 256>;
    struct StateData {
        std::vector<Stack> stacks;  // ascending
        bool can_end = false;
        bool escapes = false;
        uint8_t missing = 0;  // bytes of the character that has begun
        bool any = false;     // all stacks take that character, whatever its other bytes are
        char32_t code = 0;    // of it, so far
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
    // The rest of the alternative behind an element. Steps that are left go along.
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
    // While a state is made: what is still to be expanded, when each stack was last seen, what was found.
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
