#include "serve/api/routes.h"

#include "serve/api/anthropic.h"
#include "serve/api/native.h"
#include "serve/api/ollama.h"
#include "serve/api/page.h"
#include "serve/api/responses.h"
#include "serve/api/worker.h"

namespace redline::serve {

namespace {

constexpr ApiEndpoint kEndpoints[] = {
    {"GET", "/", answer_page, Family::openai, true, true},
    {"GET", "/page.js", answer_page, Family::openai, true, true},
    {"GET", "/page.css", answer_page, Family::openai, true, true},
    {"GET", "/openapi.json", answer_openapi, Family::openai, true, true},
    {"GET", "/health", answer_health, Family::openai, true, true},
    {"GET", "/v1/health", answer_health, Family::openai, true, true},
    {"GET", "/ping", answer_health, Family::openai, true, true},
    {"POST", "/ping", answer_health, Family::openai, true, true},
    {"GET", "/version", answer_version},
    {"GET", "/load", answer_server_load},
    {"GET", "/get_load", answer_get_load},
    {"GET", "/v1/models", answer_models},
    {"GET", "/models", answer_models},
    {"GET", "/v1/models/*", answer_model},
    {"POST", "/models/load", answer_model_load},
    {"POST", "/models/unload", refuse_model_unload},
    {"POST", "/v1/chat/completions", answer_chat},
    {"POST", "/chat/completions", answer_chat},
    {"POST", "/v1/chat/completions/render", answer_render_chat},
    {"POST", "/v1/completions", answer_completion},
    {"POST", "/v1/completions/render", answer_render_completion},
    {"POST", "/v1/embeddings", refuse_embeddings},
    {"POST", "/embeddings", refuse_embeddings},
    {"POST", "/embedding", refuse_embeddings},
    {"POST", "/v1/responses", answer_responses},
    {"POST", "/v1/responses/input_tokens", answer_response_tokens},
    {"POST", "/v1/messages", answer_messages, Family::anthropic},
    {"POST", "/v1/messages/count_tokens", answer_count_tokens, Family::anthropic},
    {"POST", "/completion", answer_native_completion},
    {"POST", "/completions", answer_native_completion},
    {"POST", "/infill", answer_infill},
    {"POST", "/tokenize", answer_tokenize},
    {"POST", "/detokenize", answer_detokenize},
    {"POST", "/apply-template", answer_template},
    {"GET", "/props", answer_props},
    {"GET", "/slots", answer_slots},
    {"GET", "/metrics", answer_metrics},
    {"POST", "/api/chat", answer_ollama_chat, Family::ollama},
    {"POST", "/api/generate", answer_ollama_generate, Family::ollama},
    {"GET", "/api/tags", answer_ollama_tags, Family::ollama},
    {"GET", "/api/ps", answer_ollama_running, Family::ollama},
    {"POST", "/api/show", answer_ollama_show, Family::ollama},
    {"GET", "/api/version", answer_ollama_version, Family::ollama},
    {"POST", "/api/embed", refuse_ollama, Family::ollama},
    {"POST", "/api/embeddings", refuse_ollama, Family::ollama},
    {"POST", "/api/pull", refuse_ollama, Family::ollama},
    {"POST", "/api/push", refuse_ollama, Family::ollama},
    {"POST", "/api/create", refuse_ollama, Family::ollama},
    {"POST", "/api/copy", refuse_ollama, Family::ollama},
    {"DELETE", "/api/delete", refuse_ollama, Family::ollama},
};

}  // namespace

std::span<const ApiEndpoint> api_endpoints() {
    return kEndpoints;
}

std::vector<Route> api_routes(Service& service) {
    std::vector<Route> routes;
    for (const ApiEndpoint& row : kEndpoints) {
        // While the server ends, what is new is refused; answers under way go on.
        const bool generates = std::string_view(row.method) == "POST";
        routes.push_back({row.method, row.path, row.family,
                          [&service, row, generates](const ExchangePtr& exchange) {
                              if (generates && service.draining)
                                  return exchange->reply(problem_reply(
                                      row.family, {.status = 503,
                                                   .message = "the server ends, and takes no new requests"}));
                              row.answer(service, exchange);
                          },
                          row.at_once, row.open});
    }
    return routes;
}

}  // namespace redline::serve
