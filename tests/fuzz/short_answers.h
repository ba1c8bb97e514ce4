// The server that the fuzz targets of requests share: a tiny model's tokenizer, and answers that are short.
#pragma once

#include "serve/api/routes.h"
#include "serve/served_template.h"
#include "support/chain_model.h"

#include <cstdlib>
#include <deque>

#include <unistd.h>

namespace redline::fuzz {

inline void require(bool holds) {
    if (!holds) std::abort();
}

// Answers each request at once: with reasoning, a text and two calls of functions.
class ShortAnswers final : public serve::Answering {
public:
    explicit ShortAnswers(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

    serve::Submission submit(serve::AnswerRequest request) override {
        if (refuses) return {.refusal = serve::Refusal::queue_full, .message = "busy", .retry_seconds = 1};
        if (request.forced) require(request.forced().size() < 1000);
        serve::AnswerEnd end{.reason = StopReason::end_of_generation};
        for (const char* text :
             {"<think>\nso", "\n</think>\n\n", "ab", "<tool_call>{\"name\": \"a\", \"arguments\": {",
              "\"b\": 1}}</tool_call>", "<tool_call>{\"name\": \"a\", \"arguments\": {}}</tool_call>"}) {
            serve::AnswerPiece piece{text, tokenizer_.encode(text, {.add_special = false}), {}};
            if (request.logprobs >= 0)
                for (const Token token : piece.tokens)
                    piece.logprobs.push_back({{token, -0.5}, {{token, -0.5}, {3, -1.5}}});
            end.cost.generated_tokens += piece.tokens.size();
            request.sink.piece(std::move(piece));
        }
        if (request.max_tokens >= 0) end.reason = StopReason::max_tokens;
        if (!request.stops.empty()) {
            end.reason = StopReason::stop_string;
            end.stop = request.stops[0];
        }
        if (fails) end.problem = error("the device is lost");
        end.device_lost = fails;
        end.cost.prompt_tokens = request.prompt.size();
        request.sink.end(std::move(end));
        return {.ticket = std::make_shared<serve::AnswerTicket>()};
    }
    serve::Health health() const override { return serve::Health::serving; }
    serve::Statistics statistics() const override {
        serve::Statistics all;
        all.slots.resize(2);
        return all;
    }

    bool refuses = false;  // the queue is full
    bool fails = false;    // each answer ends by a fault

private:
    const Tokenizer& tokenizer_;
};

inline Model chain_with_chat() {
    test::ChainModel chain;
    chain.chat = true;
    chain.chat_template = test::kServedTemplate;
    const std::string path = fmt::format("/tmp/redline_fuzz_{}.gguf", ::getpid());
    chain.build().save(path);
    Result<Model> model = Model::inspect(path);
    ::unlink(path.c_str());
    require(model.ok());
    return std::move(model).value();
}

inline serve::ServedModel served_chain(const Model& model) {
    serve::ServedModel served;
    served.model = &model;
    served.name = "chain";
    served.context = 4096;
    return served;
}

// The events of a stream, or its lines, are JSON.
inline void require_stream(std::string_view type, std::string_view text) {
    require(type == "text/event-stream" || type == "application/x-ndjson");
    const std::string_view before = type == "text/event-stream" ? "data: " : "";
    while (!text.empty()) {
        const size_t end = text.find('\n');
        require(end != text.npos);
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(end + 1);
        if (line.empty() || !line.starts_with(before) || line == "data: [DONE]") continue;
        require(!read_json(line.substr(before.size())).is_discarded());
    }
}

// 501 says that the server does not have this, and 503 that it has no room: both are intended.
inline void require_reply(int status, std::string_view type, std::string_view body) {
    require(status >= 200 && (status < 500 || status == 501 || status == 503));
    if (type != "application/json") return;
    const Json value = read_json(body);
    require(!value.is_discarded());
    require(status < 400 || (value.is_object() && value.contains("error")));
}

}  // namespace redline::fuzz
