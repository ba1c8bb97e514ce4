#include "serve/api/responses.h"

#include <algorithm>

namespace redline::serve {

namespace {

// Members of the request that its answer repeats, with the values of those that were not sent.
Json repeated(const Json& body, const Service& service) {
    Json out = {{"tools", Json::array()},
                {"tool_choice", "auto"},
                {"parallel_tool_calls", true},
                {"temperature", service.served.sampling.temperature},
                {"top_p", service.served.sampling.top_p},
                {"instructions", nullptr},
                {"max_output_tokens", nullptr},
                {"metadata", Json::object()},
                {"text", {{"format", {{"type", "text"}}}}},
                {"truncation", "disabled"}};
    for (auto& [name, value] : out.items())
        if (const Json* given = Fields(body).find(name)) value = *given;
    return out;
}

class ResponseObject {
public:
    ResponseObject(const Json& body, const Service& service) : repeated_(repeated(body, service)) {
        model_ = service.served.name;
    }

    Json object(const char* status, Json output, const Choice* answer) const {
        Json out = {{"id", id_},
                    {"object", "response"},
                    {"created_at", created_},
                    {"model", model_},
                    {"status", status},
                    {"error", nullptr},
                    {"incomplete_details", nullptr},
                    {"output", std::move(output)},
                    {"previous_response_id", nullptr},
                    {"store", false}};
        out.update(repeated_);
        if (!answer) return out;
        if (is_cut(answer->end)) {
            out["status"] = "incomplete";
            out["incomplete_details"] = {{"reason", "max_output_tokens"}};
        }
        const AnswerCost& cost = answer->end.cost;
        out["usage"] = {{"input_tokens", cost.prompt_tokens},
                        {"input_tokens_details", {{"cached_tokens", cost.cached_tokens}}},
                        {"output_tokens", cost.generated_tokens},
                        {"output_tokens_details", {{"reasoning_tokens", answer->reasoning_tokens}}},
                        {"total_tokens", cost.prompt_tokens + cost.generated_tokens}};
        return out;
    }

    static Json reasoning_item(const std::string& id, const std::string& text, const char* status) {
        Json content = Json::array();
        if (!text.empty()) content.push_back({{"type", "reasoning_text"}, {"text", text}});
        return {{"id", id},
                {"type", "reasoning"},
                {"summary", Json::array()},
                {"content", std::move(content)},
                {"encrypted_content", nullptr},
                {"status", status}};
    }
    static Json text_part(const std::string& text, Json logprobs = Json::array()) {
        return {{"type", "output_text"},
                {"text", text},
                {"annotations", Json::array()},
                {"logprobs", std::move(logprobs)}};
    }
    static Json message_item(const std::string& id, const Json& content, const char* status) {
        return {
            {"id", id}, {"type", "message"}, {"status", status}, {"role", "assistant"}, {"content", content}};
    }
    static Json call_item(const std::string& id, const ToolCall& call, const std::string& arguments,
                          const char* status) {
        return {{"id", id},           {"type", "function_call"}, {"status", status},
                {"call_id", call.id}, {"name", call.name},       {"arguments", arguments}};
    }

private:
    const Json repeated_;
    std::string model_;
    const std::string id_ = new_id("resp_");
    const int64_t created_ = seconds_now();
};

class WholeResponse final : public AnswerListener {
public:
    WholeResponse(Service& service, ExchangePtr exchange, ResponseObject object)
        : service_(service), exchange_(std::move(exchange)), object_(std::move(object)) {}

    void done(const std::vector<Choice>& answers) override {
        const Choice& answer = answers[0];
        Json output = Json::array();
        if (!answer.reasoning.empty())
            output.push_back(ResponseObject::reasoning_item(new_id("rs_"), answer.reasoning, "completed"));
        if (!answer.content.empty() || answer.calls.empty()) {
            // Tokens of the reasoning come first, and are no part of the text.
            const std::span all = answer.logprobs;
            Json logprobs = chat_logprobs(service_.tokenizer(),
                                          all.subspan(std::min<size_t>(answer.reasoning_tokens, all.size())));
            output.push_back(ResponseObject::message_item(
                new_id("msg_"), Json::array({ResponseObject::text_part(answer.content, std::move(logprobs))}),
                "completed"));
        }
        for (const ToolCall& call : answer.calls)
            output.push_back(
                ResponseObject::call_item(new_id("fc_"), call, json_text(call.arguments), "completed"));
        reply_json(exchange_, object_.object("completed", std::move(output), &answer));
    }
    void failed(const Problem& problem) override { exchange_->reply(problem_reply(Family::openai, problem)); }

private:
    Service& service_;
    const ExchangePtr exchange_;
    const ResponseObject object_;
};

// Items come one after another: each is added, filled in pieces, and done.
class StreamedResponse final : public AnswerListener {
public:
    StreamedResponse(Service& service, ExchangePtr exchange, ResponseObject object)
        : service_(service), exchange_(std::move(exchange)), object_(std::move(object)) {
        exchange_->stream(sse_head(), kSsePing);
    }

    void piece(size_t, bool reasoning, const std::string& text,
               std::span<const TokenLogprobs> logprobs) override {
        begin();
        Json entries = chat_logprobs(service_.tokenizer(), logprobs);
        // The last tokens of a text may have none to show.
        if (text.empty() && !reasoning && kind_ == Item::message) append(logprobs_, entries);
        if (text.empty()) return;
        open(reasoning ? Item::reasoning : Item::message);
        text_ += text;
        Json event = place();
        event["content_index"] = 0;
        event["delta"] = text;
        if (!reasoning) {
            append(logprobs_, entries);
            event["logprobs"] = std::move(entries);
        }
        send(reasoning ? "response.reasoning_text.delta" : "response.output_text.delta", std::move(event));
    }
    void calls(size_t, const std::vector<ToolCall>& calls) override {
        begin();
        close();
        for (const ToolCall& call : calls) {
            item_ = new_id("fc_");
            const std::string arguments = json_text(call.arguments);
            send("response.output_item.added",
                 {{"output_index", output_.size()},
                  {"item", ResponseObject::call_item(item_, call, "", "in_progress")}});
            Json event = place();
            event["delta"] = arguments;
            send("response.function_call_arguments.delta", event);
            event.erase("delta");
            event["name"] = call.name;
            event["arguments"] = arguments;
            send("response.function_call_arguments.done", std::move(event));
            finish_item(ResponseObject::call_item(item_, call, arguments, "completed"));
        }
    }
    void done(const std::vector<Choice>& answers) override {
        begin();
        if (output_.empty() && kind_ == Item::none && answers[0].calls.empty()) open(Item::message);
        close();
        const bool cut = is_cut(answers[0].end);
        send(cut ? "response.incomplete" : "response.completed",
             {{"response", object_.object("completed", output_, &answers[0])}});
        exchange_->finish();
    }
    void failed(const Problem& problem) override {
        if (!begun_) return exchange_->reply(problem_reply(Family::openai, problem));
        Json response = object_.object("failed", output_, nullptr);
        response["error"] = {{"code", "server_error"}, {"message", problem.message}};
        send("response.failed", {{"response", std::move(response)}});
        exchange_->finish();
    }

private:
    enum class Item : uint8_t { none, reasoning, message };

    static void append(Json& all, const Json& more) { all.insert(all.end(), more.begin(), more.end()); }
    void send(const char* type, Json members) {
        Json event = {{"type", type}, {"sequence_number", sequence_++}};
        event.update(members);
        exchange_->write(sse(event, type));
    }
    Json place() const { return {{"item_id", item_}, {"output_index", output_.size()}}; }
    void begin() {
        if (std::exchange(begun_, true)) return;
        const Json response = object_.object("in_progress", Json::array(), nullptr);
        send("response.created", {{"response", response}});
        send("response.in_progress", {{"response", response}});
    }
    void open(Item kind) {
        if (kind_ == kind) return;
        close();
        kind_ = kind;
        const bool reasoning = kind == Item::reasoning;
        item_ = new_id(reasoning ? "rs_" : "msg_");
        send("response.output_item.added",
             {{"output_index", output_.size()},
              {"item", reasoning ? ResponseObject::reasoning_item(item_, "", "in_progress")
                                 : ResponseObject::message_item(item_, Json::array(), "in_progress")}});
        Json event = place();
        event["content_index"] = 0;
        event["part"] =
            reasoning ? Json{{"type", "reasoning_text"}, {"text", ""}} : ResponseObject::text_part("");
        send("response.content_part.added", std::move(event));
    }
    void close() {
        if (kind_ == Item::none) return;
        const bool reasoning = kind_ == Item::reasoning;
        kind_ = Item::none;
        Json event = place();
        event["content_index"] = 0;
        Json ended = event;
        ended["text"] = text_;
        if (!reasoning) ended["logprobs"] = logprobs_;
        send(reasoning ? "response.reasoning_text.done" : "response.output_text.done", std::move(ended));
        const Json part = reasoning
                              ? Json{{"type", "reasoning_text"}, {"text", text_}}
                              : ResponseObject::text_part(text_, std::exchange(logprobs_, Json::array()));
        event["part"] = part;
        send("response.content_part.done", std::move(event));
        finish_item(reasoning ? ResponseObject::reasoning_item(item_, text_, "completed")
                              : ResponseObject::message_item(item_, Json::array({part}), "completed"));
        text_.clear();
    }
    void finish_item(const Json& item) {
        send("response.output_item.done", {{"output_index", output_.size()}, {"item", item}});
        output_.push_back(item);
    }

    Service& service_;
    const ExchangePtr exchange_;
    const ResponseObject object_;
    bool begun_ = false;
    uint64_t sequence_ = 0;
    Item kind_ = Item::none;
    std::string item_;
    std::string text_;
    Json logprobs_ = Json::array();  // of the text
    Json output_ = Json::array();
};

}  // namespace

void answer_responses(Service& service, const ExchangePtr& exchange) {
    const auto begin = [&]() -> Status {
        const Json body = RL_TRY(parse_body(exchange->request().body));
        ChatCall call = RL_TRY(read_response_call(body, service));
        const PreparedPrompt prompt = RL_TRY(prepare_chat(service, call));
        ResponseObject object(body, service);
        std::unique_ptr<AnswerListener> listener;
        if (call.wishes.stream)
            listener = std::make_unique<StreamedResponse>(service, exchange, std::move(object));
        else
            listener = std::make_unique<WholeResponse>(service, exchange, std::move(object));
        run_answers(service, exchange, prompt, call.wishes, std::move(listener));
        return {};
    };
    if (const Status begun = begin(); !begun) reply_error(exchange, Family::openai, begun.error());
}

void answer_response_tokens(Service& service, const ExchangePtr& exchange) {
    const auto begin = [&]() -> Status {
        const Json body = RL_TRY(parse_body(exchange->request().body));
        ChatCall call = RL_TRY(read_response_call(body, service));
        const size_t tokens = RL_TRY(prepare_chat(service, call)).tokens.size();
        reply_json(exchange, {{"object", "response.input_tokens"}, {"input_tokens", tokens}});
        return {};
    };
    if (const Status done = begin(); !done) reply_error(exchange, Family::openai, done.error());
}

}  // namespace redline::serve
