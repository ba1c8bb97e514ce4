#include "grammar/grammar_builder.h"

#include "grammar/factoring.h"

#include <algorithm>

namespace redline {
namespace {

constexpr size_t kMostSymbols = 2'000'000;
constexpr size_t kMostRules = 500'000;
// The most symbols of a small rule, including all rules that it refers to.
constexpr size_t kSmall = 64;
// Limit for repetitions whose body may be empty: each pass may be empty.
constexpr uint32_t kMostEmptyRepeats = 64;

}  // namespace

uint32_t GrammarBuilder::rule(const std::string& name, Place seen_at) {
    const auto [found, added] = names_.try_emplace(name, uint32_t(sources_.size()));
    if (added) {
        grammar_.rules_.push_back({name, {}, found->second});
        sources_.push_back({{}, false, seen_at});
    }
    return found->second;
}

uint32_t GrammarBuilder::anonymous_rule(uint32_t owner, Alternatives alternatives) {
    const uint32_t index = uint32_t(sources_.size());
    grammar_.rules_.push_back({"", {}, owner});
    for (const Sequence& sequence : alternatives) symbols_ += sequence.size() + 1;
    sources_.push_back({std::move(alternatives), true, {}});
    return index;
}

Status GrammarBuilder::define(uint32_t rule, Alternatives alternatives, Place place) {
    Source& source = sources_[rule];
    if (source.defined)
        return error("{}: the rule {} is already defined at {}", place.text(), grammar_.rules_[rule].name,
                     source.place.text());
    for (const Sequence& sequence : alternatives) symbols_ += sequence.size() + 1;
    source = {std::move(alternatives), true, place};
    return {};
}

Symbol GrammarBuilder::characters(CharacterSet set) {
    std::vector<CharacterSet>& sets = grammar_.sets_;
    std::vector<char32_t> bounds;
    for (const CodeRange& range : set.ranges()) bounds.insert(bounds.end(), {range.first, range.last});
    const auto [found, added] = known_sets_.try_emplace(std::move(bounds), uint32_t(sets.size()));
    if (added) sets.push_back(std::move(set));
    return {Symbol::Kind::characters, found->second};
}

Symbol GrammarBuilder::repeat(uint32_t rule, uint32_t least, uint32_t most, Place place) {
    grammar_.repeats_.push_back({rule, least, most});
    repeat_places_.push_back(place);
    return {Symbol::Kind::repeat, uint32_t(grammar_.repeats_.size() - 1)};
}

Symbol GrammarBuilder::counted(uint32_t rule, uint32_t least, uint32_t most) {
    grammar_.counteds_.push_back({rule, least, most});
    return {Symbol::Kind::counted, uint32_t(grammar_.counteds_.size() - 1)};
}

Symbol GrammarBuilder::token(Grammar::TokenName name, bool others) {
    grammar_.tokens_.push_back(std::move(name));
    return {others ? Symbol::Kind::other_token : Symbol::Kind::token, uint32_t(grammar_.tokens_.size() - 1)};
}

Status GrammarBuilder::check_size() const {
    if (symbols_ > kMostSymbols || sources_.size() > kMostRules)
        return error("the grammar is too large: {} symbols in {} rules, of at most {} in {}", symbols_,
                     sources_.size(), kMostSymbols, kMostRules);
    return {};
}

Result<Grammar> GrammarBuilder::finish() {
    const auto root = names_.find("root");
    if (root == names_.end() || !sources_[root->second].defined)
        return error("the grammar has no rule root, with which a text begins");
    grammar_.root_ = root->second;
    RL_TRY(check_size());
    RL_TRY(check_defined());
    find_nullable();
    RL_TRY(check_repeats());
    RL_TRY(check_left_recursion());
    RL_TRY(drop_endless());
    share_beginnings();
    RL_TRY(count_steps());
    find_small();
    lay_out();
    return std::move(grammar_);
}

Status GrammarBuilder::check_defined() const {
    const Source* first = nullptr;
    std::string name;
    for (size_t i = 0; i < sources_.size(); ++i) {
        const Source& source = sources_[i];
        const auto earlier = [](const Place& a, const Place& b) {
            return a.line != b.line ? a.line < b.line : a.column < b.column;
        };
        if (source.defined || (first && !earlier(source.place, first->place))) continue;
        first = &source;
        name = grammar_.rules_[i].name;
    }
    if (first) return error("{}: the rule {} is not defined", first->place.text(), name);
    return {};
}

// The rule that a symbol calls, or the number of rules when it calls none.
uint32_t GrammarBuilder::callee(const Symbol& symbol) const {
    if (symbol.kind == Symbol::Kind::rule || symbol.kind == Symbol::Kind::step) return symbol.index;
    if (symbol.kind == Symbol::Kind::repeat) return grammar_.repeats_[symbol.index].rule;
    if (symbol.kind == Symbol::Kind::counted) return grammar_.counteds_[symbol.index].rule;
    return uint32_t(sources_.size());
}

bool GrammarBuilder::nullable(const Symbol& symbol) const {
    if (symbol.kind == Symbol::Kind::counted)
        return grammar_.rules_[grammar_.counteds_[symbol.index].rule].nullable;
    if (symbol.kind == Symbol::Kind::rule || symbol.kind == Symbol::Kind::step)
        return grammar_.rules_[symbol.index].nullable;
    if (symbol.kind != Symbol::Kind::repeat) return false;
    const Grammar::Repeat& repeat = grammar_.repeats_[symbol.index];
    return repeat.least == 0 || grammar_.rules_[repeat.rule].nullable;
}

// Evaluates a symbol: `leaf` decides for a character or a token; other symbols hold with their rule, or where
// they are optional.
template <typename Leaf>
bool GrammarBuilder::holds(const Symbol& symbol, const std::vector<bool>& rules, Leaf leaf) const {
    const uint32_t called = callee(symbol);
    if (called == sources_.size()) return leaf(symbol);
    const bool optional = symbol.kind == Symbol::Kind::repeat && grammar_.repeats_[symbol.index].least == 0;
    return optional || rules[called];
}

// The rules that have an alternative all of whose symbols hold. Each one found causes the rules that refer to
// it to be visited again.
template <typename Leaf>
std::vector<bool> GrammarBuilder::rules_where(Leaf leaf) const {
    std::vector<std::vector<uint32_t>> callers(sources_.size());
    std::vector<uint32_t> waiting;
    for (uint32_t i = 0; i < sources_.size(); ++i) {
        waiting.push_back(i);
        for (const Sequence& sequence : sources_[i].alternatives)
            for (const Symbol& symbol : sequence)
                if (const uint32_t called = callee(symbol);
                    called < sources_.size() && (callers[called].empty() || callers[called].back() != i))
                    callers[called].push_back(i);
    }
    std::vector<bool> found(sources_.size());
    while (!waiting.empty()) {
        const uint32_t rule = waiting.back();
        waiting.pop_back();
        if (found[rule]) continue;
        const Alternatives& alternatives = sources_[rule].alternatives;
        found[rule] = std::any_of(alternatives.begin(), alternatives.end(), [&](const Sequence& s) {
            return std::all_of(s.begin(), s.end(),
                               [&](const Symbol& symbol) { return holds(symbol, found, leaf); });
        });
        if (found[rule]) waiting.insert(waiting.end(), callers[rule].begin(), callers[rule].end());
    }
    return found;
}

void GrammarBuilder::find_nullable() {
    const std::vector<bool> found = rules_where([](const Symbol&) { return false; });
    for (size_t i = 0; i < found.size(); ++i) grammar_.rules_[i].nullable = found[i];
}

// Removes alternatives that no text completes: they recurse without end, or contain an empty class.
Status GrammarBuilder::drop_endless() {
    const auto leaf = [&](const Symbol& symbol) {
        return symbol.kind != Symbol::Kind::characters || !grammar_.sets_[symbol.index].empty();
    };
    const std::vector<bool> found = rules_where(leaf);
    if (!found[grammar_.root_])
        return error(
            "no text completes the grammar: each way through the rule root comes back to a rule "
            "that it is in, without end");
    for (Source& source : sources_)
        std::erase_if(source.alternatives, [&](const Sequence& s) {
            return !std::all_of(s.begin(), s.end(),
                                [&](const Symbol& symbol) { return holds(symbol, found, leaf); });
        });
    return {};
}

Status GrammarBuilder::check_repeats() {
    for (size_t i = 0; i < repeat_places_.size(); ++i) {
        Grammar::Repeat& repeat = grammar_.repeats_[i];
        if (!grammar_.rules_[repeat.rule].nullable) continue;
        repeat.least = 0;
        if (repeat.most != Grammar::kUnbounded && repeat.most > kMostEmptyRepeats)
            return error(
                "{}: an item that may be empty is repeated up to {} times, at most {} are allowed; use * instead",
                repeat_places_[i].text(), repeat.most, kMostEmptyRepeats);
    }
    return {};
}

// The rules that may stand at the beginning of this one.
std::vector<uint32_t> GrammarBuilder::leftmost(uint32_t rule) const {
    std::vector<uint32_t> out;
    for (const Sequence& sequence : sources_[rule].alternatives) {
        for (const Symbol& symbol : sequence) {
            const uint32_t called = callee(symbol);
            if (called < sources_.size()) out.push_back(called);
            if (!nullable(symbol)) break;
        }
    }
    return out;
}

Status GrammarBuilder::check_left_recursion() const {
    enum class Mark : uint8_t { fresh, open, done };
    std::vector<Mark> marks(sources_.size(), Mark::fresh);
    struct Visit {
        uint32_t rule;
        std::vector<uint32_t> next;
    };
    for (uint32_t start = 0; start < sources_.size(); ++start) {
        if (marks[start] != Mark::fresh) continue;
        std::vector<Visit> path;
        path.push_back({start, leftmost(start)});
        marks[start] = Mark::open;
        while (!path.empty()) {
            if (path.back().next.empty()) {
                marks[path.back().rule] = Mark::done;
                path.pop_back();
                continue;
            }
            const uint32_t rule = path.back().next.back();
            path.back().next.pop_back();
            if (marks[rule] == Mark::open) {
                std::vector<uint32_t> rules;
                for (const Visit& visit : path) rules.push_back(visit.rule);
                return recursion(rules, rule);
            }
            if (marks[rule] == Mark::done) continue;
            marks[rule] = Mark::open;
            path.push_back({rule, leftmost(rule)});
        }
    }
    return {};
}

Error GrammarBuilder::recursion(const std::vector<uint32_t>& path, uint32_t rule) const {
    std::string way;
    uint32_t named = grammar_.rules_[rule].owner;
    for (size_t i = size_t(std::find(path.begin(), path.end(), rule) - path.begin()); i < path.size(); ++i)
        if (!grammar_.rules_[path[i]].name.empty()) {
            if (way.empty()) named = path[i];
            if (way.size() < 200) way += shown(path[i]) + " -> ";
        }
    return error("{}: left recursion, {}{}: a rule must read a character before it comes to itself",
                 sources_[named].place.text(), way, shown(named));
}

std::string GrammarBuilder::shown(uint32_t rule) const {
    return grammar_.rules_[grammar_.rules_[rule].owner].name;
}

void GrammarBuilder::share_beginnings() {
    std::vector<Alternatives> rules;
    for (Source& source : sources_) rules.push_back(std::move(source.alternatives));
    Factoring factoring(rules, grammar_);
    factoring.run();
    grammar_.crowd_ = factoring.crowd();
    // A constraint's caches look at a stack down to the first named rule, so a part gets its owner's name.
    for (const uint32_t owner : factoring.owners()) {
        grammar_.rules_.push_back({grammar_.rules_[owner].name, {}, owner});
        sources_.push_back({{}, true, sources_[owner].place});
    }
    for (size_t i = 0; i < rules.size(); ++i) sources_[i].alternatives = std::move(rules[i]);
    find_nullable();
}

// The counted rules, found from the counts, are the states of a graph.
Status GrammarBuilder::count_steps() {
    StepGraph graph;
    std::vector<uint32_t> waiting;
    const auto visit = [&](uint32_t rule) {
        uint32_t& state = grammar_.rules_[rule].state;
        if (state != Grammar::kNoState) return state;
        state = uint32_t(graph.states.size());
        graph.states.emplace_back();
        waiting.push_back(rule);
        return state;
    };
    uint32_t farthest = 0;
    for (const Grammar::Repeat& counted : grammar_.counteds_) {
        visit(counted.rule);
        farthest = std::max({farthest, counted.least, counted.most});
    }
    while (!waiting.empty()) {
        const uint32_t rule = waiting.back();
        waiting.pop_back();
        RL_TRY(check_step(rule));
        for (const Sequence& sequence : sources_[rule].alternatives) {
            const uint32_t next = sequence.empty() ? 0 : visit(sequence.back().index);
            StepGraph::State& state = graph.states[grammar_.rules_[rule].state];
            if (sequence.empty())
                state.ends = true;
            else
                state.next.push_back(next);
        }
    }
    std::optional<StepCounts> counts = StepCounts::create(graph, farthest);
    if (!counts) return error("the grammar is too large: its counted rules have too many different counts");
    grammar_.step_counts_ = std::move(*counts);
    return check_uncounted();
}

// A step outside of a count is an error.
Status GrammarBuilder::check_uncounted() const {
    const std::vector<Grammar::Rule>& rules = grammar_.rules_;
    for (uint32_t i = 0; i < sources_.size(); ++i)
        for (const Sequence& sequence : sources_[i].alternatives)
            for (const Symbol& symbol : sequence) {
                const bool plain = symbol.kind == Symbol::Kind::rule || symbol.kind == Symbol::Kind::repeat;
                const bool steps = symbol.kind == Symbol::Kind::step;
                if ((plain && rules[callee(symbol)].state != Grammar::kNoState) ||
                    (steps && rules[i].state == Grammar::kNoState))
                    return error(
                        "{}: the rule {} is counted in one place only; write @{}{{0,}} where it begins",
                        sources_[rules[i].owner].place.text(), shown(callee(symbol)), shown(callee(symbol)));
            }
    return {};
}

Status GrammarBuilder::check_step(uint32_t rule) const {
    for (const Sequence& sequence : sources_[rule].alternatives) {
        if (sequence.empty()) continue;
        const bool one = sequence.size() == 2 && sequence[1].kind == Symbol::Kind::step &&
                         (sequence[0].kind == Symbol::Kind::characters ||
                          (sequence[0].kind == Symbol::Kind::rule && !nullable(sequence[0])));
        if (!one)
            return error("{}: each alternative of {}, which is counted, is empty, or one item and an @rule",
                         sources_[rule].place.text(), shown(rule));
    }
    return {};
}

// Counts symbols from the rules that refer to no others upwards; rules on a cycle are never reached.
void GrammarBuilder::find_small() {
    std::vector<size_t> sizes(sources_.size(), 0), open(sources_.size(), 0);
    std::vector<std::vector<uint32_t>> callers(sources_.size());
    std::vector<uint32_t> ready;
    for (uint32_t i = 0; i < sources_.size(); ++i) {
        for (const Sequence& sequence : sources_[i].alternatives) {
            sizes[i] += sequence.size();
            for (const Symbol& symbol : sequence)
                if (const uint32_t called = callee(symbol); called < sources_.size()) {
                    callers[called].push_back(i);
                    open[i] += 1;
                }
        }
        if (open[i] == 0) ready.push_back(i);
    }
    while (!ready.empty()) {
        const uint32_t rule = ready.back();
        ready.pop_back();
        grammar_.rules_[rule].small = sizes[rule] <= kSmall;
        for (const uint32_t caller : callers[rule]) {
            sizes[caller] = std::min(sizes[caller] + sizes[rule], kSmall + 1);
            if (--open[caller] == 0) ready.push_back(caller);
        }
    }
    for (Grammar::Rule& rule : grammar_.rules_) rule.small = grammar_.rules_[rule.owner].small;
}

void GrammarBuilder::lay_out() {
    for (uint32_t i = 0; i < sources_.size(); ++i) {
        for (const Sequence& sequence : sources_[i].alternatives) {
            grammar_.rules_[i].alternatives.push_back(uint32_t(grammar_.symbols_.size()));
            grammar_.symbols_.insert(grammar_.symbols_.end(), sequence.begin(), sequence.end());
            grammar_.symbols_.push_back({});
        }
        grammar_.rule_at_.resize(grammar_.symbols_.size(), i);
    }
}

}  // namespace redline
