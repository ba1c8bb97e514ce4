// The reasoning of a model before its answer, told apart from the answer while the text comes. Families of
// models mark it differently; which marks apply is read from the chat template or the vocabulary.
#pragma once

#include "text/tokens/tokenizer.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redline {

struct ReasoningStyle;

// The marks of one family: <think>...</think>, the channels of harmony, and others.
class ReasoningMarks {
public:
    // By the marks that the source of a chat template writes, or without any by the tokens of the vocabulary.
    // Nothing: the model is not known to reason.
    static std::optional<ReasoningMarks> find(std::string_view template_source, const Tokenizer& tokenizer);
    // By the name of a family; nothing for one that is not known.
    static std::optional<ReasoningMarks> named(std::string_view name);

    std::string_view name() const;  // "think", "harmony", ...
    // The marks that are control tokens. Control tokens have no text in an answer: they have to be written
    // out (GenerateOptions::shown) for the splitter to see them.
    std::vector<Token> control_tokens(const Tokenizer& tokenizer) const;
    // The text that ends a reasoning which is cut short, to be read as scaffold: "</think>\n\n".
    std::string_view closing() const;

    // The marks around the reasoning as the model writes them; of harmony those around a message's header.
    std::string_view open() const;
    std::string_view close() const;
    bool is_harmony() const;
    // The text is messages with headers, as of harmony, which say whom they are for.
    bool by_messages() const;

    // True when a prompt that ends with this scaffold has opened the reasoning, so that the text begins in
    // it, or has closed it already.
    bool opened_by(std::string_view scaffold) const;
    bool closed_by(std::string_view scaffold) const;

private:
    friend class ReasoningSplitter;
    explicit ReasoningMarks(const ReasoningStyle* style) : style_(style) {}

    const ReasoningStyle* style_;
    // Some models that write <think> have marks around the answer, too, which are left out of it.
    std::string_view answer_open_;
    std::string_view answer_close_;
};

// The control tokens among the tokens with these texts.
std::vector<Token> control_tokens_of(const Tokenizer& tokenizer, std::span<const std::string_view> texts);

// The text at the end of a rendered prompt that the template wrote itself; empty when a message ends it.
std::string_view last_scaffold(std::span<const TextPart> prompt);

struct AnswerPiece {
    bool reasoning = false;
    std::string text;  // never empty

    bool operator==(const AnswerPiece&) const = default;
};

// Labels a stream of text, however it is cut into pieces. The marks themselves are left out, and with them
// the white space between the reasoning and its marks and before the answer. Text that may still become a
// mark is held back. A harmony message to a function stays in the answer with its header, for
// parse_tool_calls().
class ReasoningSplitter {
public:
    // `scaffold`: the end of the prompt, see last_scaffold().
    ReasoningSplitter(const ReasoningMarks& marks, std::string_view scaffold);

    std::vector<AnswerPiece> push(std::string_view text);
    // The rest, at the end of the generation.
    std::vector<AnswerPiece> finish();
    // Where the text is, as far as it is known.
    enum class Place : uint8_t {
        between,    // between messages (harmony), or before the first text
        mark,       // in text that may become a mark, or in a message's header
        reasoning,  // in the reasoning
        after,      // in white space behind the reasoning
        answer,
    };
    Place place() const;
    bool reasoning() const { return place() == Place::reasoning; }

private:
    enum class State : uint8_t {
        start,      // white space so far; reasoning may begin
        reasoning,  // until the closing mark
        after,      // white space before the answer
        answer,
        header,   // harmony: between messages and up to <|message|>
        message,  // harmony: up to a mark that ends it
    };

    bool step();
    bool begin_answer();
    bool end_reasoning();
    bool read_answer();
    bool read_header();
    bool read_mark();
    bool read_message();
    void open_message(std::string_view header);
    void put(bool reasoning, std::string_view text);
    // Moves the first `count` bytes of held_ to the pieces.
    void give(bool reasoning, size_t count);
    void drop(size_t count) { held_.erase(0, count); }

    ReasoningMarks marks_;
    State state_ = State::start;
    std::string held_;
    std::vector<AnswerPiece> pieces_;
    bool fresh_ = true;       // nothing of this reasoning is given yet
    bool analysis_ = false;   // harmony: the message is reasoning
    bool raw_ = false;        // harmony: the message is for a function
    bool paragraph_ = false;  // harmony: a line end goes before the text of this message
    bool given_[2] = {};      // whether there was an answer, a reasoning
};

struct SplitAnswer {
    std::string content;
    std::string reasoning;
};
// A whole text, split as by the splitter.
SplitAnswer split_answer(const ReasoningMarks& marks, std::string_view scaffold, std::string_view text);

}  // namespace redline
