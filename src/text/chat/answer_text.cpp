#include "text/chat/answer_text.h"

namespace redline {

AnswerText::AnswerText(const std::optional<ReasoningMarks>& marks, std::string_view scaffold, Show show)
    : marks_(marks), show_(std::move(show)) {
    if (marks) splitter_.emplace(*marks, scaffold);
}

bool AnswerText::give(const std::vector<AnswerPiece>& pieces) {
    bool wanted = true;
    for (const AnswerPiece& piece : pieces) {
        (piece.reasoning ? reasoning_ : content_) += piece.text;
        wanted = wanted && (!show_ || show_(piece));
    }
    return wanted;
}

bool AnswerText::push(std::string_view text) {
    if (splitter_) return give(splitter_->push(text));
    return text.empty() || give({{false, std::string(text)}});
}

void AnswerText::finish() {
    if (splitter_) give(splitter_->finish());
}

std::function<std::vector<Token>()> AnswerText::reasoning_limit(const Tokenizer& tokenizer, uint64_t budget) {
    return [this, &tokenizer, budget, used = uint64_t(0)]() mutable -> std::vector<Token> {
        if (!in_reasoning() || used++ < budget) return {};
        used = 0;
        cut_ = true;
        return tokenizer.encode(marks_->closing(), {.add_special = false, .parse_special = true});
    };
}

}  // namespace redline
