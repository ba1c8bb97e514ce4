#include "grammar/constraint.h"

#include "text/tokens/tokenizer.h"
#include "text/tokens/unicode.h"

#include <algorithm>

namespace redline {
namespace {

constexpr size_t kMostCached = size_t(64) << 20;  // bytes of token sets
// The masks of counted strings differ after each token, but are quickly composed.
constexpr size_t kMostMasks = 256;

void set_bit(std::vector<uint64_t>& mask, int32_t token) {
    mask[size_t(token) / 64] |= uint64_t(1) << (size_t(token) % 64);
}

void clear_bit(std::vector<uint64_t>& mask, int32_t token) {
    mask[size_t(token) / 64] &= ~(uint64_t(1) << (size_t(token) % 64));
}

}  // namespace

Result<std::unique_ptr<Constraint>> Constraint::create(Grammar grammar, const Tokenizer& tokenizer,
                                                       size_t size) {
    std::unique_ptr<Constraint> made(new Constraint(std::move(grammar), tokenizer, size));
    RL_TRY(made->resolve_tokens());
    made->upper_.resize(made->table_.tries().size());
    made->below_.resize(made->table_.tries().size());
    made->restart();
    RL_TRY(made->automaton_.check());
    return made;
}

Status Constraint::resolve_tokens() {
    for (const Grammar::TokenName& name : grammar_.tokens()) {
        const int32_t id = name.text.empty() ? name.id : tokenizer_.find(name.text);
        const std::string shown = name.text.empty() ? fmt::format("<[{}]>", name.id) : printable(name.text);
        if (id < 0 || size_t(id) >= table_.size())
            return error("the grammar names the token {} ({}), which this model's vocabulary does not have",
                         shown, name.place);
        if (table_.ends(id))
            return error("the grammar names the token {} ({}), which ends the text by itself; leave it out",
                         shown, name.place);
        named_.push_back(id);
    }
    return {};
}

void Constraint::expect_reasoning(const std::optional<ReasoningMarks>& marks, std::string_view scaffold,
                                  bool wanted) {
    at_start_.reset();
    if (marks) at_start_.emplace(*marks, scaffold, wanted, tokenizer_, table_);
    const auto names = [this](int32_t mark) {
        return std::find(named_.begin(), named_.end(), mark) != named_.end();
    };
    if (marks && std::any_of(at_start_->mark_tokens().begin(), at_start_->mark_tokens().end(), names))
        at_start_.reset();
    restart();
}

void Constraint::restart() {
    state_ = automaton_.start();
    planned_.reset();
    gate_.reset();
    if (!at_start_) return;
    gate_.emplace(*at_start_);
    gate_->leave_to_grammar([this](int32_t listed) { return grammar_allows(listed); });
}

// Walks the subtree of a node, whose bytes led to `state`, without the node itself. visit(node, state) may
// return false to skip its subtree.
template <typename Visit>
void Constraint::walk(const TokenTrie& trie, uint32_t node, State state, Visit visit) {
    const TokenTrie::Node* nodes = trie.nodes.data();
    const uint32_t base = nodes[node].depth;
    const uint32_t end = nodes[node].next;
    path_.resize(std::max<size_t>(path_.size(), trie.longest + 1));
    path_[base] = state;
    uint64_t steps = 0;
    for (uint32_t i = node + 1; i < end; ++steps) {
        const uint32_t depth = nodes[i].depth;
        const State next = automaton_.step(path_[depth - 1], nodes[i].byte);
        path_[depth] = next;
        i = next != Automaton::kDead && visit(i, next) ? i + 1 : nodes[i].next;
    }
    automaton_.add_work(steps);
}

void Constraint::collect(const TokenTrie& trie, uint32_t node, TokenSet& set) const {
    for (uint32_t i = trie.nodes[node].first; i < trie.nodes[node + 1].first; ++i)
        set.list.push_back(trie.tokens[i]);
}

void Constraint::pack(TokenSet& set) {
    const size_t words = (table_.size() + 63) / 64;
    if (set.list.size() > words / 2) {
        set.mask.assign(words, 0);
        for (const int32_t token : set.list) set_bit(set.mask, token);
        set.list = {};
    }
    set.list.shrink_to_fit();
    cached_bytes_ += set.list.size() * sizeof(int32_t) + set.mask.size() * sizeof(uint64_t) + sizeof set;
}

void Constraint::add(const TokenSet& set, Mask& mask) const {
    for (const int32_t token : set.list) set_bit(mask, token);
    for (size_t i = 0; i < set.mask.size(); ++i) mask[i] |= set.mask[i];
}

// The upper part ends below a rule that is not small. Within it, repetitions that can continue for longer
// than any token are treated as equal, provided each pass takes at least a byte, and so are positions from
// which the grammar continues identically.
Constraint::Parts Constraint::split(Stack stack, uint32_t longest) {
    std::vector<Automaton::Element> elements;
    while (stack > Automaton::kUnknown && !automaton_.is_joint(stack)) {
        const Automaton::Element& element = automaton_.element(stack);
        const Grammar::Rule& rule = grammar_.rule_at(element.position);
        if (!elements.empty() && !rule.small && !grammar_.rule_at(elements.back().position).name.empty())
            break;
        elements.push_back(element);
        stack = element.below;
    }
    Parts parts = {stack == Automaton::kEmpty ? stack : Automaton::kUnknown, stack};
    for (; !elements.empty(); elements.pop_back()) {
        Automaton::Element& element = elements.back();
        const Symbol& symbol = grammar_.symbols()[element.position];
        if (symbol.kind == Symbol::Kind::repeat &&
            !grammar_.rules()[grammar_.repeats()[symbol.index].rule].nullable) {
            element.least = std::min(element.least, longest + 1);
            if (element.most > longest) element.most = Grammar::kUnbounded;
        }
        if (symbol.kind == Symbol::Kind::counted ||
            grammar_.rule_at(element.position).state != Grammar::kNoState)
            loosen_count(element, longest);
        element.position = alike_[element.position];
        element.below = parts.upper;
        parts.upper = automaton_.push(element);
    }
    return parts;
}

// Treats step counts that no token can exhaust as equal: from all states that can continue for longer than
// any token an end is reached within each period.
void Constraint::loosen_count(Automaton::Element& element, uint32_t longest) const {
    const StepCounts& counts = grammar_.step_counts();
    const uint64_t far = uint64_t(longest) + counts.settled() + 1;
    const bool roomy = element.most == Grammar::kUnbounded ||
                       (element.most > far && element.most - element.least >= counts.period());
    if (counts.period() == 0 || !roomy) return;
    element.most = Grammar::kUnbounded;
    element.least = uint32_t(std::min<uint64_t>(element.least, far));
}

const Constraint::Upper& Constraint::upper(size_t trie, Stack stack) {
    const auto [found, added] = upper_[trie].try_emplace(stack);
    Upper& made = found->second;
    if (!added) return made;
    const TokenTrie& tokens = table_.tries()[trie];
    walk(tokens, 0, automaton_.state_of(stack), [&](uint32_t node, State state) {
        collect(tokens, node, made.tokens);
        if (automaton_.escapes(state)) made.used_up.push_back(node);
        return true;
    });
    pack(made.tokens);
    cached_bytes_ += made.used_up.size() * sizeof(uint32_t) + sizeof made;
    return made;
}

// The tokens that use up the upper part and continue with the elements below it.
const Constraint::TokenSet& Constraint::below(size_t trie, Parts parts, const Upper& upper) {
    const auto [found, added] = below_[trie].try_emplace(uint64_t(parts.upper) << 32 | parts.below);
    TokenSet& made = found->second;
    if (!added) return made;
    const TokenTrie& tokens = table_.tries()[trie];
    const State state = automaton_.state_of(parts.below);
    for (const uint32_t node : upper.used_up)
        walk(tokens, node, state, [&](uint32_t inner, State) {
            collect(tokens, inner, made);
            return true;
        });
    pack(made);
    return made;
}

void Constraint::add_text_tokens(Mask& mask) {
    for (size_t trie = 0; trie < table_.tries().size(); ++trie) {
        const TokenTrie& tokens = table_.tries()[trie];
        if (automaton_.inside_character(state_)) {
            TokenSet set;
            walk(tokens, 0, state_, [&](uint32_t node, State) {
                collect(tokens, node, set);
                return true;
            });
            add(set, mask);
            continue;
        }
        // A copy, since this computes new states.
        const std::span<const Stack> now = automaton_.stacks(state_);
        for (const Stack stack : std::vector<Stack>(now.begin(), now.end())) {
            if (automaton_.symbol(stack).kind != Symbol::Kind::characters) continue;
            const Parts parts = split(stack, tokens.longest);
            const Upper& above = upper(trie, parts.upper);
            add(above.tokens, mask);
            if (!above.used_up.empty()) add(below(trie, parts, above), mask);
        }
    }
}

void Constraint::add_named_tokens(Mask& mask) const {
    if (automaton_.inside_character(state_)) return;
    for (const Stack stack : automaton_.stacks(state_)) {
        const Symbol& symbol = automaton_.symbol(stack);
        if (symbol.kind == Symbol::Kind::token) set_bit(mask, named_[symbol.index]);
        if (symbol.kind != Symbol::Kind::other_token) continue;
        for (int32_t token = 0; size_t(token) < table_.size(); ++token)
            if (token != named_[symbol.index] && !table_.piece(token).empty()) set_bit(mask, token);
    }
}

Result<std::span<const uint64_t>> Constraint::grammar_mask() {
    if (const auto known = masks_.find(state_); known != masks_.end())
        return std::span<const uint64_t>(known->second);
    automaton_.begin_work();
    Mask mask((table_.size() + 63) / 64, 0);
    add_text_tokens(mask);
    add_named_tokens(mask);
    if (automaton_.can_end(state_))
        for (const int32_t token : table_.end_tokens()) set_bit(mask, token);
    RL_TRY(automaton_.check());
    if (masks_.size() >= kMostMasks) masks_.clear();
    return std::span<const uint64_t>(masks_.emplace(state_, std::move(mask)).first->second);
}

// The state behind a token, by its text or by its name. A token that has both, and ends inside a character,
// counts by its name.
Constraint::State Constraint::after(State state, int32_t token) {
    const auto named = [&](const Symbol& symbol) {
        if (symbol.kind == Symbol::Kind::token) return named_[symbol.index] == token;
        return symbol.kind == Symbol::Kind::other_token && named_[symbol.index] != token &&
               !table_.piece(token).empty();
    };
    const State by_name = automaton_.step_token(state, named);
    State by_text = table_.piece(token).empty() ? Automaton::kDead : state;
    for (const char byte : table_.piece(token)) by_text = automaton_.step(by_text, uint8_t(byte));
    if (by_name == Automaton::kDead) return by_text;
    if (by_text == Automaton::kDead || automaton_.inside_character(by_text)) return by_name;
    return automaton_.join(by_name, by_text);
}

bool Constraint::grammar_allows(int32_t token) {
    return table_.ends(token) ? automaton_.can_end(state_) : after(state_, token) != Automaton::kDead;
}

// Combines a mask of the grammar with the gate's tokens.
std::span<const uint64_t> Constraint::gated(std::span<const uint64_t> mask) {
    const bool all = gate_->admits() == AnswerGate::Admits::all_but;
    gated_.assign((table_.size() + 63) / 64, all ? ~uint64_t(0) : 0);
    if (all && table_.size() % 64 != 0) gated_.back() = (uint64_t(1) << (table_.size() % 64)) - 1;
    std::copy(mask.begin(), mask.end(), gated_.begin());
    for (const int32_t token : gate_->tokens()) all ? clear_bit(gated_, token) : set_bit(gated_, token);
    if (!all) return gated_;
    for (const int32_t token : table_.end_tokens()) clear_bit(gated_, token);
    return gated_;
}

Result<std::span<const uint64_t>> Constraint::allowed() {
    trim();
    if (binds()) return grammar_mask();
    if (gate_->admits() == AnswerGate::Admits::listed) return gated(RL_TRY(grammar_mask()));
    return gated({});
}

Result<bool> Constraint::allows(int32_t token) {
    if (token < 0 || size_t(token) >= table_.size()) return false;
    if (gate_)
        if (const std::optional<bool> passes = gate_->passes(token)) return *passes;
    trim();
    automaton_.begin_work();
    const bool possible = grammar_allows(token);
    RL_TRY(automaton_.check());
    return possible;
}

Status Constraint::accept(int32_t token) {
    if (!RL_TRY(allows(token))) return error("the grammar does not allow token {} here", token);
    const bool counts = !gate_ || !gate_->passes(token);
    if (counts && !table_.ends(token)) state_ = after(state_, token);
    if (planned_ && !planned_->empty() && planned_->front() == token)
        planned_->erase(planned_->begin());
    else
        planned_.reset();
    if (gate_ && !binds()) {
        gate_->push(token);
        gate_->leave_to_grammar([this](int32_t listed) { return grammar_allows(listed); });
    }
    return {};
}

Result<int32_t> Constraint::in_time(int32_t token, uint64_t left) {
    if (!binds() || table_.ends(token)) return token;
    trim();
    automaton_.begin_work();
    if (!ending_) ending_.emplace(grammar_, table_);
    const bool fits = ending_->fits(automaton_, after(state_, token), left);
    RL_TRY(automaton_.check());
    if (fits) return token;
    // An earlier plan may be better: another ending may have as many bytes, but more tokens.
    std::optional<std::vector<int32_t>> found = ending_->find(automaton_, state_, left + 1);
    if (found && (!planned_ || found->size() < planned_->size())) planned_ = std::move(found);
    if (!planned_ || planned_->size() > left + 1) return token;
    if (!planned_->empty()) return planned_->front();
    return table_.end_tokens().empty() ? token : table_.end_tokens().front();
}

// Clears the caches when they have become too large.
void Constraint::trim() {
    if (!automaton_.is_full() && cached_bytes_ <= kMostCached) return;
    for (auto& each : upper_) each.clear();
    for (auto& each : below_) each.clear();
    masks_.clear();
    cached_bytes_ = 0;
    if (automaton_.is_full()) state_ = automaton_.forget_all_but(state_);
}

}  // namespace redline
