#include "text/chat/reasoning.h"

#include <algorithm>
#include <array>
#include <utility>

namespace redline {

struct ReasoningStyle {
    std::string_view name;
    std::string_view open;
    std::string_view close;
    std::string_view closing;                // the close mark with what the model writes behind it
    std::array<std::string_view, 5> tokens;  // the parts of the marks that are tokens
    bool repeats = false;                    // the answer may be interrupted by reasoning
    bool by_vocabulary = true;               // the first two tokens tell the family; else the template has to
};

namespace {

constexpr std::string_view kHarmony = "harmony", kMuse = "muse", kSolar = "solar";
constexpr std::string_view kChannel = "<|channel|>";
constexpr std::string_view kMessage = "<|message|>";
constexpr std::string_view kStart = "<|start|>";
constexpr std::string_view kBlanks = " \t\r\n";
constexpr size_t kLongestHeader = 256;  // bytes; longer is no header

constexpr ReasoningStyle kReasoningStyles[] = {
    // gpt-oss. A message's channel says what it is: analysis, commentary or final.
    {.name = kHarmony,
     .open = kChannel,
     .close = kMessage,
     .closing = "<|end|><|start|>assistant<|channel|>final<|message|>",
     .tokens = {kChannel, kMessage, kStart, "<|end|>", "<|constrain|>"},
     .repeats = true},
    // Muse-Glimmer. A message's header says whom it is for: the model itself, the user or a function.
    {.name = kMuse,
     .open = "to=self<|message|>",
     .close = "<|eom|>",
     .closing = "<|eom|><|start|>assistant to=user<|message|>",
     .tokens = {kMessage, kStart, "<|eom|>", "<|eot|>"},
     .repeats = true,
     .by_vocabulary = false},
    // Solar Open. A mark says what a message is: reasoning, the answer or calls.
    {.name = kSolar,
     .open = "<|begin|>assistant<|think|>",
     .close = "<|end|>",
     .closing = "<|end|><|begin|>assistant<|content|>",
     .tokens = {"<|think|>", "<|content|>", "<|begin|>", "<|end|>"},
     .repeats = true,
     .by_vocabulary = false},
    {.name = "gemma4",
     .open = "<|channel>thought",
     .close = "<channel|>",
     .closing = "<channel|>",
     .tokens = {"<|channel>", "<channel|>"},
     .repeats = true},
    // Qwen3, QwQ, DeepSeek-R1 and its distillates, GLM-4.5, MiniMax-M2, Kimi-K2, SmolLM3, Granite 3.3, ...
    {.name = "think",
     .open = "<think>",
     .close = "</think>",
     .closing = "\n</think>\n\n",
     .tokens = {"<think>", "</think>"}},
    // Magistral, Ministral 3 Reasoning.
    {.name = "mistral",
     .open = "[THINK]",
     .close = "[/THINK]",
     .closing = "[/THINK]",
     .tokens = {"[THINK]", "[/THINK]"}},
    {.name = "seed",
     .open = "<seed:think>",
     .close = "</seed:think>",
     .closing = "</seed:think>",
     .tokens = {"<seed:think>", "</seed:think>"}},
    {.name = "command",
     .open = "<|START_THINKING|>",
     .close = "<|END_THINKING|>",
     .closing = "<|END_THINKING|><|START_RESPONSE|>",
     .tokens = {"<|START_THINKING|>", "<|END_THINKING|>"}},
    {.name = "apertus",
     .open = "<|inner_prefix|>",
     .close = "<|inner_suffix|>",
     .closing = "<|inner_suffix|>",
     .tokens = {"<|inner_prefix|>", "<|inner_suffix|>"}},
    {.name = "thinking",
     .open = "<thinking>",
     .close = "</thinking>",
     .closing = "\n</thinking>\n\n",
     .tokens = {},
     .by_vocabulary = false},
    // EXAONE Deep.
    {.name = "thought",
     .open = "<thought>",
     .close = "</thought>",
     .closing = "\n</thought>\n\n",
     .tokens = {},
     .by_vocabulary = false},
    // Granite 3.2.
    {.name = "granite",
     .open = "Here is my thought process:",
     .close = "Here is my response:",
     .closing = "\n\nHere is my response:\n\n",
     .tokens = {},
     .by_vocabulary = false},
    {.name = "apriel",
     .open = "Here are my reasoning steps:",
     .close = "[BEGIN FINAL RESPONSE]",
     .closing = "\n[BEGIN FINAL RESPONSE]\n",
     .tokens = {},
     .by_vocabulary = false},
};

// Of Granite 3.3 and ERNIE, of Hunyuan, of Apriel.
constexpr std::pair<std::string_view, std::string_view> kAnswerMarks[] = {
    {"<response>", "</response>"}, {"<answer>", "</answer>"}, {"", "[END FINAL RESPONSE]"}};

constexpr std::string_view kMessageEnds[] = {"<|end|>", "<|call|>",  "<|return|>", "<|eom|>",
                                             "<|eot|>", "<|calls|>", kStart};

bool has_text(std::string_view text, std::string_view part) {
    return text.find(part) != text.npos;
}

// How much of the end of `text` is the beginning of `mark`, but not all of it.
size_t begun(std::string_view text, std::string_view mark) {
    size_t length = std::min(text.size(), mark.empty() ? 0 : mark.size() - 1);
    while (length > 0 && !text.ends_with(mark.substr(0, length))) --length;
    return length;
}

// Whether `text` is the beginning of `mark`, or all of it and more.
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
    for (const ReasoningStyle& style : kReasoningStyles) {
        if (!has_text(template_source, style.close) || !has_text(template_source, style.open)) {
            // Templates leave the reasoning of earlier turns out by the closing mark alone.
            if (style.name != "think" || !has_text(template_source, style.close)) continue;
        }
        ReasoningMarks marks(&style);
        for (const auto& [open, close] : kAnswerMarks) {
            if (!has_text(template_source, close)) continue;
            marks.answer_open_ = open;
            marks.answer_close_ = close;
            break;
        }
        return marks;
    }
    for (const ReasoningStyle& style : kReasoningStyles)
        if (style.by_vocabulary && is_token(style.tokens[0]) && is_token(style.tokens[1]))
            return ReasoningMarks(&style);
    return {};
}

std::optional<ReasoningMarks> ReasoningMarks::named(std::string_view name) {
    for (const ReasoningStyle& style : kReasoningStyles)
        if (style.name == name) return ReasoningMarks(&style);
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
    return style_->name == kHarmony;
}

bool ReasoningMarks::by_messages() const {
    return is_harmony() || style_->name == kMuse || style_->name == kSolar;
}

bool ReasoningMarks::opened_by(std::string_view scaffold) const {
    const std::string_view end = without_spaces_at_end(scaffold);
    if (is_harmony()) return end.ends_with("<|channel|>analysis<|message|>");
    return end.ends_with(style_->open);
}

bool ReasoningMarks::closed_by(std::string_view scaffold) const {
    const std::string_view end = without_spaces_at_end(scaffold);
    if (is_harmony()) return end.ends_with("<|channel|>final<|message|>");
    if (by_messages()) return end.ends_with("to=user<|message|>") || end.ends_with("<|content|>");
    return end.ends_with(style_->close);
}

ReasoningSplitter::ReasoningSplitter(const ReasoningMarks& marks, std::string_view scaffold) : marks_(marks) {
    if (marks.opened_by(scaffold)) state_ = State::reasoning;
    if (!marks.by_messages()) return;
    analysis_ = marks.opened_by(scaffold);
    const bool begun =
        marks.name() == kSolar ? analysis_ || marks.closed_by(scaffold) : scaffold.ends_with(kMessage);
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

// True: what is held may go on being read.
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
    if (marks_.name() == kSolar) return read_mark();
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

// Of Solar Open: <|think|>, <|content|> or <|tool_calls|>; later messages have the role before it.
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
