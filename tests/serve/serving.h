// A scheduler on a small model, and answers that are collected.
#pragma once

#include "host/load_model.h"
#include "serve/batch/scheduler.h"
#include "support/chain_model.h"
#include "support/models.h"

#include <future>
#include <random>

namespace redline::test {

inline serve::SchedulerOptions serve_options(uint32_t parallel, uint64_t context = 64) {
    serve::SchedulerOptions options;
    options.parallel = parallel;
    options.context = context;
    return options;
}

inline HostOptions serving_host(const std::string& path, const std::string& device = "cpu") {
    HostOptions host;
    host.model = path;
    host.device = device;
    host.cache = CacheType::f32;
    host.threads = device == "cpu" ? 2 : 0;
    host.batch = 64;
    host.kernel_check = KernelCheck::never;
    host.quick_tune = TuneBefore::never;
    host.tuned = false;
    return host;
}

struct Serving {
    HostOptions host;
    LoadedModel loaded;
    std::unique_ptr<serve::Scheduler> scheduler;

    const Tokenizer& tokenizer() const { return loaded.model->tokenizer(); }
};

// The model's file has to stay while it is inspected only.
inline std::unique_ptr<Serving> serving(HostOptions host, const serve::SchedulerOptions& options) {
    auto made = std::make_unique<Serving>();
    made->host = std::move(host);
    made->loaded = must(inspect_model(made->host));
    made->scheduler = must(serve::Scheduler::create(made->loaded, made->host, options));
    return made;
}

inline std::unique_ptr<Serving> serving_chain(const serve::SchedulerOptions& options,
                                              const ChainModel& chain = {},
                                              const std::string& device = "cpu") {
    const std::string path = temporary("serving.gguf");
    chain.build().save(path);
    std::unique_ptr<Serving> made = serving(serving_host(path, device), options);
    std::filesystem::remove(path);
    return made;
}

// One request, and all that came of it.
struct Asked {
    std::string text;
    std::vector<Token> tokens;
    std::vector<TokenLogprobs> logprobs;
    std::vector<uint64_t> progress;
    std::atomic<uint64_t> pieces = 0;
    std::function<void()> at_piece = {};
    std::promise<serve::AnswerEnd> ending;
    std::future<serve::AnswerEnd> ended = ending.get_future();
    serve::Submission submission;

    serve::AnswerEnd end() {
        REQUIRE(ended.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
        return ended.get();
    }
    bool is_over() const { return ended.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }
};

// Sends a request; it must live until its end.
inline void ask(serve::Scheduler& scheduler, Asked& into, serve::AnswerRequest request) {
    request.sink.piece = [&into](serve::AnswerPiece piece) {
        into.text += piece.text;
        into.tokens.insert(into.tokens.end(), piece.tokens.begin(), piece.tokens.end());
        into.logprobs.insert(into.logprobs.end(), piece.logprobs.begin(), piece.logprobs.end());
        ++into.pieces;
        if (into.at_piece) into.at_piece();
    };
    if (!request.sink.progress)
        request.sink.progress = [&into](uint64_t read, uint64_t) { into.progress.push_back(read); };
    request.sink.end = [&into](serve::AnswerEnd end) { into.ending.set_value(std::move(end)); };
    into.submission = scheduler.submit(std::move(request));
}

inline serve::AnswerRequest request_of(std::vector<Token> prompt, int64_t tokens = -1) {
    serve::AnswerRequest request;
    request.prompt = std::move(prompt);
    request.max_tokens = tokens;
    request.sampling.temperature = 0.0f;
    return request;
}

// A request whose tokens depend on chance and on all that stands before.
inline serve::AnswerRequest seeded_request(std::vector<Token> prompt, int64_t tokens, uint32_t seed) {
    serve::AnswerRequest request = request_of(std::move(prompt), tokens);
    request.sampling.temperature = 1.0f;
    request.sampling.seed = seed;
    request.ignore_eos = true;
    return request;
}

inline std::vector<Token> made_up_tokens(const Model& model, size_t count, uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<Token> tokens(count);
    for (Token& token : tokens) do
            token = Token(random() % model.usable_vocab());
        while (model.tokenizer().is_end_of_generation(token));
    return tokens;
}

// The answer that a request gets, with nothing beside it.
inline std::vector<Token> answer(serve::Scheduler& scheduler, serve::AnswerRequest request) {
    Asked asked;
    ask(scheduler, asked, std::move(request));
    REQUIRE_MESSAGE(asked.submission.ticket, asked.submission.message);
    const serve::AnswerEnd end = asked.end();
    CHECK_MESSAGE(end.problem.ok(), (end.problem.ok() ? "" : end.problem.error().message));
    return asked.tokens;
}

inline void wait_until(const std::function<bool()>& done) {
    for (int i = 0; i < 30000 && !done(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    REQUIRE(done());
}

}  // namespace redline::test
