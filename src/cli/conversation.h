// A conversation with a model: its messages, and a session that keeps what of them is already read.
#pragma once

#include "cli/conversation_file.h"
#include "cli/options/chat_options.h"
#include "cli/options/sampling_options.h"
#include "engine/generate.h"

namespace redline::cli {

// When a turn does not fit into the context any more: the model reads the latest turns only, or the turn is
// refused. The conversation keeps all of them in either case.
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
    uint64_t unread = 0;         // messages that the model does not read any more, to make room
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
// model's choice of tokens often differs from the tokenizer's for the same text.
std::vector<Token> keep_read(std::span<const Token> read, std::vector<Token> wanted,
                             const Tokenizer& tokenizer);

class Conversation {
public:
    Conversation(Session session, ChatWriter writer, ConversationOptions options)
        : session_(std::move(session)), writer_(std::move(writer)), options_(std::move(options)) {}

    // Adds a user's message and the model's answer to it, in place of the turn `instead_of` and all after it
    // where one is named. After an error, or when it is cancelled before the first word, the conversation is
    // as it was. The cache is only read on from where the tokens differ from what it holds.
    Result<Turn> ask(const std::string& text, const Listener& listener,
                     std::optional<size_t> instead_of = {});
    // Another answer in place of the last one, with another seed.
    Result<Turn> again(const Listener& listener);
    // More of the last answer, from where it ended.
    Result<Turn> go_on(const Listener& listener);

    // Users' messages, the oldest first, whether the model still reads them or not.
    size_t turns() const;
    const std::string& question(size_t turn) const;
    // Forgets this turn and all after it; a system text stays.
    void cut(size_t turn);
    // An empty one takes it away.
    void set_system(const std::string& text);
    std::string system() const;
    const std::vector<ChatMessage>& messages() const { return messages_; }
    // The oldest messages, behind the system text, that the model does not read since the context was full.
    size_t unread() const { return unread_; }
    // Grows with every change of what text() gives.
    uint64_t changes() const { return changes_; }
    // A message that is typed and has no answer yet, for who takes the conversation up.
    void set_draft(const std::string& text);
    const std::string& draft() const { return draft_; }

    ConversationOptions& options() { return options_; }
    const ConversationOptions& options() const { return options_; }
    ChatWriter& writer() { return writer_; }
    const Session& session() const { return *session_; }
    // Tokens of the conversation as the model would read it now.
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

    // These messages without so many of the oldest behind the system text, as the model reads them, and the
    // header that makes it answer.
    Result<WrittenChat> write(std::span<const ChatMessage> messages, size_t unread);
    // The same, and the tokens of an answer that is begun. Leaves out more of the oldest turns where they
    // leave no room.
    Result<WrittenChat> make_room(std::span<const ChatMessage> messages, std::span<const Token> begun,
                                  size_t& unread);
    Error too_long(const ChatMessage& message, uint64_t tokens) const;
    GenerateOptions generate_options() const;
    void drop_cut_character(const GenerateOptions& options);
    Result<Turn> answer(Messages messages, const Listener& listener, std::span<const Token> begun = {});
    size_t place_of(size_t turn) const;

    std::optional<Session> session_;
    ChatWriter writer_;
    ConversationOptions options_;
    Messages messages_;
    size_t unread_ = 0;
    std::string draft_;
    uint64_t changes_ = 0;
    std::vector<Token> last_answer_;  // as it was generated; empty where only its text is known
    uint32_t answers_ = 0;            // given so far: each has another seed
};

}  // namespace redline::cli
