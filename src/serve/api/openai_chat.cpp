// POST /v1/chat/completions
#include "serve/api/openai.h"

namespace redline::serve {

namespace {

Json chat_usage(const Usage& usage) {
    return {{"prompt_tokens", usage.prompt},
            {"completion_tokens", usage.generated},
            {"total_tokens", usage.prompt + usage.generated},
            {"prompt_tokens_details", {{"cached_tokens", usage.cached}}},
            {"completion_tokens_details", {{"reasoning_tokens", usage.reasoning}}}};
}

void put_reasoning(const ServedModel& served, Json& message, const std::string& text) {
    if (served.reasoning_content) message["reasoning_content"] = text;
    if (served.reasoning) message["reasoning"] = text;
}

// The facts that each answer of a request has.
struct ChatFacts {
    Service* service;
    std::string id = new_id("chatcmpl-");
    int64_t created = seconds_now();
    bool logprobs = false;
    bool usage = false;  // at the end of a stream

    Json frame(const char* object) const {
        return {{"id", id},
                {"object", object},
                {"created", created},
                {"model", service->served.name},
                {"system_fingerprint", service->served.build}};
    }
};

class WholeChat final : public AnswerListener {
public:
    WholeChat(ExchangePtr exchange, ChatFacts facts)
        : exchange_(std::move(exchange)), facts_(std::move(facts)) {}

    void done(const std::vector<Choice>& answers) override {
        Json out = facts_.frame("chat.completion");
        out["choices"] = Json::array();
        for (size_t i = 0; i < answers.size(); ++i) out["choices"].push_back(choice(i, answers[i]));
        out["usage"] = chat_usage(usage_of(answers));
        out["timings"] = timings_json(answers[0].end.cost);
        reply_json(exchange_, out);
    }
    void failed(const Problem& problem) override { exchange_->reply(problem_reply(Family::openai, problem)); }

private:
    Json choice(size_t index, const Choice& answer) const {
        Json message = {{"role", "assistant"}, {"content", answer.content}};
        if (answer.content.empty() && !answer.calls.empty()) message["content"] = nullptr;
        if (!answer.reasoning.empty()) put_reasoning(facts_.service->served, message, answer.reasoning);
        if (!answer.calls.empty()) message["tool_calls"] = tool_calls_json(answer.calls);
        Json out = {{"index", index},
                    {"message", std::move(message)},
                    {"logprobs", nullptr},
                    {"finish_reason", std::string(finish_reason(answer))}};
        if (facts_.logprobs)
            out["logprobs"] = {{"content", chat_logprobs(facts_.service->tokenizer(), answer.logprobs)}};
        return out;
    }

    const ExchangePtr exchange_;
    const ChatFacts facts_;
};

class StreamedChat final : public AnswerListener {
public:
    StreamedChat(ExchangePtr exchange, ChatFacts facts, size_t count)
        : exchange_(std::move(exchange)), facts_(std::move(facts)), count_(count) {
        exchange_->stream(sse_head(), kSsePing);
    }

    void piece(size_t choice, bool reasoning, const std::string& text,
               std::span<const TokenLogprobs> logprobs) override {
        begin();
        Json delta = Json::object();
        if (reasoning && !text.empty()) put_reasoning(facts_.service->served, delta, text);
        if (!reasoning && !text.empty()) delta["content"] = text;
        send(choice, delta, nullptr, logprobs);
    }
    void calls(size_t choice, const std::vector<ToolCall>& calls) override {
        begin();
        const Json all = tool_calls_json(calls);
        for (size_t i = 0; i < all.size(); ++i) {
            // The name goes out once, and the arguments follow.
            Json head = all[i];
            head["index"] = i;
            head["function"]["arguments"] = "";
            send(choice, {{"tool_calls", Json::array({head})}}, nullptr);
            const Json rest = {{"index", i}, {"function", {{"arguments", all[i]["function"]["arguments"]}}}};
            send(choice, {{"tool_calls", Json::array({rest})}}, nullptr);
        }
    }
    void ended(size_t choice, const Choice& answer) override {
        begin();
        last_ = answer.end.cost;
        send(choice, Json::object(), std::string(finish_reason(answer)));
    }
    void done(const std::vector<Choice>& answers) override {
        if (facts_.usage) {
            Json out = facts_.frame("chat.completion.chunk");
            out["choices"] = Json::array();
            out["usage"] = chat_usage(usage_of(answers));
            out["timings"] = timings_json(answers[0].end.cost);
            exchange_->write(sse(out));
        }
        exchange_->write("data: [DONE]\n\n");
        exchange_->finish();
    }
    void failed(const Problem& problem) override {
        if (!begun_) return exchange_->reply(problem_reply(Family::openai, problem));
        exchange_->write(fmt::format("data: {}\n\n", problem_text(Family::openai, problem)));
        exchange_->finish();
    }

private:
    void begin() {
        if (std::exchange(begun_, true)) return;
        for (size_t i = 0; i < count_; ++i) send(i, {{"role", "assistant"}, {"content", ""}}, nullptr);
    }
    void send(size_t choice, const Json& delta, const Json& finish,
              std::span<const TokenLogprobs> logprobs = {}) {
        Json out = facts_.frame("chat.completion.chunk");
        Json entry = {{"index", choice}, {"delta", delta}, {"logprobs", nullptr}, {"finish_reason", finish}};
        if (!logprobs.empty())
            entry["logprobs"] = {{"content", chat_logprobs(facts_.service->tokenizer(), logprobs)}};
        out["choices"] = Json::array({std::move(entry)});
        if (last_ && !facts_.usage) out["timings"] = timings_json(*last_);
        exchange_->write(sse(out));
    }

    const ExchangePtr exchange_;
    const ChatFacts facts_;
    const size_t count_;
    bool begun_ = false;
    std::optional<AnswerCost> last_;
};

}  // namespace

Result<ChatCall> read_chat_call(const Json& body, const Service& service) {
    const Fields fields(body);
    ChatCall call;
    if (!fields.has("messages")) return error("messages is missing: it has to be a list of messages");
    call.messages = *fields.find("messages");
    call.reasoning_budget = service.served.reasoning_budget;
    call.wishes = RL_TRY(read_wishes(fields, service));
    RL_TRY(read_tool_choice(fields, call));
    RL_TRY(read_reasoning(fields, call));
    call.continues = RL_TRY(fields.flag("continue_final_message", false));
    return call;
}

void answer_chat(Service& service, const ExchangePtr& exchange) {
    const auto begin = [&]() -> Status {
        const Json body = RL_TRY(parse_body(exchange->request().body));
        ChatCall call = RL_TRY(read_chat_call(body, service));
        const PreparedPrompt prompt = RL_TRY(prepare_chat(service, call));
        ChatFacts facts{
            .service = &service, .logprobs = call.wishes.logprobs >= 0, .usage = call.wishes.usage_in_stream};
        std::unique_ptr<AnswerListener> listener;
        if (call.wishes.stream)
            listener = std::make_unique<StreamedChat>(exchange, std::move(facts), call.wishes.count);
        else
            listener = std::make_unique<WholeChat>(exchange, std::move(facts));
        run_answers(service, exchange, prompt, call.wishes, std::move(listener));
        return {};
    };
    if (const Status begun = begin(); !begun) reply_error(exchange, Family::openai, begun.error());
}

}  // namespace redline::serve
