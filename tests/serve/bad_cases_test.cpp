// Mistakes and bad faith of clients: impossible numbers, endless requests, sockets that are held.
#include "sample/parameters.h"
#include "served.h"
#include "serving.h"

using namespace redline;
using namespace redline::test;
namespace server = redline::serve;

namespace {

// A number of a request: what is sent, but for the number, which stands where the body has "?".
struct NumberCase {
    std::string path, body, name;
};

std::vector<NumberCase> of_members(const std::string& path, const std::string& begin,
                                   const std::vector<std::string>& names) {
    std::vector<NumberCase> all;
    for (const std::string& name : names) all.push_back({path, begin + ", \"" + name + "\": ?}", name});
    return all;
}

std::vector<NumberCase> number_cases() {
    const std::string messages = R"({"messages": [{"role": "user", "content": "hi"}])";
    const std::string prompt = R"({"prompt": "hi")";
    std::vector<std::string> sampling;
    for (const Parameter& each : sampler_parameters()) {
        const bool number = std::holds_alternative<float SamplerOptions::*>(each.member) ||
                            std::holds_alternative<int32_t SamplerOptions::*>(each.member) ||
                            std::holds_alternative<uint32_t SamplerOptions::*>(each.member);
        if (number) sampling.emplace_back(each.name);
    }
    std::vector<NumberCase> all;
    const auto add = [&](const std::string& path, const std::string& begin,
                         const std::vector<std::string>& names) {
        for (NumberCase& each : of_members(path, begin, names)) all.push_back(std::move(each));
    };
    add("/v1/chat/completions", messages, sampling);
    add("/v1/chat/completions", messages,
        {"max_tokens", "max_completion_tokens", "n_predict", "min_tokens", "n", "best_of", "n_keep",
         "n_discard", "n_probs", "reasoning_budget_tokens", "thinking_budget_tokens", "reasoning_budget"});
    add("/v1/chat/completions", messages + R"(, "logprobs": true)", {"top_logprobs"});
    add("/v1/completions", prompt, {"max_tokens", "logprobs", "n", "best_of", "temperature", "seed"});
    add("/completion", prompt, {"n_predict", "n_probs", "top_k", "min_keep", "repeat_last_n"});
    add("/v1/messages", messages + R"(, "max_tokens": 5)", {"temperature", "top_p", "top_k"});
    add("/v1/messages", messages, {"max_tokens"});
    add("/v1/responses", R"({"input": "hi")", {"max_output_tokens", "temperature", "top_p", "top_logprobs"});
    for (const char* name : {"num_predict", "num_ctx", "temperature", "seed", "top_k", "repeat_penalty"}) {
        const std::string options = std::string(R"(, "options": {")") + name + "\": ?}}";
        all.push_back({"/api/chat", messages + options, name});
        all.push_back({"/api/generate", prompt + options, name});
    }
    all.push_back({"/completion", prompt + R"(, "stop_token_ids": [?]})", "stop_token_ids"});
    all.push_back({"/completion", prompt + R"(, "logit_bias": {"5": ?}})", "logit_bias"});
    all.push_back({"/detokenize", R"({"tokens": [?]})", "tokens"});
    return all;
}

std::string with_number(const NumberCase& each, const std::string& number) {
    std::string body = each.body;
    return body.replace(body.find('?'), 1, number);
}

}  // namespace

TEST_CASE("numbers: each that cannot be meant is refused by its name, at every endpoint") {
    Served served;
    for (const NumberCase& each : number_cases())
        for (const char* number : {"-1e300", "1e300", "\"5\"", "[5]", "{\"a\": 5}"}) {
            const std::string body = with_number(each, number);
            // The least bias forbids a token.
            if (each.name == "logit_bias" && std::string(number) == "-1e300") continue;
            CAPTURE(each.path);
            CAPTURE(body);
            const HttpGot got = http_post(served.port(), each.path, body);
            CHECK_MESSAGE(got.status == 400, got.body);
            CHECK_MESSAGE(mentions(got.body, each.name), got.body);
        }
    CHECK(served.answers.requests()->empty());
}

TEST_CASE("numbers: those that JSON does not have make the body wrong, at every endpoint") {
    Served served;
    for (const NumberCase& each : number_cases())
        for (const char* number : {"NaN", "Infinity", "-Infinity", "1e999", "-1e999", "0x10", "+5", ".5"}) {
            const HttpGot got = http_post(served.port(), each.path, with_number(each, number));
            CAPTURE(each.path);
            CAPTURE(each.name);
            CAPTURE(number);
            CHECK_MESSAGE(got.status == 400, got.body);
            CHECK_MESSAGE(mentions(got.body, "the body is no JSON"), got.body);
        }
    CHECK(served.answers.requests()->empty());
}

TEST_CASE("numbers: a negative limit of tokens is refused, but for those that mean none") {
    Served served;
    const auto status = [&](const std::string& path, const std::string& body) {
        return http_post(served.port(), path, body).status;
    };
    CHECK(status("/completion", R"({"prompt": "hi", "n_predict": -1})") == 200);
    CHECK(status("/completion", R"({"prompt": "hi", "n_predict": -2})") == 400);
    CHECK(status("/api/generate", R"({"prompt": "hi", "options": {"num_predict": -2}})") == 200);
    CHECK(status("/api/generate", R"({"prompt": "hi", "options": {"num_predict": -3}})") == 400);
    for (const char* number : {"-1", "0"}) {
        const std::string tail = std::string(number) + "}";
        CHECK(status("/v1/messages",
                     R"({"messages": [{"role": "user", "content": "hi"}], "max_tokens": )" + tail) == 400);
        CHECK(status("/v1/responses", R"({"input": "hi", "max_output_tokens": )" + tail) == 400);
    }
}

TEST_CASE("numbers: a limit of a million tokens reaches the scheduler, which ends with the context") {
    Served served;
    CHECK(served.post("/v1/chat/completions", chat_body({{"max_tokens", 1000000}})).status == 200);
    CHECK(served.answers.last().max_tokens == 1000000);
    ChainModel ring;
    ring.next[ChainModel::kLetterA + 25] = ChainModel::kLetterA;
    const auto s = serving_chain(serve_options(1), ring);
    // The second would not fit into memory if anything were set aside for it.
    for (const int64_t tokens : {int64_t(1000000), int64_t(1) << 40}) {
        Asked asked;
        ask(*s->scheduler, asked, request_of(s->tokenizer().encode("a", {.add_special = false}), tokens));
        REQUIRE(asked.submission.ticket);
        CHECK(asked.end().reason == StopReason::context_full);
        CHECK(asked.tokens.size() <= 64);
    }
}

TEST_CASE("bodies: one of 200 MB is refused, also where it comes in chunks that do not say so") {
    Served served;
    const std::string kHead = "POST /v1/completions HTTP/1.1\r\nHost: x\r\n";
    HttpConnection honest(served.port());
    honest.send(kHead + "Content-Length: 209715200\r\n\r\n");
    const HttpGot got = honest.read();
    CHECK(got.status == 413);
    CHECK(mentions(got.body, "67108864 bytes"));
    HttpConnection chunks(served.port());
    chunks.send(kHead + "Transfer-Encoding: chunked\r\n\r\n");
    const std::string piece = "100000\r\n" + std::string(1 << 20, ' ') + "\r\n";
    for (int i = 0; i < 200 && chunks.send(piece); ++i) {
    }
    CHECK(chunks.read().status == 413);
    CHECK(http_get(served.port(), "/health").status == 200);
}

TEST_CASE("slow clients: a byte now and then extends the time of neither a header nor a body") {
    using std::chrono::milliseconds;
    Served served({}, {.limits = {.head = milliseconds(300), .body = milliseconds(300)}});
    HttpConnection head(served.port()), body(served.port());
    head.send("GET /health HTTP/1.1\r\nX: ");
    body.send("POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
    for (HttpConnection* client : {&head, &body}) {
        for (int i = 0; i < 1000 && client->held().empty(); ++i) {
            client->send("a");
            client->receive(20);
        }
        CHECK(client->read().status == 408);
    }
}

TEST_CASE("slow clients: one that reads nothing of its stream does not stop others") {
    Served served;
    *served.answers.script() = {.pieces = {std::string(2000, 'x')}, .endless = true};
    HttpConnection slow(served.port(), 4096);
    slow.send(http_text("POST", "/v1/chat/completions", chat_body({{"stream", true}}).dump()));
    CHECK(comes_true([&] { return served.answers.requests()->size() == 1; }));
    *served.answers.script() = {};
    for (int i = 0; i < 20; ++i)
        CHECK(served.posted("/v1/chat/completions", chat_body())["choices"][0]["message"]["content"] ==
              "Hello there!");
    // It is cut at last, after 4 MiB that are kept for it.
    CHECK(comes_true([&] { return served.answers.cancelled() == 1; }, 60));
}

TEST_CASE("half-closed: a client that sends no more still gets its answers, whole and as a stream") {
    Served served;
    HttpConnection quick(served.port());
    quick.send(http_text("POST", "/tokenize", "{\"content\": \"ab\"}") + http_text("GET", "/health"));
    quick.half_close();
    CHECK(quick.read().body == "{\"tokens\":[3,4]}");
    CHECK(quick.read().status == 200);
    CHECK(quick.ends(20000));
    for (const bool stream : {false, true}) {
        CAPTURE(stream);
        HttpConnection client(served.port());
        {
            const auto held = served.answers.script();  // no answer begins while a test holds it
            client.send(http_text("POST", "/v1/chat/completions", chat_body({{"stream", stream}}).dump()));
            client.half_close();
            for (int i = 0; i < 2; ++i) CHECK(http_get(served.port(), "/health").status == 200);
        }
        // An interim answer asks whether anybody listens.
        while (client.held().size() < 25 && client.receive()) {
        }
        if (client.held().starts_with("HTTP/1.1 100 ")) CHECK(client.read(true).status == 100);
        const HttpGot got = client.read();
        CHECK(got.status == 200);
        CHECK(got.whole);
        CHECK(mentions(got.body, stream ? "[DONE]" : "Hello there!"));
    }
    CHECK(served.answers.cancelled() == 0);
}

TEST_CASE("half-closed: one of HTTP/1.0 cannot be asked whether it listens, and counts as gone") {
    Served served;
    served.answers.script()->endless = true;
    HttpConnection gone(served.port());
    const std::string body = chat_body().dump();
    gone.send(
        fmt::format("POST /v1/chat/completions HTTP/1.0\r\nContent-Length: {}\r\n\r\n{}", body.size(), body));
    gone.half_close();
    CHECK(comes_true([&] { return served.answers.cancelled() == 1; }));
}

TEST_CASE("connections: where all that may be open are busy others wait, which is said once") {
    std::atomic<int> told = 0;
    server::HttpOptions options;
    options.limits.connections = 3;
    options.note = [&](const std::string& text) { told += mentions(text, "3 connections") ? 1 : 100; };
    Served served({}, options);
    std::vector<HttpConnection> busy;
    for (int i = 0; i < 3; ++i) {
        busy.emplace_back(served.port());
        busy.back().send("GET /hea");
    }
    CHECK(comes_true([&] { return served.server->connections() == 3; }));
    HttpConnection fourth(served.port());
    fourth.send(http_text("GET", "/health"));
    CHECK(comes_true([&] { return told > 0; }));
    CHECK_FALSE(fourth.receive(200));
    busy.clear();
    CHECK(fourth.read().status == 200);
    CHECK(told == 1);
}
