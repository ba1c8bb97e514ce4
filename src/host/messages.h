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
// A list of functions, each alone or in {"type": "function", "function": ...}.
Result<Json> read_tools(std::string_view text, const std::string& name);

}  // namespace redline
