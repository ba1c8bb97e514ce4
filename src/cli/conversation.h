// A conversation with a model: its messages, and a session that keeps what of them is already read.
#pragma once

#include "cli/chat_writer.h"
#include "cli/conversation_file.h"
#include "cli/options/sampling_options.h"
#include "run/generate.h"

namespace redline::cli {

// When a turn does not fit into the context any more: forget the oldest turns, or refuse it.
enum class ContextPolicy : uint8_t { drop, stop };

struct ConversationOptions {
    SamplingOptions sampling;
    GenerateOptions generate;
    ContextPolicy policy = ContextPolicy::drop;
    ReasoningOptions reasoning;
};

struct Turn {
    PromptResult prompt;
    Generation generation;
    uint64_t dropped = 0;        // messages forgotten to make room
    bool reasoning_cut = false;  // at its budget
};

// Who waits for an answer.
struct Listener {
    TextSink text;
    TextSink reasoning;  // what the model thinks before
    Progress progress;   // tokens of the prompt
    const std::atomic<bool>* cancel = nullptr;
};

// Where tokens of plain text that are already read spell the same text as those that are wanted, they stay: a
// model's own choice of tokens is often not the one that the tokenizer makes of the same text.
std::vector<Token> keep_read(std::span<const Token> read, std::vector<Token> wanted,
                             const Tokenizer& tokenizer);

class Conversation {
public:
    Conversation(Session session, ChatWriter writer, ConversationOptions options)
        : session_(std::move(session)), writer_(std::move(writer)), options_(std::move(options)) {}

    // Adds a user's message and the model's answer to it. After an error, or when it is cancelled before the
    // first word, the conversation is as it was. The cache is only read on from where the tokens differ from
    // what it holds.
    Result<Turn> ask(const std::string& text, const Listener& listener);
    // Another answer in place of the last one, with another seed.
    Result<Turn> again(const Listener& listener);
    // More of the last answer, from where it ended.
    Result<Turn> go_on(const Listener& listener);

    // Users' messages, the oldest first.
    size_t turns() const;
    const std::string& question(size_t turn) const;
    // Forgets this turn and all after it; a system text stays.
    void cut(size_t turn);
    // An empty one takes it away.
    void set_system(const std::string& text);
    const std::vector<ChatMessage>& messages() const { return messages_; }

    ConversationOptions& options() { return options_; }
    ChatWriter& writer() { return writer_; }
    const Session& session() const { return *session_; }
    // Tokens that the conversation has as it stands.
    Result<uint64_t> count_tokens();

    // The messages, and what of them is read, in one file; see Session. A file that does not fit leaves the
    // conversation as it is.
    Status save(const std::string& path, const Progress& progress, const std::atomic<bool>* cancel) const;
    Status load(const std::string& path, const Progress& progress, const std::atomic<bool>* cancel);
    // The messages alone, as text; what of them is read stays as it is. `path` is for errors.
    std::string text() const;
    Status take_text(const std::string& text, const std::string& path);

    // Gives the session up, so that another model has room; nothing but reopen() may follow.
    void close() { session_.reset(); }
    void reopen(Session session, ChatWriter writer);

private:
    using Messages = std::vector<ChatMessage>;

    // The messages, and the header that makes the model answer.
    Result<WrittenChat> write(std::span<const ChatMessage> messages);
    // The same, and the tokens of an answer that is begun. Forgets the oldest turns of `messages` where they
    // leave no room.
    Result<WrittenChat> make_room(Messages& messages, std::span<const Token> begun, uint64_t& dropped);
    GenerateOptions generate_options() const;
    void drop_cut_character(const GenerateOptions& options);
    Result<Turn> answer(Messages messages, const Listener& listener, std::span<const Token> begun = {});
    size_t place_of(size_t turn) const;

    std::optional<Session> session_;
    ChatWriter writer_;
    ConversationOptions options_;
    Messages messages_;
    std::vector<Token> last_answer_;  // as it was generated
    uint32_t answers_ = 0;            // given so far: each has its own seed
};

}  // namespace redline::cli
