// Models whose layers keep states: rewinding, forks, files, and steps that fail.
#include "support/backends.h"
#include "support/models.h"
#include "support/share.h"

#include <unistd.h>

using namespace redline;
using namespace redline::test;

namespace {

constexpr const char* kModels[] = {"lfm2",           "lfm2moe",         "qwen35",   "qwen35moe",
                                   "qwen3next",      "qwen3next-fused", "mamba2",   "nemotron-h",
                                   "nemotron-h-moe", "granitehybrid",   "qwen4exp", "deepseek4"};

EngineOptions options_of(uint32_t sequences) {
    EngineOptions options{64, 16};
    options.cache = CacheType::f32;
    options.sequences = sequences;
    return options;
}

std::vector<float> alone(const Model& model, std::span<const Token> tokens) {
    Session session = must(Session::create(model, options_of(1)));
    must(session.feed(tokens));
    return copy(session.logits());
}

std::vector<float> fed(Engine& engine, Sequence& sequence, std::span<const Token> tokens) {
    const Feed feed{&sequence, tokens};
    std::vector<float> logits;
    must(engine.feed({&feed, 1}, [&](size_t, std::span<const float> last) { logits = copy(last); }));
    return logits;
}

// Calls test(model, bound of what logits may differ by) for each on each backend.
void for_models(const std::function<void(const Model&, double)>& test) {
    const Share share = share_of_cases();
    size_t number = 0;
    for (const auto& backend : session_test_backends())
        for (const std::string name : kModels) {
            if (!share.takes(number++)) continue;
            REQUIRE(runs_on(*backend, name));
            INFO(name, " on ", backend->device().name);
            const Model model = tiny(*backend, name);
            test(model, chunk_bound(model, options_of(1), golden_tokens()));
        }
}

}  // namespace

TEST_CASE("state: a rewound session is where the latest snapshot is, and reads the rest again") {
    for_models([](const Model& model, double bound) {
        const std::vector<Token> tokens = golden_tokens();
        for (const uint64_t count : {0u, 7u, 9u, 10u, 27u, 28u, 29u, 30u}) {
            CAPTURE(count);
            Session session = must(Session::create(model, options_of(1)));
            const auto read = [&](size_t end, size_t at_once) {
                while (session.position() < end)
                    must(session.feed(std::span(tokens).subspan(session.position(), at_once)));
            };
            // A prompt, an answer token by token, a prompt of two steps, an answer.
            read(7, 7);
            read(10, 1);
            read(28,
                 count % 2 == 0 ? 18 : 6);  // in one go, or as a program reads it that tells how far it is
            read(30, 1);
            const uint64_t held = session.rewind(count);
            CHECK(held == (count == 30 ? 30 : count >= 28 ? 28 : count >= 10 ? 10 : 0));
            CHECK(session.tokens().size() == held);
            must(session.feed(std::span(tokens).subspan(held, 33 - held)));
            CHECK(relative_error(session.logits(), alone(model, std::span(tokens).first(33))) < bound);
        }
    });
}

TEST_CASE("state: a step that is interrupted leaves the states as they were") {
    for_models([](const Model& model, double) {
        const std::vector<Token> tokens = golden_tokens();
        Session session = must(Session::create(model, options_of(1))),
                other = must(Session::create(model, options_of(1)));
        for (Session* one : {&session, &other}) must(one->feed(std::span(tokens).first(5)));
        std::atomic<bool> cancel{true};
        CHECK_FALSE(session.feed(std::span(tokens).subspan(5, 4), &cancel).ok());
        CHECK(session.position() == 5);
        for (Session* one : {&session, &other}) must(one->feed(std::span(tokens).subspan(5, 3)));
        CHECK(copy(session.logits()) == copy(other.logits()));
    });
}

TEST_CASE("state: forks, and sequences in one step, go on as if each had read all by itself") {
    for_models([](const Model& model, double bound) {
        const std::vector<Token> tokens = golden_tokens();
        const auto engine = must(Engine::create(model, options_of(4)));
        Sequence first = must(engine->open_sequence());
        fed(*engine, first, std::span(tokens).first(9));
        Sequence fork = must(first.fork()), other = must(engine->open_sequence());
        fed(*engine, other, std::span(tokens).subspan(3, 4));
        std::vector<Token> read[3] = {first.tokens(), fork.tokens(), other.tokens()};
        std::vector<float> last[3];
        Sequence* const sequences[3] = {&first, &fork, &other};
        for (size_t round = 0; round < 6; ++round) {
            std::vector<Token> next[3];
            std::vector<Feed> feeds;
            for (size_t i = 0; i < 3; ++i) {
                for (size_t j = 0; j < 1 + (round + i) % 3; ++j)
                    next[i].push_back(tokens[(5 * round + 11 * i + j) % tokens.size()]);
                read[i].insert(read[i].end(), next[i].begin(), next[i].end());
                feeds.push_back({sequences[i], next[i]});
            }
            must(engine->feed(feeds,
                              [&](size_t i, std::span<const float> logits) { last[i] = copy(logits); }));
        }
        for (size_t i = 0; i < 3; ++i) {
            CAPTURE(i);
            CHECK(relative_error(last[i], alone(model, read[i])) < bound);
        }
        // A fork's snapshot is independent: closing the origin does not affect it.
        first = must(fork.fork());
        const uint64_t held = first.rewind(10);
        CHECK(held <= 10);
        const std::vector<float> got = fed(*engine, first, std::span(tokens).subspan(20, 6));
        std::vector<Token> whole(read[1].begin(), read[1].begin() + ptrdiff_t(held));
        whole.insert(whole.end(), tokens.begin() + 20, tokens.begin() + 26);
        CHECK(relative_error(got, alone(model, whole)) < bound);
    });
}

TEST_CASE("state: a saved session goes on with the same logits, and can be rewound to where it was saved") {
    const std::string path =
        std::filesystem::temp_directory_path() / fmt::format("redline_state_test_{}", ::getpid());
    for_models([&](const Model& model, double) {
        const std::vector<Token> tokens = golden_tokens();
        Session session = must(Session::create(model, options_of(1)));
        must(session.feed(std::span(tokens).first(19)));
        must(session.save(path));
        must(session.feed(std::span(tokens).subspan(19, 8)));
        Session other = must(Session::create(model, options_of(1)));
        must(other.feed(std::span(tokens).first(3)));
        must(other.restore(path));
        CHECK(other.position() == 19);
        must(other.feed(std::span(tokens).subspan(19, 8)));
        CHECK(copy(other.logits()) == copy(session.logits()));
        CHECK(other.rewind(22) == 19);
        must(other.feed(std::span(tokens).subspan(19, 8)));
        CHECK(copy(other.logits()) == copy(session.logits()));
    });
    std::filesystem::remove(path);
}
