// Reads conversations and functions in the form of OpenAI's API.
#pragma once

#include "base/result.h"
#include "host/notes.h"
#include "json/json.h"

namespace redline {

struct ChatRequest {
    Json messages = Json::array();  // contents are texts, lists of parts of text, or null
    Json tools;                     // null: none
};

// A list of messages, or an object that holds "messages" and perhaps "tools". `name` is for errors, which say
// which message is wrong, and how.
Result<ChatRequest> read_messages(std::string_view text, const std::string& name,
                                  Notes& notes = silent_notes());
// The same of a value that is parsed already, and may have further members, which are for the caller.
// `answered`: the last message has to be one that is answered; without it the assistant's may be continued.
Result<ChatRequest> read_chat_request(const Json& conversation, const std::string& name,
                                      bool answered = true);
// A list of functions, each alone or in {"type": "function", "function": ...}.
Result<Json> read_tools(std::string_view text, const std::string& name);
Result<Json> read_functions(const Json& tools, const std::string& name);

}  // namespace redline
