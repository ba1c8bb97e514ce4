#include "grammar/factoring.h"

#include <algorithm>
#include <set>

namespace redline {
namespace {

// Rules inlined around a position; recursive rules could be inlined without end.
constexpr uint32_t kMostLevels = 24;
// Symbols and tails written, for all rules and for one; remaining rules then stay unchanged.
constexpr size_t kMostFactoringWork = 4'000'000;
constexpr size_t kWork = 50'000;
constexpr size_t kWorkPerAlternative = 1000;
constexpr size_t kMostNodes = 1'000'000;  // some 150 bytes each
constexpr size_t kMostHops = 100;

}  // namespace

Factoring::Factoring(std::vector<Alternatives>& rules, const Grammar& grammar)
    : rules_(rules), grammar_(grammar), given_(rules.size()), nodes_(1) {
    nodes_[kEnd].nullable = true;
}

void Factoring::run() {
    std::vector<uint32_t> roots;
    for (uint32_t rule = 0; rule < given_; ++rule)
        if (rules_[rule].size() > 1 && !has_steps(rule) && begin_alike(rules_[rule])) roots.push_back(rule);
    if (roots.empty()) return;
    find_firsts();
    // Inlined alternatives are the original ones.
    std::map<uint32_t, Alternatives> rewritten;
    for (const uint32_t root : roots) {
        const uint32_t owner = grammar_.rules()[root].owner;
        if (work_ > kMostFactoringWork || nodes_.size() > kMostNodes) {
            note_crowd(rules_[root].size(), owner);
            continue;
        }
        Set set;
        for (const Sequence& sequence : rules_[root]) set.push_back(push(sequence, kEnd));
        std::sort(set.begin(), set.end());
        set.erase(std::unique(set.begin(), set.end()), set.end());
        most_work_ = std::min(work_ + kWork + kWorkPerAlternative * set.size(), kMostFactoringWork);
        const Groups groups = split(set);
        note_crowd(groups, owner);
        rewritten[root] = written(groups, owner);
        for (; !waiting_.empty(); waiting_.pop_front()) {
            const auto& [inner, rule] = waiting_.front();
            const Groups parts = split(inner);
            note_crowd(parts, owner);
            rules_[rule] = written(parts, owner);
        }
    }
    for (auto& [rule, alternatives] : rewritten) rules_[rule] = std::move(alternatives);
}

bool Factoring::has_steps(uint32_t rule) const {
    const Alternatives& all = rules_[rule];
    return std::any_of(all.begin(), all.end(), [](const Sequence& sequence) {
        return !sequence.empty() && sequence.back().kind == Symbol::Kind::step;
    });
}

// Equal symbols have equal keys.
std::array<uint32_t, 4> Factoring::key(const Symbol& symbol) const {
    const auto kind = uint32_t(symbol.kind);
    if (symbol.kind != Symbol::Kind::repeat) return {kind, symbol.index, 0, 0};
    const Grammar::Repeat& repeat = grammar_.repeats()[symbol.index];
    return {kind, repeat.rule, repeat.least, repeat.most};
}

// The symbol that an alternative begins with, looking through rules of one alternative.
std::optional<std::array<uint32_t, 4>> Factoring::head(const Sequence& sequence) const {
    const Sequence* at = &sequence;
    for (size_t hops = 0; hops < kMostHops && !at->empty(); ++hops) {
        const Symbol& symbol = at->front();
        if (symbol.kind != Symbol::Kind::rule || rules_[symbol.index].size() != 1 || has_steps(symbol.index))
            return key(symbol);
        at = &rules_[symbol.index][0];
    }
    return {};
}

bool Factoring::begin_alike(const Alternatives& alternatives) const {
    std::set<std::array<uint32_t, 4>> seen;
    return std::any_of(alternatives.begin(), alternatives.end(), [&](const Sequence& sequence) {
        const auto first = head(sequence);
        return first && !seen.insert(*first).second;
    });
}

bool Factoring::nullable(const Symbol& symbol) const {
    const uint32_t called = callee(symbol);
    if (called == given_) return false;
    const bool optional = symbol.kind == Symbol::Kind::repeat && grammar_.repeats()[symbol.index].least == 0;
    return optional || grammar_.rules()[called].nullable;
}

Factoring::First Factoring::first_of(const Symbol& symbol) const {
    constexpr char32_t kShared = 128;  // bits shared by non-ASCII characters
    if (const uint32_t called = callee(symbol); called < given_) return firsts_[called];
    if (symbol.kind != Symbol::Kind::characters) return {};
    First out;
    for (const CodeRange& range : grammar_.sets()[symbol.index].ranges()) {
        const char32_t last =
            std::min(range.last, char32_t(std::max<char32_t>(range.first, kShared) + kShared - 1));
        for (char32_t code = range.first; code <= last; ++code)
            out.set(code < kShared ? code : kShared + code % kShared);
    }
    return out;
}

// The rule that a symbol calls, or the number of rules when it calls none.
uint32_t Factoring::callee(const Symbol& symbol) const {
    if (symbol.kind == Symbol::Kind::rule || symbol.kind == Symbol::Kind::step) return symbol.index;
    if (symbol.kind == Symbol::Kind::repeat) return grammar_.repeats()[symbol.index].rule;
    if (symbol.kind == Symbol::Kind::counted) return grammar_.counteds()[symbol.index].rule;
    return uint32_t(given_);
}

// A rule is visited again when one that it may begin with has changed.
void Factoring::find_firsts() {
    firsts_.assign(given_, {});
    std::vector<std::vector<uint32_t>> callers(given_);
    std::vector<uint32_t> waiting;
    for (uint32_t rule = 0; rule < given_; ++rule) {
        waiting.push_back(rule);
        for (const Sequence& sequence : rules_[rule])
            for (const Symbol& symbol : sequence) {
                if (const uint32_t called = callee(symbol); called < given_) callers[called].push_back(rule);
                if (!nullable(symbol)) break;
            }
    }
    while (!waiting.empty()) {
        const uint32_t rule = waiting.back();
        waiting.pop_back();
        First all = firsts_[rule];
        for (const Sequence& sequence : rules_[rule])
            for (const Symbol& symbol : sequence) {
                all |= first_of(symbol);
                if (!nullable(symbol)) break;
            }
        if (all == firsts_[rule]) continue;
        firsts_[rule] = all;
        waiting.insert(waiting.end(), callers[rule].begin(), callers[rule].end());
    }
}

Factoring::Tail Factoring::push(const Symbol& symbol, Tail next, uint32_t level) {
    const auto [found, added] =
        known_nodes_.try_emplace({uint32_t(symbol.kind), symbol.index, next}, Tail(nodes_.size()));
    if (!added) return found->second;
    Node node{symbol, next, level, first_of(symbol), nullable(symbol)};
    if (node.nullable) node.first |= nodes_[next].first;
    node.nullable = node.nullable && nodes_[next].nullable;
    nodes_.push_back(node);
    return found->second;
}

Factoring::Tail Factoring::push(const Sequence& sequence, Tail next) {
    const uint32_t level = nodes_[next].level + 1;
    work_ += sequence.size();
    for (size_t i = sequence.size(); i-- > 0;) next = push(sequence[i], next, level);
    return next;
}

Factoring::First Factoring::first_of(const std::pair<Symbol, Set>& group) const {
    First out = first_of(group.first);
    if (nullable(group.first))
        for (const Tail tail : group.second) out |= nodes_[tail].first;
    return out;
}

bool Factoring::expandable(const std::pair<Symbol, Set>& group) const {
    const auto& [symbol, tails] = group;
    return symbol.kind == Symbol::Kind::rule && !has_steps(symbol.index) &&
           std::all_of(tails.begin(), tails.end(),
                       [&](Tail tail) { return nodes_[tail].level < kMostLevels; });
}

void Factoring::add(Groups& groups, Tail tail) const {
    if (tail == kEnd) {
        groups.ends = true;
        return;
    }
    const Node& node = nodes_[tail];
    auto& [symbol, tails] = groups.by_symbol[key(node.symbol)];
    symbol = node.symbol;
    const auto place = std::lower_bound(tails.begin(), tails.end(), node.next);
    if (place == tails.end() || *place != node.next) tails.insert(place, node.next);
}

// Inlines rules that may begin like another group. False: there are none.
bool Factoring::expand_overlapping(Groups& groups) {
    if (groups.by_symbol.size() < 2) return false;
    std::array<uint32_t, 256> counts{};
    std::vector<std::pair<std::array<uint32_t, 4>, First>> rules;
    for (const auto& [name, group] : groups.by_symbol) {
        const bool is_rule = expandable(group);
        if (!is_rule && group.first.kind != Symbol::Kind::characters) continue;
        const First first = first_of(group);
        for (size_t bit = 0; bit < first.size(); ++bit) counts[bit] += first[bit] ? 1 : 0;
        if (is_rule) rules.emplace_back(name, first);
    }
    bool expanded = false;
    for (const auto& [name, first] : rules) {
        bool overlaps = false;
        for (size_t bit = 0; bit < first.size(); ++bit)
            overlaps = overlaps || (first[bit] && counts[bit] > 1);
        if (!overlaps || spent()) continue;
        expanded = true;
        const auto [symbol, tails] = std::move(groups.by_symbol.extract(name).mapped());
        for (const Sequence& sequence : rules_[symbol.index])
            for (const Tail tail : tails) add(groups, push(sequence, tail));
    }
    return expanded;
}

Factoring::Groups Factoring::split(const Set& set) {
    Groups groups;
    work_ += set.size();
    for (const Tail tail : set) add(groups, tail);
    while (expand_overlapping(groups)) continue;
    return groups;
}

void Factoring::note_crowd(const Groups& groups, uint32_t owner) {
    std::array<uint32_t, 256> counts{};
    for (const auto& [name, group] : groups.by_symbol) {
        const First first = first_of(group);
        for (size_t bit = 0; bit < first.size(); ++bit) counts[bit] += first[bit] ? 1 : 0;
    }
    note_crowd(*std::max_element(counts.begin(), counts.end()), owner);
}

void Factoring::note_crowd(size_t alternatives, uint32_t owner) {
    if (alternatives > (crowd_ ? crowd_->alternatives : 1))
        crowd_ = {grammar_.rules()[owner].name, uint32_t(alternatives)};
}

bool Factoring::spent() const {
    return work_ > most_work_ || nodes_.size() > kMostNodes;
}

// The rule for the texts of a set, made at its first use.
uint32_t Factoring::rule_of(Set set, uint32_t owner) {
    const auto [found, added] = known_sets_.try_emplace(std::move(set), uint32_t(rules_.size()));
    if (!added) return found->second;
    rules_.emplace_back();
    owners_.push_back(owner);
    waiting_.emplace_back(found->first, found->second);
    return found->second;
}

void Factoring::append(Sequence& sequence, Tail tail) const {
    for (; tail != kEnd; tail = nodes_[tail].next) sequence.push_back(nodes_[tail].symbol);
}

// No rule is needed while all tails of a set begin with the same symbol.
void Factoring::append(Sequence& sequence, Set set, uint32_t owner) {
    while (set.size() > 1 && !spent() && known_sets_.count(set) == 0) {
        Groups groups = split(set);
        if (groups.ends || groups.by_symbol.size() != 1) break;
        auto& [symbol, tails] = groups.by_symbol.begin()->second;
        sequence.push_back(symbol);
        set = std::move(tails);
    }
    if (set.size() == 1)
        append(sequence, set[0]);
    else
        sequence.push_back({Symbol::Kind::rule, rule_of(std::move(set), owner)});
}

Factoring::Alternatives Factoring::written(const Groups& groups, uint32_t owner) {
    Alternatives out;
    for (const auto& [name, group] : groups.by_symbol) {
        out.push_back({group.first});
        append(out.back(), group.second, owner);
        work_ += out.back().size();
    }
    if (groups.ends) out.emplace_back();
    return out;
}

}  // namespace redline
