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

// The model in Ollama's lists of models.
Json ollama_entry(Service& service);
// With a tag, as Ollama's names have one.
std::string ollama_name(const std::string& name);
// The abilities of the model: "completion", "tools", ...
Json ollama_capabilities(Service& service);

}  // namespace redline::serve
