// Anthropic's messages API.
#pragma once

#include "serve/api/openai.h"

namespace redline::serve {

void answer_messages(Service& service, const ExchangePtr& exchange);      // /v1/messages
void answer_count_tokens(Service& service, const ExchangePtr& exchange);  // /v1/messages/count_tokens

// The chat that a request of this API asks for.
Result<ChatCall> read_anthropic(const Json& body, const Service& service);

}  // namespace redline::serve
