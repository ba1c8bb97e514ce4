// Values that a user may change between two answers, by the names of their options.
#pragma once

#include "cli/conversation.h"

namespace redline::cli {

std::vector<std::pair<std::string, std::string>> list_settings(const ConversationOptions& options);
// "top_k" and "--top-k" are "top-k". An error, which names what is known or what the value may be, changes
// nothing.
Status change_setting(ConversationOptions& options, const std::string& name, const std::string& value);

}  // namespace redline::cli
