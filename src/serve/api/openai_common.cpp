#include "serve/api/openai.h"

#include "gguf/facts.h"
#include "text/tokens/unicode.h"

namespace redline::serve {

void reply_json(const ExchangePtr& exchange, const Json& value, int status) {
    exchange->reply({.status = status, .body = json_text(value)});
}

void reply_error(const ExchangePtr& exchange, Family family, const Error& problem) {
    exchange->reply(problem_reply(family, {.message = problem.message}));
}

std::string sse(const Json& value, std::string_view event) {
    const std::string data = json_text(value);
    return event.empty() ? fmt::format("data: {}\n\n", data)
                         : fmt::format("event: {}\ndata: {}\n\n", event, data);
}

HttpReply sse_head() {
    return {.type = "text/event-stream",
            .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}}};
}

std::string_view finish_reason(const Choice& answer) {
    // Agents go by it: where there are calls it says so, also of an answer that was cut behind them.
    if (!answer.calls.empty()) return "tool_calls";
    return is_cut(answer.end) ? "length" : "stop";
}

static Json one_logprob(const Tokenizer& tokenizer, const TokenLogprobs::One& one) {
    const std::string piece = tokenizer.piece(one.token, true);
    return {{"token", to_valid_utf8(piece)},
            {"bytes", std::vector<uint8_t>(piece.begin(), piece.end())},
            {"logprob", one.logprob}};
}

Json chat_logprobs(const Tokenizer& tokenizer, std::span<const TokenLogprobs> all) {
    Json out = Json::array();
    for (const TokenLogprobs& each : all) {
        Json token = one_logprob(tokenizer, each.chosen);
        token["top_logprobs"] = Json::array();
        for (const TokenLogprobs::One& one : each.top)
            token["top_logprobs"].push_back(one_logprob(tokenizer, one));
        out.push_back(std::move(token));
    }
    return out;
}

Json model_entry(const Service& service) {
    const ServedModel& served = service.served;
    const Config& config = served.model->config();
    // The members of OpenAI's list, llama-server's beside them, and those that Anthropic's client wants.
    return {{"id", served.name},
            {"object", "model"},
            {"type", "model"},
            {"display_name", served.name},
            {"created", served.created},
            {"created_at", rfc3339(served.created)},
            {"owned_by", "redline"},
            {"max_model_len", served.context},
            {"meta",
             {{"n_ctx", served.context},
              {"n_ctx_train", config.train_context},
              {"n_params", parameter_count(served.model->gguf())},
              {"n_embd", config.dim},
              {"n_vocab", config.vocab},
              {"size", served.model->gguf().file_bytes()}}}};
}

void answer_models(Service& service, const ExchangePtr& exchange) {
    const std::string& name = service.served.name;
    reply_json(exchange, {{"object", "list"},
                          {"data", Json::array({model_entry(service)})},
                          {"has_more", false},
                          {"first_id", name},
                          {"last_id", name}});
}

void answer_model(Service& service, const ExchangePtr& exchange) {
    constexpr std::string_view kBefore = "/models/";
    const std::string& path = exchange->request().path;
    const std::string id = path.substr(path.find(kBefore) + kBefore.size());
    if (id == service.served.name) return reply_json(exchange, model_entry(service));
    exchange->reply(problem_reply(
        Family::openai,
        {.status = 404,
         .message = fmt::format("there is no model \"{}\"; this server has \"{}\"", id, service.served.name),
         .param = "model"}));
}

void refuse_embeddings(Service&, const ExchangePtr& exchange) {
    exchange->reply(problem_reply(
        Family::openai, {.status = 501, .message = "embeddings are not computed by this server yet"}));
}

}  // namespace redline::serve
