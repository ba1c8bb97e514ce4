// Where a grammar begins to bind the text of a model that reasons: at the answer. Until then this says which
// tokens may come all the same.
#pragma once

#include "grammar/token_table.h"
#include "text/chat/reasoning.h"

namespace redline {

class AnswerGate {
public:
    enum class Admits : uint8_t {
        grammar,  // only what it allows, from here on for good
        listed,   // that, and tokens() that do not count for it
        only,     // tokens() and nothing else; they do not count either
        all_but,  // anything but tokens() and what ends the text
    };

    // `wanted`: the text may begin with reasoning. Otherwise only what the prompt's scaffold has opened is
    // left to end. The tokenizer and the table must stay.
    AnswerGate(const ReasoningMarks& marks, std::string_view scaffold, bool wanted,
               const Tokenizer& tokenizer, const TokenTable& table);

    // The tokens of the marks: a grammar that names one of them binds the reasoning, too.
    const std::vector<int32_t>& mark_tokens() const { return mark_tokens_; }
    Admits admits() const { return admits_; }
    const std::vector<int32_t>& tokens() const { return tokens_; }
    // Whether a token may come beside the grammar; none: the grammar says, and the token counts for it.
    std::optional<bool> passes(int32_t token) const;
    // Listed tokens that `allows` is true for count for the grammar, unless they are a mark by themselves.
    template <typename Allows>
    void leave_to_grammar(Allows allows) {
        if (admits_ == Admits::listed)
            std::erase_if(tokens_, [&](int32_t token) { return is_text(token) && allows(token); });
    }
    // The next token of the text, which may come.
    void push(int32_t token);

private:
    void look();
    void look_before_answer();
    void admit(Admits what, std::vector<int32_t> tokens);
    bool is_text(int32_t token) const;
    std::vector<int32_t> encode_mark(std::string_view text) const;
    std::vector<int32_t> beyond_closing_mark() const;
    std::vector<int32_t> behind_reasoning() const;

    const Tokenizer& tokenizer_;
    const TokenTable& table_;
    const ReasoningMarks marks_;
    const bool wanted_;
    ReasoningSplitter splitter_;
    std::vector<int32_t> mark_tokens_;
    std::vector<int32_t> opening_;  // the tokens of the mark that opens the reasoning, or of harmony's header
    size_t opened_ = 0;             // so many of them came
    bool fresh_ = true;             // nothing came
    size_t blanks_ = 0;             // bytes of white space behind the reasoning
    int32_t last_ = kNoToken;       // that came
    std::string text_;              // its end
    Admits admits_ = Admits::grammar;
    std::vector<int32_t> tokens_;
};

}  // namespace redline
