#include "grammar/shortest_text.h"

#include "text/tokens/unicode.h"

#include <algorithm>
#include <deque>

namespace redline {
namespace {

// The length of texts that do not exist, or are too long to be useful.
constexpr uint64_t kNone = uint64_t(1) << 30;

uint64_t utf8_bytes(char32_t code) {
    return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

// A letter or a digit where there is one.
char32_t plain_character(const CharacterSet& set) {
    for (const CodeRange range : {CodeRange{'a', 'z'}, CodeRange{'A', 'Z'}, CodeRange{'0', '9'}})
        for (char32_t code = range.first; code <= range.last; ++code)
            if (set.contains(code)) return code;
    for (char32_t code = ' '; code < 0x7F; ++code)
        if (set.contains(code)) return code;
    return set.empty() ? 0 : set.ranges().front().first;
}

}  // namespace

Grammar::Repeat ShortestText::limits(const Grammar& grammar, const Symbol& symbol) {
    if (symbol.kind == Symbol::Kind::repeat) return grammar.repeats()[symbol.index];
    if (symbol.kind == Symbol::Kind::counted) return grammar.counteds()[symbol.index];
    return {symbol.index, 0, 0};
}

ShortestText::ShortestText(const Grammar& grammar) : grammar_(grammar) {
    for (const CharacterSet& set : grammar.sets()) characters_.push_back(plain_character(set));
    const std::vector<Grammar::Rule>& rules = grammar.rules();
    const std::vector<Symbol>& symbols = grammar.symbols();
    rules_.assign(rules.size(), kNone);
    best_.assign(rules.size(), 0);
    std::vector<std::vector<uint32_t>> callers(rules.size());
    for (uint32_t at = 0; at < symbols.size(); ++at)
        if (calls(symbols[at]))
            callers[limits(grammar, symbols[at]).rule].push_back(
                uint32_t(&grammar.rule_at(at) - rules.data()));
    std::deque<uint32_t> waiting;
    std::vector<bool> waits(rules.size(), true);
    for (uint32_t rule = 0; rule < rules.size(); ++rule) waiting.push_back(rule);
    // A rule is visited again when one that it calls has become shorter. Its best alternative changes only
    // then, so that following best alternatives never recurses.
    for (; !waiting.empty(); waiting.pop_front()) {
        const uint32_t rule = waiting.front();
        waits[rule] = false;
        const uint64_t before = rules_[rule];
        for (const uint32_t first : rules[rule].alternatives)
            if (const uint64_t length = alternative_length(first); length < rules_[rule]) {
                rules_[rule] = length;
                best_[rule] = first;
            }
        if (rules_[rule] == before) continue;
        for (const uint32_t caller : callers[rule])
            if (!waits[caller]) {
                waits[caller] = true;
                waiting.push_back(caller);
            }
    }
    rests_.assign(symbols.size(), 0);
    for (size_t at = symbols.size(); at-- > 0;)
        if (symbols[at].kind != Symbol::Kind::end)
            rests_[at] =
                std::min(kNone, rests_[at + 1] + length(symbols[at], limits(grammar, symbols[at]).least));
}

bool ShortestText::calls(const Symbol& symbol) {
    using Kind = Symbol::Kind;
    return symbol.kind == Kind::rule || symbol.kind == Kind::repeat || symbol.kind == Kind::counted ||
           symbol.kind == Kind::step;
}

// Bytes of a symbol's shortest text with at least so many passes or steps. Each step takes a byte.
uint64_t ShortestText::length(const Symbol& symbol, uint32_t least) const {
    if (symbol.kind == Symbol::Kind::end) return 0;
    if (symbol.kind == Symbol::Kind::characters)
        return grammar_.sets()[symbol.index].empty() ? kNone : utf8_bytes(characters_[symbol.index]);
    if (!calls(symbol)) return kNone;
    const uint64_t once = rules_[limits(grammar_, symbol).rule];
    if (symbol.kind == Symbol::Kind::repeat) return std::min(kNone, once * least);
    return std::max<uint64_t>(once, least);
}

uint64_t ShortestText::alternative_length(uint32_t first) const {
    uint64_t sum = 0;
    for (uint32_t at = first; grammar_.symbols()[at].kind != Symbol::Kind::end && sum < kNone; ++at)
        sum += length(grammar_.symbols()[at], limits(grammar_, grammar_.symbols()[at]).least);
    return std::min(sum, kNone);
}

uint64_t ShortestText::stack_length(const Automaton& automaton, const Ways& ways,
                                    Automaton::Stack stack) const {
    uint64_t sum = 0;
    for (; stack > Automaton::kUnknown && sum < kNone; stack = automaton.element(stack).below) {
        if (automaton.is_joint(stack)) return std::min(sum + ways.at(stack).length, kNone);
        const Automaton::Element& element = automaton.element(stack);
        const uint64_t rest = length(automaton.symbol(stack), element.least) + rests_[element.position + 1];
        sum += std::max<uint64_t>(rest, element.least);
    }
    return std::min(sum, kNone);
}

// Joints are visited in ascending order, so that those below come first.
ShortestText::Ways ShortestText::ways_below(const Automaton& automaton,
                                            std::span<const Automaton::Stack> stacks) const {
    Ways ways;
    std::vector<Automaton::Stack> waiting(stacks.begin(), stacks.end());
    while (!waiting.empty()) {
        Automaton::Stack stack = waiting.back();
        waiting.pop_back();
        while (stack > Automaton::kUnknown && !automaton.is_joint(stack))
            stack = automaton.element(stack).below;
        if (stack <= Automaton::kUnknown || !ways.try_emplace(stack, Way{kNone, Automaton::kEmpty}).second)
            continue;
        const std::span<const Automaton::Stack> members = automaton.joined(stack);
        waiting.insert(waiting.end(), members.begin(), members.end());
    }
    for (auto& [joint, way] : ways)
        for (const Automaton::Stack member : automaton.joined(joint))
            if (const uint64_t length = stack_length(automaton, ways, member); length < way.length)
                way = {length, member};
    return ways;
}

ShortestText::Place ShortestText::enter(uint32_t position, uint32_t least, uint32_t most) const {
    const Symbol& symbol = grammar_.symbols()[position];
    if (symbol.kind != Symbol::Kind::repeat && symbol.kind != Symbol::Kind::counted)
        return {position, least, most};
    const Grammar::Repeat repeat = limits(grammar_, symbol);
    return {position, repeat.least, repeat.most};
}

// The alternative of a counted rule to take with the counts of `place`: the empty one where no more steps are
// needed, or one on the shortest way to the end.
std::optional<ShortestText::Place> ShortestText::next_step(uint32_t rule, const Place& place) const {
    const uint32_t least = place.least - (place.least > 0 ? 1 : 0);
    const uint32_t most = place.most - (place.most != Grammar::kUnbounded ? 1 : 0);
    std::optional<Place> best;
    for (const uint32_t first : grammar_.rules()[rule].alternatives) {
        const bool ends = grammar_.symbols()[first].kind == Symbol::Kind::end;
        if (ends && place.least == 0) return Place{first, 0, 0};
        if (ends || place.most == 0 || rests_[first] >= kNone) continue;
        if (best && rests_[best->position] <= rests_[first]) continue;
        if (grammar_.step_counts().reaches(grammar_.next_step(first).state, least, most))
            best = Place{first, least, most};
    }
    return best;
}

// Appends the rest of an alternative. False: it has more than `most` bytes, or none exists.
bool ShortestText::write(Place place, uint64_t most, std::string& text) const {
    std::vector<Place> waiting = {place};
    while (!waiting.empty()) {
        place = waiting.back();
        waiting.pop_back();
        const Symbol& symbol = grammar_.symbols()[place.position];
        if (symbol.kind == Symbol::Kind::end) continue;
        if (text.size() > most) return false;
        const uint32_t rule = limits(grammar_, symbol).rule;
        const bool repeats = symbol.kind == Symbol::Kind::repeat;
        if (repeats && place.least > 0 && rules_[rule] > 0) {
            waiting.push_back({place.position, place.least - 1, place.most});
            waiting.push_back(enter(best_[rule]));
        } else if (repeats) {
            waiting.push_back(enter(place.position + 1));
        } else if (symbol.kind == Symbol::Kind::characters) {
            append_utf8(text, characters_[symbol.index]);
            waiting.push_back(enter(place.position + 1, place.least, place.most));
        } else if (symbol.kind == Symbol::Kind::rule) {
            waiting.push_back(enter(place.position + 1, place.least, place.most));
            if (rules_[rule] >= kNone) return false;
            if (rules_[rule] > 0) waiting.push_back(enter(best_[rule]));
        } else if (calls(symbol)) {
            const std::optional<Place> next = next_step(rule, place);
            if (!next) return false;
            waiting.push_back(enter(place.position + 1));
            waiting.push_back(*next);
        } else {
            return false;
        }
    }
    return text.size() <= most;
}

std::optional<std::string> ShortestText::complete(Automaton& automaton, Automaton::State state,
                                                  uint64_t most) const {
    std::string text;
    while (automaton.inside_character(state)) {
        Automaton::State next = Automaton::kDead;
        for (int byte = 0x80; byte < 0xC0 && next == Automaton::kDead; ++byte) {
            next = automaton.step(state, uint8_t(byte));
            if (next != Automaton::kDead) text += char(byte);
        }
        if (next == Automaton::kDead) return {};
        state = next;
    }
    if (automaton.can_end(state)) return text.size() <= most ? std::optional(text) : std::nullopt;
    const Ways ways = ways_below(automaton, automaton.stacks(state));
    uint64_t shortest = kNone;
    Automaton::Stack best = Automaton::kEmpty;
    for (const Automaton::Stack stack : automaton.stacks(state))
        if (const uint64_t length = stack_length(automaton, ways, stack); length < shortest) {
            shortest = length;
            best = stack;
        }
    if (shortest > most) return {};
    for (; best > Automaton::kUnknown; best = automaton.element(best).below) {
        while (automaton.is_joint(best)) best = ways.at(best).member;
        if (best <= Automaton::kUnknown) break;
        const Automaton::Element& top = automaton.element(best);
        if (!write({top.position, top.least, top.most}, most, text)) return {};
    }
    return text;
}

}  // namespace redline
