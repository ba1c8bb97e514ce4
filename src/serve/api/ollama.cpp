// POST /api/chat and /api/generate
#include "serve/api/ollama.h"

#include "serve/api/keep_alive.h"
#include "text/tokens/infill.h"

#include <algorithm>

namespace redline::serve {

namespace {

// Writes a line of JSON for each piece, or all in one.
class OllamaListener final : public AnswerListener {
public:
    OllamaListener(Service& service, ExchangePtr exchange, const Wishes& wishes, bool chat)
        : service_(service),
          exchange_(std::move(exchange)),
          streams_(wishes.stream),
          logprobs_(wishes.logprobs >= 0),
          chat_(chat) {
        if (streams_) exchange_->stream({.type = "application/x-ndjson"}, {});
    }

    void piece(size_t, bool reasoning, const std::string& text,
               std::span<const TokenLogprobs> logprobs) override {
        if (!streams_ || (text.empty() && logprobs.empty())) return;
        Json line = frame(false);
        put(line, reasoning ? std::string() : text, reasoning ? text : std::string());
        if (!logprobs.empty()) line["logprobs"] = chat_logprobs(service_.tokenizer(), logprobs);
        write(line);
    }
    void calls(size_t, const std::vector<ToolCall>& calls) override {
        if (!streams_) return;
        Json line = frame(false);
        put(line, {}, {});
        line["message"]["tool_calls"] = calls_json(calls);
        write(line);
    }
    void done(const std::vector<Choice>& answers) override {
        const Choice& answer = answers[0];
        Json last = frame(true);
        put(last, streams_ ? std::string() : answer.content, streams_ ? std::string() : answer.reasoning);
        if (!streams_ && !answer.calls.empty()) last["message"]["tool_calls"] = calls_json(answer.calls);
        if (!streams_ && logprobs_) last["logprobs"] = chat_logprobs(service_.tokenizer(), answer.logprobs);
        const AnswerCost& cost = answer.end.cost;
        const auto nanoseconds = [](double seconds) { return int64_t(seconds * 1e9); };
        last["done_reason"] = is_cut(answer.end) ? "length" : "stop";
        last["total_duration"] =
            nanoseconds(cost.queue_seconds + cost.prompt_seconds + cost.generation_seconds);
        last["load_duration"] = nanoseconds(cost.queue_seconds);
        last["prompt_eval_count"] = cost.prompt_tokens;
        last["prompt_eval_duration"] = nanoseconds(cost.prompt_seconds);
        last["eval_count"] = cost.generated_tokens;
        last["eval_duration"] = nanoseconds(cost.generation_seconds);
        if (!streams_) return reply_json(exchange_, last);
        write(last);
        exchange_->finish();
    }
    void failed(const Problem& problem) override {
        if (!begun_) return exchange_->reply(problem_reply(Family::ollama, problem));
        exchange_->write(problem_text(Family::ollama, problem) + "\n");
        exchange_->finish();
    }

private:
    Json frame(bool done) const {
        return {{"model", service_.served.name}, {"created_at", rfc3339(seconds_now())}, {"done", done}};
    }
    void put(Json& line, const std::string& text, const std::string& thinking) const {
        if (!chat_) {
            line["response"] = text;
            if (!thinking.empty()) line["thinking"] = thinking;
            return;
        }
        line["message"] = {{"role", "assistant"}, {"content", text}};
        if (!thinking.empty()) line["message"]["thinking"] = thinking;
    }
    // Arguments are an object here, and not a text that holds one.
    static Json calls_json(const std::vector<ToolCall>& calls) {
        Json all = Json::array();
        for (const ToolCall& call : calls)
            all.push_back(
                {{"id", call.id},
                 {"function", {{"index", all.size()}, {"name", call.name}, {"arguments", call.arguments}}}});
        return all;
    }
    void write(const Json& line) {
        begun_ = true;
        exchange_->write(json_text(line) + "\n");
    }

    Service& service_;
    const ExchangePtr exchange_;
    const bool streams_, logprobs_, chat_;
    bool begun_ = false;
};

Status read_ollama_options(const Json& body, const Service& service, Wishes& wishes) {
    const Fields fields(body);
    wishes.sampling = service.served.sampling;
    wishes.stream = RL_TRY(fields.flag("stream", true));
    RL_TRY(fields.refuse("images", "models read text alone here"));
    RL_TRY(read_keep_alive(fields));  // only a server of several models unloads one
    if (const Json* format = fields.find("format"); format && *format != "")
        RL_TRY(hold_to_schema(wishes, *format == "json" ? Json::object() : *format, false, "format"));
    if (RL_TRY(fields.flag("logprobs", false)))
        wishes.logprobs = int32_t(RL_TRY(fields.integer("top_logprobs", 0, 0, 20)));
    const Json* given = fields.find("options");
    if (!given) return {};
    if (!given->is_object()) return error("options is {}; it has to be an object", excerpt(*given));
    const Fields options(*given, "options.");
    RL_TRY(read_sampling(options, wishes.sampling));
    RL_TRY(read_stops(options, "stop", wishes.stops));
    const int64_t tokens = RL_TRY(options.integer("num_predict", -1, -2, int64_t(1) << 40));
    wishes.max_tokens = std::max<int64_t>(tokens, -1);  // -2: until the context is full
    const int64_t context = RL_TRY(options.integer("num_ctx", 0, 0, int64_t(1) << 40));
    if (uint64_t(context) > service.served.context)
        return error(
            "options.num_ctx is {}, and this server was started with a context of {}: a larger -c makes room",
            context, service.served.context);
    return {};
}

Status read_think(const Fields& fields, ChatCall& call) {
    const Json* think = fields.find("think");
    if (!think) return {};
    if (think->is_boolean()) {
        call.thinking = think->get<bool>();
        return {};
    }
    const std::string level = RL_TRY(fields.text("think"));
    if (level != "low" && level != "medium" && level != "high")
        return error("think is \"{}\"; it has to be true, false, low, medium or high", level);
    call.thinking = true;
    call.variables["reasoning_effort"] = level;
    return {};
}

// The model is there as long as the server is.
Status answer_load(Service& service, const ExchangePtr& exchange, const Fields& fields) {
    const auto keep = RL_TRY(read_keep_alive(fields));
    if (keep && keep->count() == 0)
        return error(
            "keep_alive 0 without a prompt asks to unload the model, which this server keeps as long "
            "as it runs");
    reply_load(exchange, service.served.name, "load");
    return {};
}

void run_ollama(Service& service, const ExchangePtr& exchange, const PreparedPrompt& prompt,
                const Wishes& wishes, bool chat) {
    run_answers(service, exchange, prompt, wishes,
                std::make_unique<OllamaListener>(service, exchange, wishes, chat));
}

// Ollama's names for the members of messages.
Status rename_members(Json& messages) {
    for (Json& message : messages) {
        if (!message.is_object()) continue;  // which is told later
        RL_TRY(Fields(std::as_const(message), "messages.").refuse("images", "models read text alone here"));
        message.erase("images");
        if (message.contains("thinking")) message["reasoning_content"] = message["thinking"];
        message.erase("thinking");
        if (message.contains("tool_name")) message["name"] = message["tool_name"];
        message.erase("tool_name");
    }
    return {};
}

// The prompt of /api/generate: as it is, around a gap, or as a user's turn.
Result<PreparedPrompt> generate_prompt(Service& service, const Fields& fields, ChatCall& call) {
    const std::string text = RL_TRY(fields.text("prompt"));
    const std::string suffix = RL_TRY(fields.text("suffix"));
    const Model& model = *service.served.model;
    PreparedPrompt prompt;
    if (!suffix.empty()) {
        const uint64_t context = service.served.context;
        prompt.tokens =
            RL_TRY(write_fim(service.tokenizer(), infill_tokens(model.gguf().metadata(), service.tokenizer()),
                             {text, suffix}, true, context, fim_room(context, call.wishes.max_tokens)))
                .tokens;
        return prompt;
    }
    if (RL_TRY(fields.flag("raw", false)) || !has_chat_template(model.gguf().metadata())) {
        prompt.tokens = service.tokenizer().encode(text, {.add_special = true, .parse_special = true});
        return prompt;
    }
    if (const std::string system = RL_TRY(fields.text("system")); !system.empty())
        call.messages.push_back({{"role", "system"}, {"content", system}});
    call.messages.push_back({{"role", "user"}, {"content", text}});
    return prepare_chat(service, call);
}

}  // namespace

Result<bool> is_load_request(std::string_view path, const Json& body) {
    const Fields fields(body);
    if (path == "/api/generate")
        return RL_TRY(fields.text("prompt")).empty() && RL_TRY(fields.text("suffix")).empty();
    const Json* const messages = path == "/api/chat" ? fields.find("messages") : &body;
    return !messages || messages->empty();
}

void reply_load(const ExchangePtr& exchange, const std::string& model, std::string_view reason) {
    Json out = {{"model", model},
                {"created_at", rfc3339(seconds_now())},
                {"done", true},
                {"done_reason", std::string(reason)}};
    if (exchange->request().path == "/api/chat")
        out["message"] = {{"role", "assistant"}, {"content", ""}};
    else
        out["response"] = "";
    reply_json(exchange, out);
}

void answer_ollama_chat(Service& service, const ExchangePtr& exchange) {
    const auto begin = [&]() -> Status {
        const Json body = RL_TRY(parse_body(exchange->request().body));
        const Fields fields(body);
        ChatCall call;
        if (RL_TRY(is_load_request(exchange->request().path, body)))
            return answer_load(service, exchange, fields);
        call.messages = *fields.find("messages");
        RL_TRY(rename_members(call.messages));
        call.reasoning_budget = service.served.reasoning_budget;
        RL_TRY(read_ollama_options(body, service, call.wishes));
        RL_TRY(read_tool_choice(fields, call));
        RL_TRY(read_think(fields, call));
        run_ollama(service, exchange, RL_TRY(prepare_chat(service, call)), call.wishes, true);
        return {};
    };
    if (const Status begun = begin(); !begun) reply_error(exchange, Family::ollama, begun.error());
}

void answer_ollama_generate(Service& service, const ExchangePtr& exchange) {
    const auto begin = [&]() -> Status {
        const Json body = RL_TRY(parse_body(exchange->request().body));
        const Fields fields(body);
        if (RL_TRY(is_load_request(exchange->request().path, body)))
            return answer_load(service, exchange, fields);
        RL_TRY(fields.refuse("context", "a conversation is sent as messages to /api/chat"));
        RL_TRY(fields.refuse("template", "the model's is used, or none with raw"));
        ChatCall call;
        call.reasoning_budget = service.served.reasoning_budget;
        RL_TRY(read_ollama_options(body, service, call.wishes));
        RL_TRY(read_think(fields, call));
        const PreparedPrompt prompt = RL_TRY(generate_prompt(service, fields, call));
        run_ollama(service, exchange, prompt, call.wishes, false);
        return {};
    };
    if (const Status begun = begin(); !begun) reply_error(exchange, Family::ollama, begun.error());
}

}  // namespace redline::serve
