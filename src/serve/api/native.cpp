// Tokens, templates, and the state of the server.
#include "serve/api/native.h"

#include "text/tokens/unicode.h"

namespace redline::serve {

// The tokens of a text, or of a conversation as the template writes it.
static Result<std::vector<Token>> tokens_of(Service& service, const Json& body) {
    const Fields fields(body);
    const bool special = RL_TRY(fields.flag("parse_special", true));
    if (fields.has("messages")) {
        ChatCall call = RL_TRY(read_chat_call(body, service));
        return RL_TRY(prepare_chat(service, call)).tokens;
    }
    const bool vllm = fields.has("prompt");
    const bool add = RL_TRY(fields.flag(vllm ? "add_special_tokens" : "add_special", vllm));
    return service.tokenizer().encode(RL_TRY(fields.text(vllm ? "prompt" : "content")),
                                      {.add_special = add, .parse_special = special});
}

void answer_tokenize(Service& service, const ExchangePtr& exchange) {
    const auto begin = [&]() -> Status {
        const Json body = RL_TRY(parse_body(exchange->request().body));
        const Fields fields(body);
        const std::vector<Token> tokens = RL_TRY(tokens_of(service, body));
        Json out = Json::object();
        if (fields.has("prompt") || fields.has("messages"))
            out = {{"count", tokens.size()}, {"max_model_len", service.served.context}};
        if (RL_TRY(fields.flag("return_token_strs", false))) {
            out["token_strs"] = Json::array();
            for (const Token token : tokens)
                out["token_strs"].push_back(to_valid_utf8(service.tokenizer().piece(token, true)));
        }
        if (!RL_TRY(fields.flag("with_pieces", false))) {
            out["tokens"] = tokens;
        } else {
            out["tokens"] = Json::array();
            for (const Token token : tokens) {
                const std::string piece = service.tokenizer().piece(token, true);
                const Json text = is_valid_utf8(piece)
                                      ? Json(piece)
                                      : Json(std::vector<uint8_t>(piece.begin(), piece.end()));
                out["tokens"].push_back({{"id", token}, {"piece", text}});
            }
        }
        reply_json(exchange, out);
        return {};
    };
    if (const Status done = begin(); !done) reply_error(exchange, Family::openai, done.error());
}

void answer_detokenize(Service& service, const ExchangePtr& exchange) {
    const auto begin = [&]() -> Status {
        const Json body = RL_TRY(parse_body(exchange->request().body));
        const std::vector<Token> tokens = RL_TRY(Fields(body).tokens("tokens", service.tokenizer().size()));
        const std::string text = to_valid_utf8(service.tokenizer().decode(tokens, true));
        // llama-server's name, and vLLM's.
        reply_json(exchange, {{"content", text}, {"prompt", text}});
        return {};
    };
    if (const Status done = begin(); !done) reply_error(exchange, Family::openai, done.error());
}

void answer_template(Service& service, const ExchangePtr& exchange) {
    const auto begin = [&]() -> Status {
        const Json body = RL_TRY(parse_body(exchange->request().body));
        ChatCall call = RL_TRY(read_chat_call(body, service));
        std::string text;
        for (const TextPart& part : RL_TRY(prepare_chat(service, call)).parts) text += part.text;
        reply_json(exchange, {{"prompt", text}});
        return {};
    };
    if (const Status done = begin(); !done) reply_error(exchange, Family::openai, done.error());
}

void answer_health(Service& service, const ExchangePtr& exchange) {
    const Health health = service.draining ? Health::draining : service.answers.health();
    if (health == Health::serving) return reply_json(exchange, {{"status", "ok"}});
    const char* const why = health == Health::draining ? "the server ends, and takes no new requests"
                            : health == Health::device_lost
                                ? "the device was lost, and is being opened again"
                                : "the device was lost, and cannot be opened again";
    exchange->reply(problem_reply(Family::openai, {.status = 503, .message = why}));
}

static std::string_view health_name(Health health) {
    switch (health) {
        case Health::serving:
            return "serving";
        case Health::draining:
            return "draining";
        case Health::device_lost:
            return "device lost";
        case Health::stopped:
            break;
    }
    return "stopped";
}

void answer_props(Service& service, const ExchangePtr& exchange) {
    const ServedModel& served = service.served;
    const Tokenizer& tokenizer = service.tokenizer();
    Json params = {{"n_ctx", served.context}, {"n_predict", -1}};
    const SamplerOptions& s = served.sampling;
    for (const Parameter& parameter : sampler_parameters())
        std::visit(
            [&](auto member) {
                using Value = std::decay_t<decltype(s.*member)>;
                if constexpr (std::is_arithmetic_v<Value>) params[std::string(parameter.name)] = s.*member;
            },
            parameter.member);
    const Statistics statistics = service.answers.statistics();
    const bool speculative = !statistics.draft_methods.empty();
    params["speculative.types"] = speculative ? statistics.draft_methods : "none";
    params["speculative.n_max"] = statistics.most_drafted;
    const Result<ChatWriter> writer = service.writer({}, Json::object());
    const auto text_of = [&](Token token) { return to_valid_utf8(tokenizer.piece(token, true)); };
    Json replicas = Json::array();
    for (const ReplicaState& replica : service.answers.replicas())
        replicas.push_back({{"id", replicas.size()},
                            {"device", replica.device},
                            {"state", std::string(health_name(replica.health))},
                            {"slots", replica.statistics.slots.size()}});
    Json out = {{"default_generation_settings",
                 {{"n_ctx", served.context}, {"speculative", speculative}, {"params", params}}},
                {"total_slots", served.parallel},
                {"model_path", served.path},
                {"model_alias", served.name},
                {"chat_template", writer.ok() ? writer.value().template_text() : ""},
                {"modalities", {{"vision", false}, {"audio", false}}},
                {"bos_token", text_of(tokenizer.bos())},
                {"eos_token", text_of(tokenizer.eos())},
                {"build_info", served.build},
                {"is_sleeping", false}};
    if (!replicas.empty()) out["replicas"] = std::move(replicas);
    reply_json(exchange, out);
}

void answer_model_load(Service&, const ExchangePtr& exchange) {
    const Result<Json> body = parse_body(exchange->request().body);
    if (!body) return reply_error(exchange, Family::openai, body.error());
    reply_json(exchange, {{"success", true}});
}

void refuse_model_unload(Service&, const ExchangePtr& exchange) {
    exchange->reply(
        problem_reply(Family::openai,
                      {.message = "this server keeps its model as long as it runs; one that was started with "
                                  "--models unloads models"}));
}

static void add_slots(Json& all, const Service& service, const Statistics& statistics,
                      std::optional<size_t> replica) {
    for (const SlotState& slot : statistics.slots) {
        all.push_back({{"id", all.size()},
                       {"n_ctx", service.served.context},
                       {"speculative", !statistics.draft_methods.empty()},
                       {"is_processing", slot.doing != SlotState::Doing::idle},
                       {"id_task", slot.doing == SlotState::Doing::idle ? Json(-1) : Json(slot.request)},
                       {"n_prompt_tokens", slot.prompt_tokens},
                       {"n_cached_tokens", slot.read_tokens},
                       {"n_decoded", slot.generated_tokens},
                       {"draft_n", slot.drafted},
                       {"draft_n_accepted", slot.accepted}});
        if (replica) all.back()["replica"] = *replica;
    }
}

void answer_slots(Service& service, const ExchangePtr& exchange) {
    Json all = Json::array();
    const std::vector<ReplicaState> replicas = service.answers.replicas();
    if (replicas.empty()) add_slots(all, service, service.answers.statistics(), {});
    for (size_t i = 0; i < replicas.size(); ++i) add_slots(all, service, replicas[i].statistics, i);
    reply_json(exchange, all);
}

}  // namespace redline::serve
