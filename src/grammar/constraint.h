// The tokens that a grammar allows next: an exact mask over the whole vocabulary. The tokens that a stack
// accepts are computed once per position in the grammar, not per text: for most tokens only the stack's upper
// part matters, and tokens that reach below it are checked again. Caches survive restart(), so a constraint
// is made once.
#pragma once

#include "grammar/answer_gate.h"
#include "grammar/ending.h"

#include <unordered_map>

namespace redline {

class Constraint {
public:
    // All tokens that the grammar names must be in the vocabulary. The tokenizer must outlive this.
    static Result<std::unique_ptr<Constraint>> create(Grammar grammar, const Tokenizer& tokenizer,
                                                      size_t size);
    Constraint(const Constraint&) = delete;
    Constraint& operator=(const Constraint&) = delete;

    // For a model that reasons, only the answer is constrained, unless the grammar names the marks.
    // `scaffold`: the end of the prompt. `wanted`: the text may begin with reasoning; without it only
    // reasoning that the prompt opened can be ended. Restarts; later restarts keep this setting. Without
    // marks the whole text is constrained.
    void expect_reasoning(const std::optional<ReasoningMarks>& marks, std::string_view scaffold, bool wanted);
    void restart();
    // A mask with a bit for each token, in words of 64; valid until the next call of any function.
    Result<std::span<const uint64_t>> allowed();
    Result<bool> allows(int32_t token);
    // An error when the token is not allowed.
    Status accept(int32_t token);
    // Returns the token, which must be allowed, or another where the text could not be completed in `left`
    // tokens after it. When no known ending fits, or the text is not constrained yet, the token is kept.
    Result<int32_t> in_time(int32_t token, uint64_t left);
    // The text is complete, and nothing more may follow.
    bool finished() const {
        return binds() && automaton_.can_end(state_) && automaton_.stacks(state_).empty();
    }

    // True when the text may end here, whether or not more may follow. Nothing is complete before the
    // constraint begins.
    bool complete() const { return binds() && automaton_.can_end(state_); }

    const TokenTable& table() const { return table_; }

private:
    using Stack = Automaton::Stack;
    using State = Automaton::State;
    using Mask = std::vector<uint64_t>;

    // A list of tokens, or, when they are many, a mask.
    struct TokenSet {
        std::vector<int32_t> list;
        Mask mask;
    };
    // The tokens that the upper part of a stack accepts by itself, and the trie nodes at which it is used up.
    struct Upper {
        TokenSet tokens;
        std::vector<uint32_t> used_up;
    };
    struct Parts {
        Stack upper;
        Stack below;
    };

    Constraint(Grammar grammar, const Tokenizer& tokenizer, size_t size)
        : grammar_(std::move(grammar)),
          tokenizer_(tokenizer),
          table_(TokenTable::create(tokenizer, size)),
          automaton_(grammar_),
          alike_(grammar_.alike_positions()) {}
    Status resolve_tokens();
    bool binds() const { return !gate_ || gate_->admits() == AnswerGate::Admits::grammar; }
    bool grammar_allows(int32_t token);
    std::span<const uint64_t> gated(std::span<const uint64_t> mask);
    Result<std::span<const uint64_t>> grammar_mask();
    State after(State state, int32_t token);
    void trim();

    template <typename Visit>
    void walk(const TokenTrie& trie, uint32_t node, State state, Visit visit);
    void collect(const TokenTrie& trie, uint32_t node, TokenSet& set) const;
    void pack(TokenSet& set);
    void add(const TokenSet& set, Mask& mask) const;
    Parts split(Stack stack, uint32_t longest);
    void loosen_count(Automaton::Element& element, uint32_t longest) const;
    const Upper& upper(size_t trie, Stack stack);
    const TokenSet& below(size_t trie, Parts parts, const Upper& upper);
    void add_text_tokens(Mask& mask);
    void add_named_tokens(Mask& mask) const;

    const Grammar grammar_;
    const Tokenizer& tokenizer_;
    const TokenTable table_;
    Automaton automaton_;
    const std::vector<uint32_t> alike_;  // by position, see Grammar
    std::vector<int32_t> named_;         // as Grammar::tokens()
    State state_ = Automaton::kDead;
    std::optional<Ending> ending_;                 // made at its first use
    std::optional<std::vector<int32_t>> planned_;  // tokens that complete the text, once they had to be found
    std::optional<AnswerGate> at_start_;           // the gate at the start of a text
    std::optional<AnswerGate> gate_;
    Mask gated_;
    std::vector<State> path_;  // of a walk, by depth
    // By trie and stack; below_: by trie, upper part and the rest.
    std::vector<std::unordered_map<Stack, Upper>> upper_;
    std::vector<std::unordered_map<uint64_t, TokenSet>> below_;
    std::unordered_map<State, Mask> masks_;
    size_t cached_bytes_ = 0;
};

}  // namespace redline
