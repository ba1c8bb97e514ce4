// A conversation with a model: the turns so far, as text, and a session that keeps what of them is already
// read.
#pragma once

#include "cli/chat_writer.h"
#include "cli/options/sampling_options.h"
#include "run/generate.h"

namespace redline::cli {

// When a turn does not fit into the context any more: forget the oldest turns, or refuse it.
enum class ContextPolicy : uint8_t { drop, stop };

struct ConversationOptions {
    SamplingOptions sampling;
    GenerateOptions generate;
    ContextPolicy policy = ContextPolicy::drop;
};

struct Turn {
    PromptResult prompt;
    Generation generation;
    uint64_t dropped = 0;  // turns forgotten to make room
};

class Conversation {
public:
    Conversation(Session session, ChatWriter writer, ConversationOptions options)
        : session_(std::move(session)), writer_(std::move(writer)), options_(std::move(options)) {}

    // Adds a user's turn and the model's answer to it. After an error, or when it is cancelled before the
    // first word, the conversation is as it was. The cache is only read on from where the tokens differ from
    // what it holds.
    Result<Turn> ask(const std::string& text, const TextSink& sink, const std::atomic<bool>* cancel);
    // Another answer in place of the last one, with another seed.
    Result<Turn> again(const TextSink& sink, const std::atomic<bool>* cancel);
    void clear() { turns_.clear(); }
    void set_system(std::string text) { system_ = std::move(text); }

    const Session& session() const { return session_; }
    size_t turns() const { return turns_.size(); }

private:
    struct Exchange {
        std::string question;
        std::string answer;
    };

    // turns_ and the header of the next answer; the last answer is left out.
    Result<std::vector<Token>> encode();
    Result<std::vector<Token>> make_room(uint64_t& dropped);
    Result<Turn> answer(const TextSink& sink, const std::atomic<bool>* cancel);

    Session session_;
    ChatWriter writer_;
    ConversationOptions options_;
    std::string system_;
    std::vector<Exchange> turns_;
    uint32_t answers_ = 0;  // given so far: each has its own seed
};

}  // namespace redline::cli
