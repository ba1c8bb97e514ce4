#include "text/chat/reasoning.h"

#include "text/chat/chat_family.h"

#include <algorithm>
#include <utility>

namespace redline {

namespace {

constexpr std::string_view kChannel = "<|channel|>";
constexpr std::string_view kMessage = "<|message|>";
constexpr std::string_view kStart = "<|start|>";
constexpr std::string_view kBlanks = " \t\r\n";
constexpr size_t kLongestHeader = 256;  // bytes; longer is no header

constexpr std::string_view kMessageEnds[] = {"<|end|>", "<|call|>",  "<|return|>", "<|eom|>",
                                             "<|eot|>", "<|calls|>", kStart};

bool has_text(std::string_view text, std::string_view part) {
    return text.find(part) != text.npos;
}

// The number of bytes at the end of `text` that begin `mark` without being all of it.
size_t begun(std::string_view text, std::string_view mark) {
    size_t length = std::min(text.size(), mark.empty() ? 0 : mark.size() - 1);
    while (length > 0 && !text.ends_with(mark.substr(0, length))) --length;
    return length;
}

// True when `text` is the beginning of `mark`, or all of it and more.
bool may_become(std::string_view text, std::string_view mark) {
    const size_t common = std::min(text.size(), mark.size());
    return text.substr(0, common) == mark.substr(0, common);
}

std::string_view without_spaces_at_end(std::string_view text) {
    return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

}  // namespace

std::vector<Token> control_tokens_of(const Tokenizer& tokenizer, std::span<const std::string_view> texts) {
    std::vector<Token> tokens;
    for (const std::string_view text : texts) {
        const Token token = tokenizer.find(text);
        if (!text.empty() && tokenizer.type(token) == TokenType::control) tokens.push_back(token);
    }
    return tokens;
}

std::string_view last_scaffold(std::span<const TextPart> prompt) {
    if (prompt.empty()) return {};
    const TextPart& last = prompt.back();
    return last.scaffold ? std::string_view(last.text) : std::string_view();
}

std::optional<ReasoningMarks> ReasoningMarks::find(std::string_view template_source,
                                                   const Tokenizer& tokenizer) {
    const auto is_token = [&](std::string_view text) {
        const TokenType type = tokenizer.type(tokenizer.find(text));
        return type == TokenType::control || type == TokenType::user_defined;
    };
    for (const ChatFamily& family : chat_families()) {
        const ReasoningStyle& style = family.reasoning;
        if (style.name.empty() || !has_text(template_source, style.close)) continue;
        if (!style.by_close && !has_text(template_source, style.open)) continue;
        ReasoningMarks marks(&style);
        for (const ChatFamily& other : chat_families()) {
            if (other.answer.close.empty() || !has_text(template_source, other.answer.close)) continue;
            marks.answer_open_ = other.answer.open;
            marks.answer_close_ = other.answer.close;
            break;
        }
        return marks;
    }
    for (const ChatFamily& family : chat_families()) {
        const ReasoningStyle& style = family.reasoning;
        if (style.name.empty() || !style.by_vocabulary) continue;
        if (is_token(style.tokens[0]) && is_token(style.tokens[1])) return ReasoningMarks(&style);
    }
    return {};
}

std::optional<ReasoningMarks> ReasoningMarks::named(std::string_view name) {
    for (const ChatFamily& family : chat_families())
        if (!name.empty() && family.reasoning.name == name) return ReasoningMarks(&family.reasoning);
    return {};
}

std::string_view ReasoningMarks::name() const {
    return style_->name;
}

std::string_view ReasoningMarks::closing() const {
    return style_->closing;
}

std::vector<Token> ReasoningMarks::control_tokens(const Tokenizer& tokenizer) const {
    return control_tokens_of(tokenizer, style_->tokens);
}

std::string_view ReasoningMarks::open() const {
    return style_->open;
}

std::string_view ReasoningMarks::close() const {
    return style_->close;
}

bool ReasoningMarks::is_harmony() const {
    return style_->form == ReasoningForm::channels;
}

bool ReasoningMarks::by_messages() const {
    return style_->form != ReasoningForm::marks;
}

bool ReasoningMarks::opened_by(std::string_view scaffold) const {
    const std::string_view end = without_spaces_at_end(scaffold);
    return end.ends_with(style_->opened.empty() ? style_->open : style_->opened);
}

bool ReasoningMarks::closed_by(std::string_view scaffold) const {
    const std::string_view end = without_spaces_at_end(scaffold);
    return end.ends_with(style_->closed.empty() ? style_->close : style_->closed);
}

ReasoningSplitter::ReasoningSplitter(const ReasoningMarks& marks, std::string_view scaffold) : marks_(marks) {
    if (marks.opened_by(scaffold)) state_ = State::reasoning;
    if (!marks.by_messages()) return;
    analysis_ = marks.opened_by(scaffold);
    const bool begun = marks.style_->form == ReasoningForm::marked_messages
                           ? analysis_ || marks.closed_by(scaffold)
                           : scaffold.ends_with(kMessage);
    state_ = begun ? State::message : State::header;
}

ReasoningSplitter::Place ReasoningSplitter::place() const {
    const bool blank = held_.find_first_not_of(kBlanks) == std::string::npos;
    switch (state_) {
        case State::start:
        case State::header:
            return blank ? Place::between : Place::mark;
        case State::after:
            return blank ? Place::after : Place::mark;
        case State::reasoning:
            return Place::reasoning;
        case State::message:
            return analysis_ ? Place::reasoning : Place::answer;
        case State::answer:
            break;
    }
    return Place::answer;
}

void ReasoningSplitter::put(bool reasoning, std::string_view text) {
    if (text.empty()) return;
    if (pieces_.empty() || pieces_.back().reasoning != reasoning) pieces_.push_back({reasoning, {}});
    if (std::exchange(paragraph_, false)) pieces_.back().text += '\n';
    pieces_.back().text += text;
    given_[reasoning] = true;
}

void ReasoningSplitter::give(bool reasoning, size_t count) {
    put(reasoning, std::string_view(held_).substr(0, count));
    drop(count);
}

std::vector<AnswerPiece> ReasoningSplitter::push(std::string_view text) {
    held_ += text;
    while (step()) {
    }
    return std::exchange(pieces_, {});
}

std::vector<AnswerPiece> ReasoningSplitter::finish() {
    if (state_ == State::reasoning) held_.resize(without_spaces_at_end(held_).size());
    if (state_ == State::after) held_.erase(0, held_.find_first_not_of(kBlanks));
    if (state_ == State::header) held_.clear();  // a header that the end of the text cut off
    give(reasoning(), held_.size());
    return std::exchange(pieces_, {});
}

// True: the held text may have more to read.
bool ReasoningSplitter::step() {
    switch (state_) {
        case State::start:
        case State::after:
            return begin_answer();
        case State::reasoning:
            return end_reasoning();
        case State::answer:
            return read_answer();
        case State::header:
            return read_header();
        case State::message:
            return read_message();
    }
    return false;
}

bool ReasoningSplitter::begin_answer() {
    const size_t begin = held_.find_first_not_of(kBlanks);
    if (begin == std::string::npos) return false;
    const std::string_view rest = std::string_view(held_).substr(begin);
    const bool after = state_ == State::after;
    const std::string_view open = !after || marks_.style_->repeats ? marks_.style_->open : "";
    const std::string_view answer = after ? marks_.answer_open_ : "";
    for (const std::string_view mark : {open, answer}) {
        if (mark.empty() || !may_become(rest, mark)) continue;
        if (rest.size() < mark.size()) return false;
        drop(begin + mark.size());
        fresh_ = true;
        // Behind the mark of an answer white space is left out, too.
        state_ = mark == answer ? State::after : State::reasoning;
        if (mark == answer) marks_.answer_open_ = {};
        return true;
    }
    if (after) drop(begin);
    state_ = State::answer;
    return true;
}

bool ReasoningSplitter::end_reasoning() {
    if (fresh_) held_.erase(0, std::min(held_.find_first_not_of(kBlanks), held_.size()));
    const std::string_view close = marks_.style_->close;
    const size_t at = held_.find(close);
    const size_t end = at != std::string::npos ? at : held_.size() - begun(held_, close);
    const size_t count = without_spaces_at_end(std::string_view(held_).substr(0, end)).size();
    if (count > 0) fresh_ = false;
    give(true, count);
    if (at == std::string::npos) return false;
    drop(at - count + close.size());
    state_ = State::after;
    return true;
}

bool ReasoningSplitter::read_answer() {
    const std::string_view open = marks_.style_->repeats ? marks_.style_->open : "";
    const std::string_view close = marks_.answer_open_.empty() ? marks_.answer_close_ : "";
    size_t first = std::string::npos;
    std::string_view found;
    size_t keep = 0;
    for (const std::string_view mark : {open, close}) {
        if (mark.empty()) continue;
        keep = std::max(keep, begun(held_, mark));
        const size_t at = held_.find(mark);
        if (at >= first) continue;
        first = at;
        found = mark;
    }
    give(false, found.empty() ? held_.size() - keep : first);
    if (found.empty()) return false;
    drop(found.size());
    if (found == open) {
        state_ = State::reasoning;
        fresh_ = true;
    }
    return true;
}

// An answer begins in the header that the prompt opened: "<|channel|>analysis<|message|>", with
// " to=functions.name" before or behind the channel. Later messages have "<|start|>assistant" before it.
bool ReasoningSplitter::read_header() {
    held_.erase(0, std::min(held_.find_first_not_of(kBlanks), held_.size()));
    if (marks_.style_->form == ReasoningForm::marked_messages) return read_mark();
    const size_t at = held_.find(kMessage);
    const bool header = may_become(held_, kStart) || may_become(held_, kChannel) ||
                        may_become(held_, "to=") || may_become(held_, kMessage);
    if (header && at <= kLongestHeader) {
        open_message(std::string_view(held_).substr(0, at + kMessage.size()));
        drop(at + kMessage.size());
        return true;
    }
    if (header && held_.size() <= kLongestHeader + kMessage.size()) return false;
    analysis_ = raw_ = false;
    state_ = State::message;  // a model that keeps to no format: all is its answer
    return true;
}

// Solar Open marks a message with <|think|>, <|content|> or <|tool_calls|>; later ones have the role before
// it.
bool ReasoningSplitter::read_mark() {
    constexpr std::string_view kRole = "<|begin|>assistant";
    const bool named = held_.starts_with(kRole);
    if (!named && may_become(held_, kRole)) return false;
    const std::string_view rest = std::string_view(held_).substr(named ? kRole.size() : 0);
    analysis_ = raw_ = false;
    state_ = State::message;
    for (const std::string_view mark : {"<|think|>", "<|content|>", "<|tool_calls|>"}) {
        if (!may_become(rest, mark)) continue;
        if (rest.size() < mark.size()) {
            state_ = State::header;
            return false;
        }
        analysis_ = mark == "<|think|>";
        raw_ = mark == "<|tool_calls|>";
        paragraph_ = given_[analysis_];
        const size_t before = held_.size() - rest.size();
        drop(before + (raw_ ? 0 : mark.size()));
        return true;
    }
    return true;  // a model that keeps to no format
}

void ReasoningSplitter::open_message(std::string_view header) {
    const bool to_self = has_text(header, "to=self<");
    raw_ = has_text(header, "to=") && !has_text(header, "to=assistant") && !to_self &&
           !has_text(header, "to=user<");
    analysis_ = (has_text(header, "<|channel|>analysis") || to_self) && !raw_;
    paragraph_ = given_[analysis_];
    // The header that the prompt opened is completed, so that it is told from text.
    if (raw_ && !marks_.is_harmony() && !header.starts_with(kStart)) put(false, "<|start|>assistant ");
    if (raw_) put(false, header);
    state_ = State::message;
}

bool ReasoningSplitter::read_message() {
    size_t first = std::string::npos;
    std::string_view found;
    size_t keep = 0;
    for (const std::string_view mark : kMessageEnds) {
        keep = std::max(keep, begun(held_, mark));
        const size_t at = held_.find(mark);
        if (at >= first) continue;
        first = at;
        found = mark;
    }
    give(analysis_, found.empty() ? held_.size() - keep : first);
    if (found.empty()) return false;
    if (raw_ && found != kStart) put(false, found);
    if (found != kStart) drop(found.size());
    state_ = State::header;
    return true;
}

SplitAnswer split_answer(const ReasoningMarks& marks, std::string_view scaffold, std::string_view text) {
    ReasoningSplitter splitter(marks, scaffold);
    SplitAnswer answer;
    const auto add = [&](const std::vector<AnswerPiece>& pieces) {
        for (const AnswerPiece& piece : pieces)
            (piece.reasoning ? answer.reasoning : answer.content) += piece.text;
    };
    add(splitter.push(text));
    add(splitter.finish());
    return answer;
}

}  // namespace redline
