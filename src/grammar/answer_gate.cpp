#include "grammar/answer_gate.h"

#include "text/tokens/tokenizer.h"

#include <algorithm>

namespace redline {
namespace {

constexpr std::string_view kSpaces = " \t\r\n";
// White space that models write between the reasoning and the answer: an empty line.
constexpr size_t kMostBlanks = 2;

bool is_blank(std::string_view text) {
    return text.find_first_not_of(kSpaces) == text.npos;
}

}  // namespace

AnswerGate::AnswerGate(const ReasoningMarks& marks, std::string_view scaffold, bool wanted,
                       const Tokenizer& tokenizer, const TokenTable& table)
    : tokenizer_(tokenizer), table_(table), marks_(marks), wanted_(wanted), splitter_(marks, scaffold) {
    // Without reasoning a harmony message still has a header.
    opening_ = encode_mark(!wanted && marks.is_harmony() ? "<|channel|>final<|message|>" : marks.open());
    for (const std::string_view mark : {marks.open(), marks.close()})
        for (const int32_t token : encode_mark(mark))
            if (!is_text(token)) mark_tokens_.push_back(token);
    if (!marks.closed_by(scaffold)) look();
}

std::vector<int32_t> AnswerGate::encode_mark(std::string_view text) const {
    return tokenizer_.encode(text, {.add_special = false, .parse_special = true});
}

bool AnswerGate::is_text(int32_t token) const {
    const TokenType type = tokenizer_.type(token);
    return type != TokenType::control && type != TokenType::user_defined;
}

std::optional<bool> AnswerGate::passes(int32_t token) const {
    const bool named = std::find(tokens_.begin(), tokens_.end(), token) != tokens_.end();
    switch (admits_) {
        case Admits::grammar:
            return {};
        case Admits::listed:
            return named ? std::optional(true) : std::nullopt;
        case Admits::only:
            return named;
        case Admits::all_but:
            return !named && !table_.ends(token);
    }
    return {};
}

void AnswerGate::push(int32_t token) {
    if (!passes(token)) return admit(Admits::grammar, {});
    const std::string piece = tokenizer_.piece_after(last_, token, true);
    last_ = token;
    const bool after = splitter_.place() == ReasoningSplitter::Place::after;
    splitter_.push(piece);
    fresh_ = false;
    if (after) blanks_ += piece.size();
    if (opened_ < opening_.size() && token == opening_[opened_]) ++opened_;
    text_ += piece;
    text_.erase(0, text_.size() - std::min(text_.size(), marks_.close().size()));
    look();
}

void AnswerGate::admit(Admits what, std::vector<int32_t> tokens) {
    admits_ = what;
    tokens_ = std::move(tokens);
    std::erase_if(tokens_, [this](int32_t token) { return token < 0 || size_t(token) >= table_.size(); });
}

void AnswerGate::look() {
    switch (splitter_.place()) {
        case ReasoningSplitter::Place::between:
        case ReasoningSplitter::Place::mark:
            return look_before_answer();
        case ReasoningSplitter::Place::reasoning:
            return admit(Admits::all_but, beyond_closing_mark());
        case ReasoningSplitter::Place::after:
            if (blanks_ < kMostBlanks) return admit(Admits::listed, behind_reasoning());
            break;
        case ReasoningSplitter::Place::answer:
            break;
    }
    admit(Admits::grammar, {});
}

// The mark may be opened, and once begun it must be written to its end; harmony's header may be any text.
void AnswerGate::look_before_answer() {
    const bool begun = splitter_.place() == ReasoningSplitter::Place::mark;
    const bool in_order = opened_ < opening_.size() && (opened_ > 0) == begun;
    if (marks_.is_harmony() && wanted_) {
        if (begun) return admit(Admits::all_but, {});
        return admit(Admits::listed, {opening_[0], tokenizer_.find("<|start|>")});
    }
    if (in_order && (begun || marks_.is_harmony())) return admit(Admits::only, {opening_[opened_]});
    if (in_order && wanted_ && fresh_) return admit(Admits::listed, {opening_[0]});
    admit(Admits::grammar, {});
}

// Tokens that would complete the closing mark, of which a part is there, and begin the answer in one.
std::vector<int32_t> AnswerGate::beyond_closing_mark() const {
    std::vector<int32_t> found;
    const std::string_view mark = marks_.close();
    for (size_t there = 1; there < mark.size(); ++there) {
        if (!text_.ends_with(mark.substr(0, there))) continue;
        const std::string_view rest = mark.substr(there);
        for (int32_t token = 0; size_t(token) < table_.size(); ++token) {
            const std::string_view piece = table_.piece(token);
            if (piece.starts_with(rest) && !is_blank(piece.substr(rest.size()))) found.push_back(token);
        }
    }
    return found;
}

std::vector<int32_t> AnswerGate::behind_reasoning() const {
    std::vector<int32_t> found;
    for (int32_t token = 0; size_t(token) < table_.size(); ++token) {
        const std::string& piece = table_.piece(token);
        if (!piece.empty() && piece.size() <= kMostBlanks && is_blank(piece)) found.push_back(token);
    }
    // Marks such as <|START_RESPONSE|>.
    const std::string_view closing = marks_.closing();
    const std::string_view rest = closing.substr(closing.find(marks_.close()) + marks_.close().size());
    for (const int32_t token : encode_mark(rest))
        if (!is_text(token)) found.push_back(token);
    return found;
}

}  // namespace redline
