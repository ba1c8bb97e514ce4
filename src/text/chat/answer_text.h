// The text of an answer on its way to the user: the reasoning and the answer itself, apart.
#pragma once

#include "text/chat/reasoning.h"

#include <functional>

namespace redline {

class AnswerText {
public:
    // Gets each piece; false: no more is wanted.
    using Show = std::function<bool(const AnswerPiece&)>;

    // Without marks all of the text is the answer. `scaffold`: what the prompt ends with.
    AnswerText(const std::optional<ReasoningMarks>& marks, std::string_view scaffold, Show show);

    // False: no more is wanted.
    bool push(std::string_view text);
    void finish();
    // True while the model reasons.
    bool in_reasoning() const { return splitter_ && splitter_->reasoning(); }

    // For GenerateOptions::forced: what ends the reasoning after so many tokens; 0: at once.
    std::function<std::vector<Token>()> reasoning_limit(const Tokenizer& tokenizer, uint64_t budget);

    const std::string& content() const { return content_; }
    const std::string& reasoning() const { return reasoning_; }
    bool cut() const { return cut_; }  // the limit ended the reasoning

private:
    bool give(const std::vector<AnswerPiece>& pieces);

    std::optional<ReasoningMarks> marks_;
    std::optional<ReasoningSplitter> splitter_;
    Show show_;
    std::string content_;
    std::string reasoning_;
    bool cut_ = false;
};

}  // namespace redline
