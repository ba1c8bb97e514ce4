// The endpoints by which routers watch and ask a worker: its load, its version, and prompts as tokens.
#pragma once

#include "serve/api/openai.h"

namespace redline::serve {

void answer_get_load(Service& service, const ExchangePtr& exchange);     // /get_load
void answer_server_load(Service& service, const ExchangePtr& exchange);  // /load
void answer_version(Service& service, const ExchangePtr& exchange);      // /version
void answer_render_chat(Service& service, const ExchangePtr& exchange);  // /v1/chat/completions/render
void answer_render_completion(Service& service, const ExchangePtr& exchange);

// The answers of /get_load and /load for the models of a server.
Json load_json(std::span<const Statistics> models);
Json server_load_json(std::span<const Statistics> models);

}  // namespace redline::serve
