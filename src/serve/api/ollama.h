// Ollama's API, below /api.
#pragma once

#include "serve/api/openai.h"

namespace redline::serve {

void answer_ollama_chat(Service& service, const ExchangePtr& exchange);
void answer_ollama_generate(Service& service, const ExchangePtr& exchange);
void answer_ollama_tags(Service& service, const ExchangePtr& exchange);
void answer_ollama_running(Service& service, const ExchangePtr& exchange);  // /api/ps
void answer_ollama_show(Service& service, const ExchangePtr& exchange);
void answer_ollama_version(Service& service, const ExchangePtr& exchange);
void refuse_ollama(Service& service, const ExchangePtr& exchange);  // what changes models, and embeddings

// The version of Ollama whose API this is: the first with log probabilities. Clients read it from
// /api/version, and refuse servers that are too old for them (VS Code: before 0.6.4).
inline constexpr const char* kOllamaVersion = "0.12.11";

// True where /api/chat or /api/generate has nothing to answer: it asks to load the model, or to unload it.
Result<bool> is_load_request(std::string_view path, const Json& body);
// The answer to that; `reason` is "load" or "unload".
void reply_load(const ExchangePtr& exchange, const std::string& model, std::string_view reason);

// Seconds that stand for forever where a time has to be told.
inline constexpr int64_t kCentury = int64_t(100) * 365 * 86400;

// The model in Ollama's lists of models.
Json ollama_entry(Service& service);
// With a tag, as Ollama's names have one.
std::string ollama_name(const std::string& name);
// The abilities of the model: "completion", "tools", ...
Json ollama_capabilities(Service& service);

}  // namespace redline::serve
