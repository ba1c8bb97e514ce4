#include "serve/api/anthropic.h"

namespace redline::serve {

namespace {

Json anthropic_usage(const Choice& answer) {
    const AnswerCost& cost = answer.end.cost;
    // Tokens from the cache are counted apart here, and not within the others.
    return {{"input_tokens", cost.prompt_tokens - std::min(cost.prompt_tokens, cost.cached_tokens)},
            {"cache_creation_input_tokens", 0},
            {"cache_read_input_tokens", cost.cached_tokens},
            {"output_tokens", cost.generated_tokens}};
}

std::string_view stop_reason(const Choice& answer) {
    if (!answer.calls.empty()) return "tool_use";
    if (is_cut(answer.end)) return "max_tokens";
    return answer.end.reason == StopReason::stop_string ? "stop_sequence" : "end_turn";
}

Json stop_members(const Choice& answer) {
    const bool by_stop = answer.end.reason == StopReason::stop_string && answer.calls.empty();
    return {{"stop_reason", std::string(stop_reason(answer))},
            {"stop_sequence", by_stop ? Json(answer.end.stop) : Json()}};
}

class WholeMessage final : public AnswerListener {
public:
    WholeMessage(Service& service, ExchangePtr exchange)
        : service_(service), exchange_(std::move(exchange)) {}

    void done(const std::vector<Choice>& answers) override {
        const Choice& answer = answers[0];
        Json content = Json::array();
        if (!answer.reasoning.empty())
            content.push_back({{"type", "thinking"}, {"thinking", answer.reasoning}, {"signature", ""}});
        if (!answer.content.empty()) content.push_back({{"type", "text"}, {"text", answer.content}});
        for (const ToolCall& call : answer.calls)
            content.push_back(
                {{"type", "tool_use"}, {"id", call.id}, {"name", call.name}, {"input", call.arguments}});
        Json out = {{"id", new_id("msg_")},
                    {"type", "message"},
                    {"role", "assistant"},
                    {"model", service_.served.name},
                    {"content", std::move(content)}};
        out.update(stop_members(answer));
        out["usage"] = anthropic_usage(answer);
        reply_json(exchange_, out);
    }
    void failed(const Problem& problem) override {
        exchange_->reply(problem_reply(Family::anthropic, problem));
    }

private:
    Service& service_;
    const ExchangePtr exchange_;
};

// Blocks come one after another, each with a beginning and an end, and are numbered without gaps.
class StreamedMessage final : public AnswerListener {
public:
    StreamedMessage(Service& service, ExchangePtr exchange, uint64_t prompt_tokens)
        : service_(service), exchange_(std::move(exchange)), prompt_tokens_(prompt_tokens) {
        exchange_->stream(sse_head(), "event: ping\ndata: {\"type\": \"ping\"}\n\n");
    }

    void piece(size_t, bool reasoning, const std::string& text, std::span<const TokenLogprobs>) override {
        begin();
        if (text.empty()) return;
        open(reasoning ? Block::thinking : Block::text);
        if (reasoning)
            delta({{"type", "thinking_delta"}, {"thinking", text}});
        else
            delta({{"type", "text_delta"}, {"text", text}});
    }
    void calls(size_t, const std::vector<ToolCall>& calls) override {
        begin();
        for (const ToolCall& call : calls) {
            close();
            start({{"type", "tool_use"}, {"id", call.id}, {"name", call.name}, {"input", Json::object()}});
            block_ = Block::call;
            delta({{"type", "input_json_delta"}, {"partial_json", json_text(call.arguments)}});
        }
    }
    void done(const std::vector<Choice>& answers) override {
        begin();
        close();
        send({{"type", "message_delta"},
              {"delta", stop_members(answers[0])},
              {"usage", anthropic_usage(answers[0])}});
        send({{"type", "message_stop"}});
        exchange_->finish();
    }
    void failed(const Problem& problem) override {
        if (!begun_) return exchange_->reply(problem_reply(Family::anthropic, problem));
        exchange_->write(fmt::format("event: error\ndata: {}\n\n", problem_text(Family::anthropic, problem)));
        exchange_->finish();
    }

private:
    enum class Block : uint8_t { none, thinking, text, call };

    void send(const Json& event) {
        exchange_->write(sse(event, event["type"].get_ref<const std::string&>()));
    }
    void begin() {
        if (std::exchange(begun_, true)) return;
        send({{"type", "message_start"},
              {"message",
               {{"id", new_id("msg_")},
                {"type", "message"},
                {"role", "assistant"},
                {"model", service_.served.name},
                {"content", Json::array()},
                {"stop_reason", nullptr},
                {"stop_sequence", nullptr},
                {"usage", {{"input_tokens", prompt_tokens_}, {"output_tokens", 0}}}}}});
    }
    void start(const Json& block) {
        send({{"type", "content_block_start"}, {"index", index_}, {"content_block", block}});
    }
    void delta(const Json& change) {
        send({{"type", "content_block_delta"}, {"index", index_}, {"delta", change}});
    }
    void open(Block block) {
        if (block_ == block) return;
        close();
        block_ = block;
        if (block == Block::thinking)
            start({{"type", "thinking"}, {"thinking", ""}, {"signature", ""}});
        else
            start({{"type", "text"}, {"text", ""}});
    }
    void close() {
        if (block_ == Block::none) return;
        if (block_ == Block::thinking) delta({{"type", "signature_delta"}, {"signature", ""}});
        send({{"type", "content_block_stop"}, {"index", index_++}});
        block_ = Block::none;
    }

    Service& service_;
    const ExchangePtr exchange_;
    const uint64_t prompt_tokens_;
    bool begun_ = false;
    Block block_ = Block::none;
    size_t index_ = 0;
};

}  // namespace

void answer_messages(Service& service, const ExchangePtr& exchange) {
    const auto begin = [&]() -> Status {
        const Json body = RL_TRY(parse_body(exchange->request().body));
        if (!Fields(body).has("max_tokens")) return error("max_tokens is missing");
        ChatCall call = RL_TRY(read_anthropic(body, service));
        const PreparedPrompt prompt = RL_TRY(prepare_chat(service, call));
        std::unique_ptr<AnswerListener> listener;
        if (call.wishes.stream)
            listener = std::make_unique<StreamedMessage>(service, exchange, prompt.tokens.size());
        else
            listener = std::make_unique<WholeMessage>(service, exchange);
        run_answers(service, exchange, prompt, call.wishes, std::move(listener));
        return {};
    };
    if (const Status begun = begin(); !begun) reply_error(exchange, Family::anthropic, begun.error());
}

void answer_count_tokens(Service& service, const ExchangePtr& exchange) {
    const auto begin = [&]() -> Status {
        const Json body = RL_TRY(parse_body(exchange->request().body));
        ChatCall call = RL_TRY(read_anthropic(body, service));
        reply_json(exchange, {{"input_tokens", RL_TRY(prepare_chat(service, call)).tokens.size()}});
        return {};
    };
    if (const Status done = begin(); !done) reply_error(exchange, Family::anthropic, done.error());
}

}  // namespace redline::serve
