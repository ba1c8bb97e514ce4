// A server of the API for tests, with a tokenizer of a tiny model and answers that a test writes.
#pragma once

#include "json/json.h"
#include "serve/api/api_server.h"
#include "served_template.h"
#include "support/chain_model.h"
#include "support/http_client.h"
#include "support/text_support.h"

#include <filesystem>
#include <mutex>
#include <thread>

namespace redline::test {

// The answer to one request, piece by piece.
struct Scripted {
    std::vector<std::string> pieces = {"Hello", " there", "!"};
    StopReason reason = StopReason::end_of_generation;
    std::string stop = {};
    std::string fault = {};  // ends the answer
    bool endless = false;    // until it is cancelled
    bool waits = false;      // before the first piece, until it is cancelled
    bool counts = true;      // pieces have their tokens, which of megabytes take long to find
};

// In place of a scheduler: each request is answered by a thread.
class ScriptedAnswers final : public serve::Answering {
public:
    ~ScriptedAnswers() override {
        ending_ = true;
        for (std::thread& thread : threads_) thread.join();
    }

    serve::Submission submit(serve::AnswerRequest request) override {
        const std::lock_guard lock(mutex_);
        if (refusal_.refusal != serve::Refusal::none) return refusal_;
        auto ticket = std::make_shared<serve::AnswerTicket>();
        requests_.push_back(request);
        requests_.back().sink = {};
        threads_.emplace_back([this, request = std::move(request), script = script_, ticket] {
            answer(request, script, *ticket);
        });
        return {.ticket = ticket};
    }
    serve::Health health() const override { return state; }
    serve::Statistics statistics() const override {
        serve::Statistics all;
        all.slots.resize(2);
        all.slots[1] = {serve::SlotState::Doing::generating, 7, 10, 12, 2};
        all.prompt_tokens = 100;
        all.cached_tokens = 40;
        all.pages = 10;
        all.pages_free = 5;
        all.first_token.add(0.003);
        all.first_token.add(1000.0);
        return all;
    }
    size_t cancelled() const { return cancelled_; }
    // Held by a test while it reads or changes what the server's threads see, too.
    template <typename T>
    struct Held {
        std::unique_lock<std::recursive_mutex> lock;
        T& value;
        T* operator->() { return &value; }
        T& operator*() { return value; }
    };
    Held<Scripted> script() { return {std::unique_lock(mutex_), script_}; }
    Held<serve::Submission> refusal() { return {std::unique_lock(mutex_), refusal_}; }
    Held<std::vector<serve::AnswerRequest>> requests() { return {std::unique_lock(mutex_), requests_}; }
    serve::AnswerRequest last() { return requests()->back(); }

    const Tokenizer* tokenizer = nullptr;
    std::atomic<serve::Health> state = serve::Health::serving;

private:
    void answer(const serve::AnswerRequest& request, const Scripted& script_now,
                serve::AnswerTicket& ticket) {
        serve::AnswerEnd end{.reason = script_now.reason, .stop = script_now.stop};
        end.cost.prompt_tokens = request.prompt.size();
        end.cost.cached_tokens = 1;
        const auto wait = [&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            return !ticket.cancelled() && !ending_;
        };
        while (script_now.waits && wait()) {
        }
        do {
            for (const std::string& text : script_now.pieces) {
                if (ticket.cancelled()) break;
                serve::AnswerPiece piece{text, {}, {}};
                if (script_now.counts) piece.tokens = tokenizer->encode(text, {.add_special = false});
                if (request.logprobs >= 0)
                    for (const Token token : piece.tokens) {
                        TokenLogprobs each{{token, -0.5}, {}};
                        for (int32_t i = 0; i < request.logprobs; ++i) each.top.push_back({token, -0.5 - i});
                        piece.logprobs.push_back(each);
                    }
                end.cost.generated_tokens += piece.tokens.size();
                request.sink.piece(std::move(piece));
            }
        } while (script_now.endless && wait());
        if (!script_now.fault.empty()) end.problem = error("{}", script_now.fault);
        if (ticket.cancelled()) {
            end.reason = StopReason::cancelled;
            ++cancelled_;
        }
        request.sink.end(std::move(end));
    }

    std::recursive_mutex mutex_;
    Scripted script_;
    serve::Submission refusal_;
    std::vector<serve::AnswerRequest> requests_;
    std::vector<std::thread> threads_;
    std::atomic<bool> ending_ = false;
    std::atomic<size_t> cancelled_ = 0;
};

inline Model served_test_model() {
    ChainModel chain;
    chain.chat = true;
    chain.chat_template = kServedTemplate;
    const std::string path =
        (std::filesystem::temp_directory_path() / fmt::format("redline_served_{}.gguf", ::getpid())).string();
    chain.build().save(path);
    Result<Model> model = Model::inspect(path);
    std::filesystem::remove(path);
    REQUIRE_MESSAGE(model.ok(), (model.ok() ? "" : model.error().message));
    return std::move(model).value();
}

class Served {
public:
    explicit Served(const serve::AccessOptions& access = {}, serve::HttpOptions http = {}, bool open = true)
        : model(served_test_model()) {
        answers.tokenizer = &model.tokenizer();
        http.port = 0;
        auto listening = serve::ApiServer::listen(http, access);
        REQUIRE_MESSAGE(listening.ok(), (listening.ok() ? "" : listening.error().message));
        server = std::move(listening).value();
        if (open) this->open();
    }
    void open() {
        serve::ServedModel served;
        served.model = &model;
        served.name = "tiny";
        served.path = "/models/tiny.gguf";
        served.context = 4096;
        served.parallel = 2;
        served.created = 1700000000;
        served.build = "redline 0.0.0";
        server->open(served, answers, 2);
    }

    uint16_t port() const { return server->port(); }
    HttpGot post(const std::string& path, const Json& body) { return http_post(port(), path, body.dump()); }
    Json posted(const std::string& path, const Json& body) { return read_json(post(path, body).body); }

    Model model;
    ScriptedAnswers answers;
    std::unique_ptr<serve::ApiServer> server;
};

// The JSON of the "data:" lines of a stream; [DONE] as a text.
inline std::vector<Json> events(const std::string& body) {
    std::vector<Json> all;
    for (size_t at = 0; (at = body.find("data: ", at)) != body.npos;) {
        const size_t end = body.find('\n', at);
        const std::string data = body.substr(at + 6, end - at - 6);
        all.push_back(data == "[DONE]" ? Json(data) : read_json(data));
        at = end;
    }
    return all;
}

inline Json chat_body(const Json& more = Json::object()) {
    Json body = {{"model", "any"}, {"messages", Json::array({{{"role", "user"}, {"content", "hi"}}})}};
    body.update(more);
    return body;
}

// Waits for something that another thread does.
template <typename Condition>
bool comes_true(Condition condition, int seconds = 20) {
    for (int i = 0; i < seconds * 200; ++i) {
        if (condition()) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
}

}  // namespace redline::test
