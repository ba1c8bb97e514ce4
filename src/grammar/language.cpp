#include "grammar/language.h"

#include "grammar/nfa.h"
#include "text/tokens/unicode.h"

#include <algorithm>
#include <map>

namespace redline {
namespace {

constexpr size_t kMostStates = 3000;
constexpr size_t kMostPlaces = 100'000;   // of all states together, by weight
constexpr size_t kMostWork = 20'000'000;  // weights of the places of all steps
constexpr char32_t kLast = 0x10FFFF;

class Subsets {
public:
    explicit Subsets(const std::vector<Condition>& conditions) {
        for (const Condition& each : conditions) {
            nfas_.emplace_back(each.pattern);
            negated_.push_back(each.negated);
        }
    }

    std::optional<Dfa> run() {
        std::vector<Nfa::Places> start;
        for (const Nfa& nfa : nfas_) {
            if (!nfa.fits()) return {};
            std::optional<Nfa::Places> places = nfa.start();
            if (!places) return {};
            start.push_back(std::move(*places));
        }
        state(std::move(start));
        for (size_t i = 0; i < waiting_.size() && !too_large_; ++i) follow(i);
        if (too_large_) return {};
        return std::move(dfa_);
    }

private:
    using State = std::vector<Nfa::Places>;

    uint32_t state(State places) {
        const auto [found, added] = known_.try_emplace(std::move(places), uint32_t(dfa_.states.size()));
        if (!added) return found->second;
        waiting_.push_back(&found->first);
        bool ends = true;
        for (size_t i = 0; i < nfas_.size(); ++i) {
            places_ += Nfa::weight(found->first[i]);
            const std::optional<bool> matches = nfas_[i].ends(found->first[i], found->second == 0);
            too_large_ = too_large_ || !matches;
            ends = ends && matches != negated_[i];
        }
        dfa_.states.push_back({{}, ends});
        too_large_ = too_large_ || waiting_.size() > kMostStates || places_ > kMostPlaces;
        return found->second;
    }

    // Characters in the same sets lead to the same state.
    void follow(size_t from) {
        const State& places = *waiting_[from];
        std::vector<std::pair<size_t, uint32_t>> sets;                // (automaton, number of its set)
        std::vector<std::map<uint32_t, size_t>> index(nfas_.size());  // in `sets`, by a set's number
        std::set<char32_t> bounds = {0};
        for (size_t i = 0; i < nfas_.size(); ++i) {
            std::set<uint32_t> numbers;
            nfas_[i].add_sets(places[i], numbers);
            work_ += Nfa::weight(places[i]);
            for (const uint32_t number : numbers) {
                index[i].emplace(number, sets.size());
                sets.emplace_back(i, number);
                for (const CodeRange& range : nfas_[i].set(number).ranges()) {
                    bounds.insert(range.first);
                    if (range.last < kLast) bounds.insert(range.last + 1);
                }
            }
        }
        std::map<std::vector<bool>, std::vector<CodeRange>> classes;
        work_ += bounds.size() * sets.size();
        too_large_ = work_ > kMostWork;
        if (too_large_) return;
        for (auto bound = bounds.begin(); bound != bounds.end(); ++bound) {
            std::vector<bool> inside;
            for (const auto& [i, number] : sets) inside.push_back(nfas_[i].set(number).contains(*bound));
            const auto next = std::next(bound);
            classes[std::move(inside)].push_back({*bound, next == bounds.end() ? kLast : *next - 1});
        }
        std::map<uint32_t, std::vector<CodeRange>> edges;
        for (const auto& [inside, ranges] : classes) {
            State next;
            bool dead = false;
            for (size_t i = 0; i < nfas_.size() && !dead; ++i) {
                std::optional<Nfa::Places> step = nfas_[i].step(
                    places[i], [&, &in = inside](uint32_t number) { return bool(in[index[i].at(number)]); });
                work_ += 1 + Nfa::weight(places[i]);
                too_large_ = too_large_ || !step || work_ > kMostWork;
                if (too_large_) return;
                next.push_back(std::move(*step));
                dead = next.back().empty() && !negated_[i];
            }
            if (dead) continue;
            std::vector<CodeRange>& all = edges[state(std::move(next))];
            all.insert(all.end(), ranges.begin(), ranges.end());
        }
        for (auto& [to, ranges] : edges)
            if (CharacterSet set(std::move(ranges)); !set.empty())
                dfa_.states[from].edges.push_back({std::move(set), to});
    }

    std::vector<Nfa> nfas_;
    std::vector<bool> negated_;
    std::map<State, uint32_t> known_;
    std::vector<const State*> waiting_;
    size_t places_ = 0;
    size_t work_ = 0;
    bool too_large_ = false;
    Dfa dfa_;
};

// For each state whether an end can be reached from it.
std::vector<bool> alive(const Dfa& dfa) {
    std::vector<std::vector<uint32_t>> before(dfa.states.size());
    std::vector<uint32_t> waiting;
    std::vector<bool> found(dfa.states.size());
    for (uint32_t i = 0; i < dfa.states.size(); ++i) {
        for (const Dfa::Edge& edge : dfa.states[i].edges) before[edge.to].push_back(i);
        if (dfa.states[i].ends) found[i] = true, waiting.push_back(i);
    }
    while (!waiting.empty()) {
        const uint32_t state = waiting.back();
        waiting.pop_back();
        for (const uint32_t from : before[state])
            if (!found[from]) found[from] = true, waiting.push_back(from);
    }
    return found;
}

// The edges of a state to live states; those to the same class are merged.
std::vector<Dfa::Edge> joined_edges(const Dfa::State& state, const std::vector<bool>& lives,
                                    const std::vector<uint32_t>& classes) {
    std::map<uint32_t, std::vector<CodeRange>> ranges;
    for (const Dfa::Edge& edge : state.edges) {
        if (!lives[edge.to]) continue;
        std::vector<CodeRange>& all = ranges[classes[edge.to]];
        all.insert(all.end(), edge.set.ranges().begin(), edge.set.ranges().end());
    }
    std::vector<Dfa::Edge> out;
    for (auto& [to, all] : ranges) out.push_back({CharacterSet(std::move(all)), to});
    return out;
}

// Numbers the classes of equivalent states; the class of the start is 0, dead states have none.
std::vector<uint32_t> classes_of(const Dfa& dfa, const std::vector<bool>& lives) {
    std::vector<uint32_t> number(dfa.states.size());
    for (size_t i = 0; i < number.size(); ++i) number[i] = dfa.states[i].ends ? 1 : 0;
    for (size_t count = 0;;) {
        std::map<std::vector<uint32_t>, uint32_t> known;
        std::vector<uint32_t> next(number.size());
        for (size_t i = 0; i < number.size(); ++i) {
            if (!lives[i]) continue;
            std::vector<uint32_t> same = {number[i]};
            for (const Dfa::Edge& edge : joined_edges(dfa.states[i], lives, number)) {
                same.push_back(edge.to);
                same.push_back(uint32_t(edge.set.ranges().size()));
                for (const CodeRange& range : edge.set.ranges())
                    same.insert(same.end(), {range.first, range.last});
            }
            next[i] = known.try_emplace(std::move(same), uint32_t(known.size())).first->second;
        }
        number = std::move(next);
        if (known.size() == count) return number;
        count = known.size();
    }
}

Dfa smallest(const Dfa& dfa) {
    const std::vector<bool> lives = alive(dfa);
    Dfa out;
    if (!lives[0]) return out;
    const std::vector<uint32_t> number = classes_of(dfa, lives);
    for (size_t i = 0; i < number.size(); ++i) {
        // Each class is written once, at its first state, so that numbers ascend.
        if (!lives[i] || number[i] < out.states.size()) continue;
        out.states.push_back({joined_edges(dfa.states[i], lives, number), dfa.states[i].ends});
    }
    return out;
}

}  // namespace

std::optional<Dfa> intersection(const std::vector<Condition>& conditions) {
    const std::optional<Dfa> dfa = Subsets(conditions).run();
    return dfa ? std::optional(smallest(*dfa)) : std::nullopt;
}

bool matches(const Dfa& dfa, std::string_view text) {
    if (dfa.states.empty()) return false;
    uint32_t state = 0;
    for (size_t i = 0; i < text.size();) {
        const Utf8Step step = utf8_step(text, i);
        const std::vector<Dfa::Edge>& edges = dfa.states[state].edges;
        const auto edge = std::find_if(edges.begin(), edges.end(),
                                       [&](const Dfa::Edge& each) { return each.set.contains(step.code); });
        if (edge == edges.end()) return false;
        state = edge->to;
        i += step.bytes;
    }
    return dfa.states[state].ends;
}

}  // namespace redline
