// For models that reason, a grammar constrains the answer only. This finds where the answer begins, and the
// tokens that may come before it.
#pragma once

#include "grammar/token_table.h"
#include "text/chat/reasoning.h"

namespace redline {

class AnswerGate {
public:
    enum class Admits : uint8_t {
        grammar,  // only tokens that the grammar allows, from here on
        listed,   // those, and tokens(), which the grammar does not see
        only,     // tokens() only; the grammar does not see them
        all_but,  // anything but tokens() and tokens that end the text
    };

    // `wanted`: the text may begin with reasoning. Without it only reasoning that the prompt's scaffold has
    // opened can be ended. The tokenizer and the table must outlive this.
    AnswerGate(const ReasoningMarks& marks, std::string_view scaffold, bool wanted,
               const Tokenizer& tokenizer, const TokenTable& table);

    // The tokens of the marks. A grammar that names one of them constrains the reasoning, too.
    const std::vector<int32_t>& mark_tokens() const { return mark_tokens_; }
    Admits admits() const { return admits_; }
    const std::vector<int32_t>& tokens() const { return tokens_; }
    // True or false for a token that the gate decides about; empty: the grammar decides, and sees the token.
    std::optional<bool> passes(int32_t token) const;
    // Removes the listed tokens for which `allows` is true, so that the grammar sees them, unless they are a
    // mark by themselves.
    template <typename Allows>
    void leave_to_grammar(Allows allows) {
        if (admits_ == Admits::listed)
            std::erase_if(tokens_, [&](int32_t token) { return is_text(token) && allows(token); });
    }
    // Adds the next token of the text, which must be allowed.
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
    size_t opened_ = 0;             // the number of them that came
    bool fresh_ = true;             // no token came yet
    size_t blanks_ = 0;             // bytes of white space behind the reasoning
    int32_t last_ = kNoToken;       // the last token
    std::string text_;              // the end of the text
    Admits admits_ = Admits::grammar;
    std::vector<int32_t> tokens_;
};

}  // namespace redline
