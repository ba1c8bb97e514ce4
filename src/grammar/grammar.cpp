#include "grammar/grammar.h"

#include <array>
#include <map>
#include <numeric>

namespace redline {

const Grammar::Rule& Grammar::next_step(uint32_t position) const {
    while (symbols_[position].kind != Symbol::Kind::step) ++position;
    return rules_[symbols_[position].index];
}

std::vector<uint32_t> Grammar::alike_positions() const {
    // The nesting depth up to which duplicate rules are recognised.
    constexpr int kRounds = 8;
    std::vector<uint32_t> rule(rules_.size()), set(sets_.size());  // the first equal one
    std::iota(rule.begin(), rule.end(), 0u);
    std::map<std::vector<std::pair<char32_t, char32_t>>, uint32_t> known_sets;
    for (uint32_t i = 0; i < set.size(); ++i) {
        std::vector<std::pair<char32_t, char32_t>> ranges;
        for (const CodeRange& range : sets_[i].ranges()) ranges.emplace_back(range.first, range.last);
        set[i] = known_sets.emplace(std::move(ranges), i).first->second;
    }
    const auto meaning = [&](const Symbol& symbol) {
        if (symbol.kind == Symbol::Kind::characters) return set[symbol.index];
        if (symbol.kind == Symbol::Kind::rule || symbol.kind == Symbol::Kind::step) return rule[symbol.index];
        if (symbol.kind == Symbol::Kind::counted) return rule[counteds_[symbol.index].rule];
        return symbol.kind == Symbol::Kind::repeat ? rule[repeats_[symbol.index].rule] : symbol.index;
    };
    // For each position a number for the rest of the alternative: its symbol with the counts, and the symbols
    // behind it.
    std::vector<uint32_t> rest(symbols_.size());
    const auto follower = [&](size_t at) {
        return symbols_[at].kind == Symbol::Kind::end ? 0 : rest[at + 1];
    };
    bool changed = true;
    for (int round = 0; changed && round < kRounds; ++round) {
        std::map<std::array<uint32_t, 5>, uint32_t> known;
        for (size_t at = symbols_.size(); at-- > 0;) {
            const Symbol& symbol = symbols_[at];
            const Repeat counts = symbol.kind == Symbol::Kind::repeat    ? repeats_[symbol.index]
                                  : symbol.kind == Symbol::Kind::counted ? counteds_[symbol.index]
                                                                         : Repeat{};
            rest[at] = known
                           .try_emplace({uint32_t(symbol.kind), meaning(symbol), counts.least, counts.most,
                                         follower(at)},
                                        uint32_t(known.size()) + 1)
                           .first->second;
        }
        changed = false;
        std::map<std::vector<uint32_t>, uint32_t> known_rules;
        for (uint32_t i = 0; i < rule.size(); ++i) {
            std::vector<uint32_t> all;
            for (const uint32_t first : rules_[i].alternatives) all.push_back(rest[first]);
            const uint32_t same = known_rules.try_emplace(std::move(all), i).first->second;
            changed = changed || same != rule[i];
            rule[i] = same;
        }
    }
    std::vector<uint32_t> alike(symbols_.size());
    std::map<std::array<uint32_t, 3>, uint32_t> known;
    for (size_t at = symbols_.size(); at-- > 0;)
        alike[at] =
            known
                .try_emplace({uint32_t(symbols_[at].kind), meaning(symbols_[at]), follower(at)}, uint32_t(at))
                .first->second;
    return alike;
}

}  // namespace redline
