#include "grammar/automaton.h"

#include <algorithm>

namespace redline {
namespace {

constexpr size_t kMostStacks = 4096;  // of one state
// With more stacks than this, stacks with equal tops are merged: their number is then bounded by the
// positions in the grammar, not by the number of ways to parse the text. With few stacks the elements below
// stay visible to the caches.
constexpr size_t kManyStacks = 64;
// The most work for one token, in steps from state to state; steps that have to be computed count more.
constexpr uint64_t kMostWork = 400'000'000;
constexpr uint64_t kExpanding = 16;
constexpr size_t kFullElements = 1'000'000;
constexpr size_t kMostElements = 5'000'000;
constexpr size_t kFullStates = 30'000;  // about 1 KB each

size_t mix(size_t hash, size_t value) {
    hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
    return hash ^ (hash >> 29);
}

}  // namespace

bool Automaton::StateData::same(const StateData& other) const {
    return stacks == other.stacks && can_end == other.can_end && escapes == other.escapes &&
           missing == other.missing && any == other.any && code == other.code;
}

size_t Automaton::ElementHash::operator()(Stack stack) const {
    const Element& e = automaton->elements_[stack];
    return mix(mix(mix(mix(0, e.position), e.least), e.most), e.below);
}

size_t Automaton::StateHash::operator()(State state) const {
    const StateData& data = automaton->states_[state];
    size_t hash = mix(size_t(data.code) * 8 + data.missing, size_t(data.can_end) + 2 * size_t(data.escapes));
    for (const Stack stack : data.stacks) hash = mix(hash, stack);
    return hash;
}

Automaton::Automaton(const Grammar& grammar)
    : grammar_(grammar),
      known_elements_(0, ElementHash{this}, ElementEqual{this}),
      known_states_(0, StateHash{this}, StateEqual{this}) {
    reset();
}

void Automaton::reset() {
    known_elements_.clear();
    known_states_.clear();
    known_joints_.clear();
    joined_.clear();
    elements_.assign(2, {});  // kEmpty and kUnknown, which equal no other element
    states_.clear();
    states_.emplace_back();  // kDead
    seen_.clear();
    intern({});
}

Status Automaton::check() const {
    if (failed_)
        return error(
            "the grammar can match this text in too many ways at once; say the same with fewer alternatives "
            "that "
            "begin alike");
    return {};
}

Automaton::Stack Automaton::push(const Element& element) {
    elements_.push_back(element);
    const auto [found, added] = known_elements_.insert(Stack(elements_.size() - 1));
    if (!added) elements_.pop_back();
    return *found;
}

// The stack for the rest of an alternative from `position` on, on top of `below`.
Automaton::Stack Automaton::enter(uint32_t position, Stack below, uint32_t least, uint32_t most) {
    const Symbol& symbol = symbol_at(position);
    if (symbol.kind == Symbol::Kind::end) return below;
    if (symbol.kind != Symbol::Kind::repeat && symbol.kind != Symbol::Kind::counted)
        return push({position, least, most, below});
    const bool repeats = symbol.kind == Symbol::Kind::repeat;
    const Grammar::Repeat& repeat = (repeats ? grammar_.repeats() : grammar_.counteds())[symbol.index];
    return push({position, repeat.least, repeat.most, below});
}

// Follows those steps of a counted rule from which the count can still be met.
void Automaton::take_step(const Element& top, uint32_t rule) {
    const Stack below = enter(top.position + 1, top.below);
    const uint32_t least = top.least - (top.least > 0 ? 1 : 0);
    const uint32_t most = top.most - (top.most != Grammar::kUnbounded ? 1 : 0);
    for (const uint32_t first : grammar_.rules()[rule].alternatives) {
        if (symbol_at(first).kind == Symbol::Kind::end) {
            if (top.least == 0) follow(below);
        } else if (top.most > 0 &&
                   grammar_.step_counts().reaches(grammar_.next_step(first).state, least, most)) {
            follow(enter(first, below, least, most));
        }
    }
}

// Replaces the top by the symbols that it may begin with.
void Automaton::expand(Stack stack) {
    if (stack == kEmpty) found_.can_end = true;
    if (stack == kUnknown) found_.escapes = true;
    if (stack == kEmpty || stack == kUnknown) return;
    if (seen_.size() < elements_.size()) seen_.resize(elements_.size() + elements_.size() / 2, 0);
    if (std::exchange(seen_[stack], round_) == round_) return;
    work_ += kExpanding;
    if (is_joint(stack)) {
        for (const Stack member : joined(stack)) follow(member);
        return;
    }
    const Element top = elements_[stack];
    const Symbol& symbol = symbol_at(top.position);
    if (symbol.kind == Symbol::Kind::rule) {
        const Stack below = pass(top);
        for (const uint32_t first : grammar_.rules()[symbol.index].alternatives) follow(enter(first, below));
    } else if (symbol.kind == Symbol::Kind::repeat) {
        if (top.least == 0) follow(enter(top.position + 1, top.below));
        if (top.most == 0) return;
        Element next = top;
        next.least -= top.least > 0 ? 1 : 0;
        next.most -= top.most != Grammar::kUnbounded ? 1 : 0;
        const Stack below = push(next);
        const uint32_t body = grammar_.repeats()[symbol.index].rule;
        for (const uint32_t first : grammar_.rules()[body].alternatives) follow(enter(first, below));
    } else if (symbol.kind == Symbol::Kind::counted) {
        take_step(top, grammar_.counteds()[symbol.index].rule);
    } else if (symbol.kind == Symbol::Kind::step) {
        take_step(top, symbol.index);
    } else {
        found_.stacks.push_back(stack);
    }
}

// One stack for a set of stacks; joints among them are replaced by their members.
Automaton::Stack Automaton::joint_of(std::vector<Stack> members) {
    for (size_t i = members.size(); i-- > 0;) {
        if (!is_joint(members[i])) continue;
        const std::span<const Stack> inner = joined(std::exchange(members[i], members.back()));
        members.pop_back();
        members.insert(members.end(), inner.begin(), inner.end());
    }
    std::sort(members.begin(), members.end());
    members.erase(std::unique(members.begin(), members.end()), members.end());
    const auto [found, added] = known_joints_.try_emplace(std::move(members), Stack(elements_.size()));
    if (!added) return found->second;
    elements_.push_back({kJoint, uint32_t(joined_.size()), uint32_t(found->first.size()), kEmpty});
    joined_.insert(joined_.end(), found->first.begin(), found->first.end());
    work_ += found->first.size();
    return found->second;
}

// Merges stacks whose tops are equal.
void Automaton::merge_tops() {
    std::map<std::array<uint32_t, 3>, std::vector<Stack>> below;  // by top
    for (const Stack stack : found_.stacks) {
        const Element& top = elements_[stack];
        below[{top.position, top.least, top.most}].push_back(top.below);
    }
    if (below.size() == found_.stacks.size()) return;
    found_.stacks.clear();
    for (auto& [top, stacks] : below) {
        const Stack rest = stacks.size() == 1 ? stacks[0] : joint_of(std::move(stacks));
        found_.stacks.push_back(push({top[0], top[1], top[2], rest}));
    }
}

// The state of all stacks that were passed to follow().
Automaton::State Automaton::settle() {
    found_.stacks.clear();
    found_.can_end = found_.escapes = false;
    if (++round_ == 0) {
        std::fill(seen_.begin(), seen_.end(), 0);
        round_ = 1;
    }
    while (!waiting_.empty() && !failed_) {
        const Stack stack = waiting_.back();
        waiting_.pop_back();
        expand(stack);
        failed_ = found_.stacks.size() > kMostStacks || work_ > kMostWork ||
                  elements_.size() + joined_.size() > kMostElements;
    }
    waiting_.clear();
    if (failed_) return kDead;
    if (found_.stacks.size() > kManyStacks) merge_tops();
    std::sort(found_.stacks.begin(), found_.stacks.end());
    StateData data;
    data.stacks = found_.stacks;
    data.can_end = found_.can_end;
    data.escapes = found_.escapes;
    return intern(std::move(data));
}

Automaton::State Automaton::intern(StateData data) {
    if (data.stacks.empty() && !data.can_end && !data.escapes) return kDead;
    states_.push_back(std::move(data));
    const auto [found, added] = known_states_.insert(State(states_.size() - 1));
    if (!added) states_.pop_back();
    return *found;
}

Automaton::State Automaton::start() {
    for (const uint32_t first : grammar_.rules()[grammar_.root()].alternatives) follow(enter(first, kEmpty));
    return settle();
}

Automaton::State Automaton::state_of(Stack stack) {
    follow(stack);
    return settle();
}

Automaton::State Automaton::join(State a, State b) {
    for (const State state : {a, b}) {
        const StateData& data = states_[state];
        waiting_.insert(waiting_.end(), data.stacks.begin(), data.stacks.end());
        if (data.can_end) follow(kEmpty);
    }
    return settle();
}

Automaton::State Automaton::step_character(const StateData& from, char32_t code, bool any) {
    for (const Stack stack : from.stacks) {
        const Symbol& symbol = this->symbol(stack);
        if (symbol.kind == Symbol::Kind::characters && (any || grammar_.sets()[symbol.index].contains(code)))
            follow(pass(Element(elements_[stack])));
    }
    work_ += from.stacks.size();
    return settle();
}

// The stacks that accept one of the characters that the bytes so far can still become. Characters below
// `least` would have a shorter encoding.
Automaton::State Automaton::narrow(const StateData& from, char32_t code, uint8_t missing, char32_t least) {
    const char32_t low = code << (6 * missing);
    const char32_t high = low | ((char32_t(1) << (6 * missing)) - 1);
    if (high < least || low > 0x10FFFF) return kDead;
    StateData data;
    data.any = low >= least && high <= 0x10FFFF;
    for (const Stack stack : from.stacks) {
        const Symbol& symbol = this->symbol(stack);
        if (symbol.kind != Symbol::Kind::characters) continue;
        const CharacterSet& set = grammar_.sets()[symbol.index];
        if (!set.overlaps(std::max(low, least), high)) continue;
        data.stacks.push_back(stack);
        data.any = data.any && set.covers(low, high);
    }
    work_ += from.stacks.size();
    data.missing = missing;
    data.code = data.any ? 0 : code;
    return intern(std::move(data));
}

Automaton::State Automaton::make_step(State from, uint8_t byte) {
    if (from == kDead || failed_) return kDead;
    // A copy, since new states may move the old ones.
    StateData data;
    data.stacks = states_[from].stacks;
    data.missing = states_[from].missing;
    data.any = states_[from].any;
    data.code = states_[from].code;
    State to = kDead;
    if (data.missing > 0) {
        if ((byte & 0xC0) == 0x80) {
            const char32_t code = data.code << 6 | (byte & 0x3F);
            const auto missing = uint8_t(data.missing - 1);
            // The second byte: of four where three are missing, of three where two are and the character's
            // bits so far are not 0.
            const char32_t least = data.any                            ? 0
                                   : data.missing == 3                 ? 0x10000
                                   : data.missing == 2 && code < 0x400 ? 0x800
                                                                       : 0;
            if (missing == 0)
                to = step_character(data, code, data.any);
            else if (data.any)
                data.missing = missing, to = intern(std::move(data));
            else
                to = narrow(data, code, missing, least);
        }
    } else if (byte < 0x80) {
        to = step_character(data, byte, false);
    } else if (byte >= 0xC2 && byte < 0xE0) {
        to = narrow(data, byte & 0x1F, 1, 0x80);
    } else if (byte >= 0xE0 && byte < 0xF0) {
        to = narrow(data, byte & 0x0F, 2, 0x800);
    } else if (byte >= 0xF0 && byte < 0xF5) {
        to = narrow(data, byte & 0x07, 3, 0x10000);
    }
    if (failed_) return kDead;
    std::unique_ptr<Steps>& steps = states_[from].steps;
    if (!steps) {
        steps = std::make_unique<Steps>();
        steps->fill(kUnset);
    }
    (*steps)[byte] = to;
    return to;
}

bool Automaton::is_full() const {
    return elements_.size() + joined_.size() > kFullElements || states_.size() > kFullStates;
}

// Copies elements in ascending order, so that those below an element are copied first.
Automaton::State Automaton::forget_all_but(State state) {
    StateData kept = std::move(states_[state]);
    kept.steps.reset();
    const std::vector<Element> elements = std::move(elements_);
    const std::vector<Stack> joined = std::move(joined_);
    reset();
    const auto members = [&](const Element& joint) {
        return std::span(joined).subspan(joint.least, joint.most);
    };
    std::map<Stack, Stack> copies;  // by the old index
    std::vector<Stack> waiting = kept.stacks;
    while (!waiting.empty()) {
        const Stack stack = waiting.back();
        waiting.pop_back();
        if (!copies.try_emplace(stack, stack).second || stack <= kUnknown) continue;
        const Element& element = elements[stack];
        if (element.position != kJoint)
            waiting.push_back(element.below);
        else
            waiting.insert(waiting.end(), members(element).begin(), members(element).end());
    }
    for (auto& [old, copy] : copies) {
        if (old <= kUnknown) continue;
        Element element = elements[old];
        if (element.position == kJoint) {
            std::vector<Stack> all;
            for (const Stack member : members(element)) all.push_back(copies.at(member));
            copy = joint_of(std::move(all));
        } else {
            element.below = copies.at(element.below);
            copy = push(element);
        }
    }
    for (Stack& stack : kept.stacks) stack = copies.at(stack);
    std::sort(kept.stacks.begin(), kept.stacks.end());
    return intern(std::move(kept));
}

}  // namespace redline
