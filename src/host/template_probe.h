// Finds out what a chat template reads by rendering short conversations with and without it.
#pragma once

#include "text/chat/chat_template.h"

#include <string>
#include <vector>

namespace redline {

struct TemplateReads {
    std::string thinking;    // the variable that switches the reasoning; empty: none
    bool tools = false;      // functions are offered to the model
    bool developer = false;  // messages of the role "developer" are not written as those of an unknown role
    // Roles whose contents may be lists of parts, and those whose contents have to be.
    std::vector<std::string> parts;
    std::vector<std::string> parts_only;
};

// Where a template refuses the short conversations, it reads nothing that we know of, but may offer
// functions.
TemplateReads probe_template(const ChatTemplate& parsed, const Tokenizer& tokenizer, const Json& variables);

}  // namespace redline
