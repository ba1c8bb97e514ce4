#include "grammar/nfa.h"

namespace redline {
namespace {

constexpr size_t kMostNodes = 20'000;

}  // namespace

Nfa::Nfa(const Pattern& pattern) {
    nodes_.emplace_back();  // kAccept
    const Pattern any = [] {
        Pattern one;
        one.kind = Pattern::Kind::set;
        one.set = CharacterSet({}, true);
        return repeat_of(std::move(one), 0, Pattern::kUnbounded);
    }();
    start_ = build(any, build(pattern, build(any, kAccept)));
}

bool Nfa::fits() const {
    return nodes_.size() < kMostNodes;
}

uint32_t Nfa::add(Node node) {
    if (fits()) nodes_.push_back(std::move(node));
    return uint32_t(nodes_.size() - 1);
}

// Adds the nodes of a pattern before `next`; returns the first.
uint32_t Nfa::build(const Pattern& pattern, uint32_t next) {
    switch (pattern.kind) {
        case Pattern::Kind::set: {
            size_t number = 0;
            while (number < sets_.size() && !(sets_[number] == pattern.set)) ++number;
            if (number == sets_.size()) sets_.push_back(pattern.set);
            return add({Node::Kind::set, {next}, uint32_t(number)});
        }
        case Pattern::Kind::sequence:
            for (size_t i = pattern.parts.size(); i-- > 0;) next = build(pattern.parts[i], next);
            return next;
        case Pattern::Kind::either: {
            std::vector<uint32_t> ways;
            for (const Pattern& part : pattern.parts) ways.push_back(build(part, next));
            return add({Node::Kind::split, std::move(ways)});
        }
        case Pattern::Kind::repeat:
            return build_repeat(pattern, next);
        case Pattern::Kind::begin:
            return add({Node::Kind::begin, {next}});
        case Pattern::Kind::end:
            return add({Node::Kind::end, {next}});
        case Pattern::Kind::ahead: {
            const uint32_t inner = build(pattern.parts[0], kAccept);
            return add({Node::Kind::ahead, {next}, inner, pattern.negated});
        }
    }
    return next;
}

uint32_t Nfa::build_repeat(const Pattern& pattern, uint32_t next) {
    const Pattern& part = pattern.parts[0];
    const uint32_t behind = next;
    if (pattern.most == Pattern::kUnbounded) {
        const uint32_t loop = add({Node::Kind::split, {}});
        const uint32_t body = build(part, loop);
        if (!fits()) return loop;
        nodes_[loop].next = {body, behind};
        next = loop;
    } else {
        for (uint32_t i = pattern.least; i < pattern.most && fits(); ++i)
            next = add({Node::Kind::split, {build(part, next), behind}});
    }
    for (uint32_t i = 0; i < pattern.least && fits(); ++i) {
        const uint32_t before = next;
        next = build(part, next);
        // A part without nodes adds none, however often it is repeated.
        if (next == before) break;
    }
    return next;
}

// Adds the nodes of a lookahead that are reached without a character.
void Nfa::close(uint32_t node, std::set<uint32_t>& out, Edges edges) const {
    std::vector<uint32_t> waiting = {node};
    while (!waiting.empty()) {
        const uint32_t at = waiting.back();
        waiting.pop_back();
        if (!out.insert(at).second) continue;
        const Node& each = nodes_[at];
        const bool passes = each.kind == Node::Kind::split ||
                            (each.kind == Node::Kind::begin && edges.start) ||
                            (each.kind == Node::Kind::end && edges.end);
        if (passes) waiting.insert(waiting.end(), each.next.begin(), each.next.end());
    }
}

size_t Nfa::weight(const Place& place) {
    size_t sum = 1;
    for (const Obligation& each : place.obligations) sum += 1 + each.nodes.size();
    return sum;
}

size_t Nfa::weight(const Places& places) {
    size_t sum = 0;
    for (const Place& place : places) sum += weight(place);
    return sum;
}

// Adds the places that are reached without a character; those behind a $ wait for the end of the string.
// Optional lookaheads double the places, so it stops when they weigh too much.
void Nfa::close(Place place, Places& out, Edges edges, size_t& work) const {
    std::vector<Place> waiting;
    waiting.push_back(std::move(place));
    while (!waiting.empty() && work <= kMostWeight) {
        Place at = std::move(waiting.back());
        waiting.pop_back();
        const Node& node = nodes_[at.node];
        if (!out.insert(at).second) continue;
        if (node.kind == Node::Kind::set || node.kind == Node::Kind::accept ||
            (node.kind == Node::Kind::begin && !edges.start) || (node.kind == Node::Kind::end && !edges.end))
            continue;
        if (node.kind == Node::Kind::ahead) {
            Obligation obligation{node.negated, {}};
            close(node.number, obligation.nodes, edges);
            if (is_met(obligation) && node.negated) continue;
            if (!is_met(obligation)) at.obligations.insert(std::move(obligation));
        }
        work += weight(at) * node.next.size();
        for (const uint32_t next : node.next) waiting.push_back({next, at.obligations});
    }
}

std::optional<Nfa::Places> Nfa::start() const {
    Places out;
    size_t work = 0;
    close(Place{start_, {}}, out, {.start = true}, work);
    return work > kMostWeight ? std::nullopt : std::optional(std::move(out));
}

std::optional<bool> Nfa::ends(const Places& places, bool at_start) const {
    const Edges edges{at_start, true};
    Places last;
    size_t work = 0;
    for (const Place& place : places) {
        const Node::Kind kind = nodes_[place.node].kind;
        if (kind == Node::Kind::end || kind == Node::Kind::accept) close(place, last, edges, work);
    }
    if (work > kMostWeight) return {};
    for (const Place& place : last) {
        if (place.node != kAccept) continue;
        bool kept = true;
        for (const Obligation& each : place.obligations) {
            Obligation whole{each.negated, {}};
            for (const uint32_t node : each.nodes) close(node, whole.nodes, edges);
            kept = kept && is_met(whole) != each.negated;
        }
        if (kept) return true;
    }
    return false;
}

void Nfa::add_sets(const Places& places, std::set<uint32_t>& numbers) const {
    const auto add = [&](uint32_t node) {
        if (nodes_[node].kind == Node::Kind::set) numbers.insert(nodes_[node].number);
    };
    for (const Place& place : places) {
        add(place.node);
        for (const Obligation& each : place.obligations)
            for (const uint32_t node : each.nodes) add(node);
    }
}

}  // namespace redline
