// OpenAI's API: chat completions, completions, models. Also llama-server's and vLLM's additions to it.
#pragma once

#include "serve/api/answer_run.h"

namespace redline::serve {

using ExchangePtr = std::shared_ptr<Exchange>;

void answer_chat(Service& service, const ExchangePtr& exchange);        // /v1/chat/completions
void answer_completion(Service& service, const ExchangePtr& exchange);  // /v1/completions
void answer_models(Service& service, const ExchangePtr& exchange);  // /v1/models, also for Anthropic's client
void answer_model(Service& service, const ExchangePtr& exchange);   // /v1/models/{id}
void refuse_embeddings(Service& service, const ExchangePtr& exchange);  // /v1/embeddings, /embedding

// The chat that a request of this API asks for, to be answered or only to be written.
Result<ChatCall> read_chat_call(const Json& body, const Service& service);
// The prompts of a completion: texts or tokens.
Result<std::vector<std::vector<Token>>> read_prompts(const Json& body, const Service& service);
// The model in lists of models.
Json model_entry(const Service& service);
// The list of logprobs.content.
Json chat_logprobs(const Tokenizer& tokenizer, std::span<const TokenLogprobs> all);
std::string_view finish_reason(const Choice& answer);

// Answers with JSON.
void reply_json(const ExchangePtr& exchange, const Json& value, int status = 200);
void reply_error(const ExchangePtr& exchange, Family family, const Error& problem);
// "data: JSON" and an empty line, with an "event:" line before it where that has a name.
std::string sse(const Json& value, std::string_view event = {});
// The head of a stream of such events, and the comment that keeps it alive.
HttpReply sse_head();
inline constexpr const char* kSsePing = ":\n\n";

}  // namespace redline::serve
