// A conversation as text: JSON to go on with, and what a person or another program reads.
#pragma once

#include "text/chat/chat_format.h"

#include <nlohmann/json_fwd.hpp>

#include <span>

namespace redline::cli {

struct ChatMessage {
    Role role = Role::user;
    std::string content;
    std::string reasoning;  // of an assistant, before its answer
};

// A message as chat templates and OpenAI's clients have it; reasoning is their "reasoning_content".
nlohmann::ordered_json messages_json(std::span<const ChatMessage> messages);

struct SavedConversation {
    std::vector<ChatMessage> messages;
    std::vector<Token> last_answer;
    uint32_t answers = 0;
    uint32_t seed = 0;
    uint32_t unread = 0;  // messages behind the system text that the model no longer reads
    std::string draft;    // a message that was typed and has no answer
    std::string model;    // for people: its name and file; empty: not known
};

// Why a file does not serve as a session of a model with this fingerprint: what it is instead, or the model
// that it was saved with. Empty: neither is the reason.
std::string explain_unfit(const std::string& path, uint64_t fingerprint);

std::string to_json_text(const SavedConversation& conversation);
// `path` is for errors: the text may come from anywhere.
Result<SavedConversation> read_conversation(const std::string& text, const std::string& path);

// By the ending of the file's name: .md, or .json in the form that OpenAI's clients use. Any other is an
// error.
Result<std::string> export_text(const std::vector<ChatMessage>& messages, const std::string& path);

}  // namespace redline::cli
