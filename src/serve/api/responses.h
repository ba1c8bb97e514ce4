// OpenAI's responses API, without memory: each request has the whole conversation.
#pragma once

#include "serve/api/openai.h"

namespace redline::serve {

void answer_responses(Service& service, const ExchangePtr& exchange);        // /v1/responses
void answer_response_tokens(Service& service, const ExchangePtr& exchange);  // /v1/responses/input_tokens

Result<ChatCall> read_response_call(const Json& body, const Service& service);

}  // namespace redline::serve
