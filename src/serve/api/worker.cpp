// The endpoints by which routers watch and ask a worker, as vLLM and SGLang have them.
#include "serve/api/worker.h"

#include "serve/api/native.h"

namespace redline::serve {

Json load_json(std::span<const Statistics> models) {
    uint64_t running = 0, waiting = 0, tokens = 0;
    for (const Statistics& statistics : models) {
        running += statistics.running();
        waiting += statistics.waiting;
        for (const SlotState& slot : statistics.slots)
            if (slot.doing != SlotState::Doing::idle) tokens += slot.read_tokens;
    }
    return {{"load", running + waiting},
            {"num_reqs", running + waiting},
            {"num_waiting_reqs", waiting},
            {"num_tokens", tokens}};
}

Json server_load_json(std::span<const Statistics> models) {
    return {{"server_load", load_json(models)["load"]}};
}

void answer_get_load(Service& service, const ExchangePtr& exchange) {
    const Statistics statistics = service.answers.statistics();
    reply_json(exchange, load_json({&statistics, 1}));
}

void answer_server_load(Service& service, const ExchangePtr& exchange) {
    const Statistics statistics = service.answers.statistics();
    reply_json(exchange, server_load_json({&statistics, 1}));
}

void answer_version(Service& service, const ExchangePtr& exchange) {
    reply_json(exchange, {{"version", service.served.build}});
}

// A prompt as the model would read it, and the most tokens that an answer may have.
static Json rendered(const Service& service, const std::vector<Token>& tokens, const Wishes& wishes) {
    const uint64_t context = service.served.context;
    const uint64_t room = context - std::min<uint64_t>(context, tokens.size());
    const uint64_t most = wishes.max_tokens < 0 ? room : std::min(room, uint64_t(wishes.max_tokens));
    return {{"token_ids", tokens},
            {"features", nullptr},
            {"cache_salt", nullptr},
            {"sampling_params", {{"max_tokens", most}}}};
}

void answer_render_chat(Service& service, const ExchangePtr& exchange) {
    const auto begin = [&]() -> Status {
        const Json body = RL_TRY(parse_body(exchange->request().body));
        ChatCall call = RL_TRY(read_chat_call(body, service));
        const PreparedPrompt prompt = RL_TRY(prepare_chat(service, call));
        reply_json(exchange, rendered(service, prompt.tokens, call.wishes));
        return {};
    };
    if (const Status done = begin(); !done) reply_error(exchange, Family::openai, done.error());
}

void answer_render_completion(Service& service, const ExchangePtr& exchange) {
    const auto begin = [&]() -> Status {
        const Json body = RL_TRY(parse_body(exchange->request().body));
        const Wishes wishes = RL_TRY(read_wishes(Fields(body), service));
        Json all = Json::array();
        for (const std::vector<Token>& tokens : RL_TRY(read_prompts(body, service)))
            all.push_back(rendered(service, tokens, wishes));
        reply_json(exchange, all);
        return {};
    };
    if (const Status done = begin(); !done) reply_error(exchange, Family::openai, done.error());
}

}  // namespace redline::serve
