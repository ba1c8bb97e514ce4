// Engines: several sequences share a model's caches in pages, and each gives what it gives alone.
#include "support/backends.h"
#include "support/models.h"

#include <unistd.h>
#include <array>
#include <random>

using namespace redline;
using namespace redline::test;

namespace {

Backends& engine_backends() {
    static Backends backends = [] {
        at_end([] { engine_backends().clear(); });
        return session_test_backends();
    }();
    return backends;
}

// A model and the same with a window, which is kept as a ring.
struct Files {
    std::string whole = golden("models/llama3.gguf"), window = temporary("window.gguf");
    Files() { save_with_key(must(Gguf::open(whole)), "llama.attention.sliding_window", 40, window); }
    ~Files() { std::filesystem::remove(window); }
};

constexpr uint64_t kContext = 700;

EngineOptions options_of(uint32_t sequences, uint64_t pages = 0) {
    EngineOptions options{kContext, 64};
    options.cache = CacheType::f32;
    options.sequences = sequences;
    options.pages = pages;
    return options;
}

std::vector<Token> random_tokens(const Model& model, size_t count, uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<Token> tokens(count);
    for (Token& token : tokens) token = Token(random() % model.usable_vocab());
    return tokens;
}

std::vector<float> alone(const Model& model, const std::vector<Token>& tokens) {
    Session session = must(Session::create(model, options_of(1)));
    must(session.feed(tokens));
    return {session.logits().begin(), session.logits().end()};
}

// By how much logits may differ with the steps that read the tokens; of few tokens, for the reference is
// slow.
double chunk_bound(const Model& model) {
    return test::chunk_bound(model, options_of(1), random_tokens(model, 60, 9));
}

// The logits of each feed's last token.
std::vector<std::vector<float>> fed(Engine& engine, const std::vector<Feed>& feeds) {
    std::vector<std::vector<float>> logits(feeds.size());
    must(engine.feed(feeds, [&](size_t i, std::span<const float> last) {
        CHECK(logits[i].empty());
        logits[i].assign(last.begin(), last.end());
    }));
    return logits;
}

std::vector<float> fed(Engine& engine, Sequence& sequence, std::span<const Token> tokens) {
    return fed(engine, {{&sequence, tokens}})[0];
}

// A sequence, and tokens that it is going to read.
struct Reader {
    Sequence sequence;
    std::vector<Token> tokens;

    Feed next(size_t count) {
        return {&sequence, std::span(tokens).subspan(size_t(sequence.position()), count)};
    }
    uint64_t left() const { return tokens.size() - sequence.position(); }
};

void check_message(const Status& status, std::string_view part) {
    REQUIRE_FALSE(status.ok());
    CHECK_MESSAGE(status.error().message.find(part) != std::string::npos, status.error().message);
}

}  // namespace

TEST_CASE("engine: sequences fed together and in turn give the logits of each alone") {
    const Files files;
    for (const auto& backend : engine_backends())
        for (const std::string& path : {files.whole, files.window, golden("models/qwen3moe.gguf")}) {
            INFO("on ", backend->device().name, ", ", path);
            const Model model = must(Model::load(path, *backend, {kContext, {}}));
            const double bound = chunk_bound(model);
            const auto engine = must(Engine::create(model, options_of(3)));
            std::vector<Reader> readers;
            for (const size_t length : {580u, 75u, 300u})
                readers.push_back(
                    {must(engine->open_sequence()), random_tokens(model, length, uint32_t(length))});
            std::mt19937 random(4);
            std::vector<std::vector<float>> last(readers.size());
            while (std::any_of(readers.begin(), readers.end(), [](auto& r) { return r.left() > 0; })) {
                std::vector<Feed> feeds;
                std::vector<size_t> who;
                for (size_t i = 0; i < readers.size(); ++i) {
                    if (readers[i].left() == 0 || random() % 4 == 0) continue;
                    const size_t count = random() % 5 == 0 ? 1 + random() % 100 : 1 + random() % 9;
                    feeds.push_back(readers[i].next(std::min<size_t>(count, readers[i].left())));
                    who.push_back(i);
                }
                if (feeds.empty()) continue;
                const std::vector<std::vector<float>> logits = fed(*engine, feeds);
                for (size_t i = 0; i < who.size(); ++i) last[who[i]] = logits[i];
            }
            for (size_t i = 0; i < readers.size(); ++i) {
                CAPTURE(i);
                CHECK(readers[i].sequence.tokens() == readers[i].tokens);
                CHECK(relative_error(last[i], alone(model, readers[i].tokens)) < bound);
            }
        }
}

TEST_CASE("engine: scattered pages give the logits of pages in order, bit for bit") {
    const Files files;
    for (const auto& backend : engine_backends())
        for (const std::string& path : {files.whole, files.window}) {
            INFO("on ", backend->device().name, ", ", path);
            const Model model = must(Model::load(path, *backend, {kContext, {}}));
            const std::vector<Token> tokens = random_tokens(model, 600, 1);
            const auto in_order = must(Engine::create(model, options_of(3)));
            const auto scattered = must(Engine::create(model, options_of(3)));
            Sequence one = must(in_order->open_sequence()), same = must(scattered->open_sequence());
            Sequence between = must(scattered->open_sequence());
            std::vector<float> want, got;
            for (size_t first = 0; first < tokens.size(); first += 100) {
                const auto next = std::span(tokens).subspan(first, 100);
                want = fed(*in_order, one, next);
                fed(*scattered, between, next);
                got = fed(*scattered, same, next);
                CHECK(got == want);
            }
            const Token last = 3;
            CHECK(fed(*scattered, same, {&last, 1}) == fed(*in_order, one, {&last, 1}));
            CHECK(relative_error(got, alone(model, tokens)) < chunk_bound(model));
        }
}

TEST_CASE("engine: a fork and its origin go on as if each had read all by itself") {
    const Files files;
    for (const auto& backend : engine_backends())
        for (const std::string& path : {files.whole, files.window}) {
            INFO("on ", backend->device().name, ", ", path);
            const Model model = must(Model::load(path, *backend, {kContext, {}}));
            const double bound = chunk_bound(model);
            // Two full pages are shared; each has the third, that is not full, to itself.
            const auto engine = must(Engine::create(model, options_of(3, 5)));
            const std::vector<Token> prompt = random_tokens(model, 530, 1);
            Sequence origin = must(engine->open_sequence());
            fed(*engine, origin, prompt);
            std::vector<Sequence> all;
            all.push_back(std::move(origin));
            all.push_back(must(all[0].fork()));
            all.push_back(must(all[1].fork()));
            CHECK_FALSE(all[0].fork().ok());
            std::array<std::vector<Token>, 3> further;
            std::array<std::vector<float>, 3> last;
            for (size_t round = 0; round < 30; ++round)
                for (size_t i = 0; i < all.size(); ++i) {
                    further[i].push_back(Token((round * 7 + i * 31) % model.usable_vocab()));
                    last[i] = fed(*engine, all[i], {&further[i].back(), 1});
                }
            for (size_t i = 0; i < all.size(); ++i) {
                std::vector<Token> whole = prompt;
                whole.insert(whole.end(), further[i].begin(), further[i].end());
                CHECK(all[i].tokens() == whole);
                CHECK(relative_error(last[i], alone(model, whole)) < bound);
            }
            // The origin goes; what it shared stays with the others. A shorter fork overwrites nothing
            // either.
            all.erase(all.begin());
            Sequence shorter = must(all[0].fork());
            CHECK(shorter.rewind(529) == 529);
            const std::vector<Token> other = random_tokens(model, 20, 2);
            const std::vector<float> got = fed(*engine, shorter, other);
            std::vector<Token> whole(prompt.begin(), prompt.begin() + 529);
            whole.insert(whole.end(), other.begin(), other.end());
            CHECK(relative_error(got, alone(model, whole)) < bound);
            whole = all[0].tokens();
            whole.push_back(5);
            CHECK(relative_error(fed(*engine, all[0], {&whole.back(), 1}), alone(model, whole)) < bound);
        }
}

TEST_CASE("engine: without free pages or sequences nothing is read, and what is given back is used again") {
    for (const auto& backend : engine_backends()) {
        INFO("on ", backend->device().name);
        const Model model = must(Model::load(golden("models/llama3.gguf"), *backend, {kContext, {}}));
        const auto engine = must(Engine::create(model, options_of(3, 4)));
        const std::vector<Token> tokens = random_tokens(model, 600, 1);
        Sequence first = must(engine->open_sequence()), second = must(engine->open_sequence());
        Sequence third = must(engine->open_sequence());
        CHECK_FALSE(engine->open_sequence().ok());
        const auto ignore = [](size_t, std::span<const float>) {};
        fed(*engine, first, std::span(tokens).first(300));
        // Two pages are left: not both of these.
        const std::vector<Feed> both = {{&second, std::span(tokens).first(20)},
                                        {&third, std::span(tokens).first(400)}};
        check_message(engine->feed(both, ignore), "all 4 pages of 256 tokens");
        CHECK(second.position() == 0);
        CHECK(third.position() == 0);
        const std::vector<float> want = fed(*engine, third, std::span(tokens).first(400));
        check_message(engine->feed({both.data(), 1}, ignore), "pages");
        CHECK(first.rewind(256) == 256);
        fed(*engine, second, std::span(tokens).first(20));
        // Its last page is full: the next token needs another.
        const Feed next{&first, std::span(tokens).subspan(256, 1)};
        check_message(engine->feed({&next, 1}, ignore), "pages");
        CHECK(first.position() == 256);
        third.rewind(0);
        CHECK(fed(*engine, third, std::span(tokens).first(400)) == want);
        { const Sequence gone = std::move(third); }
        Sequence again = must(engine->open_sequence());
        CHECK(fed(*engine, again, std::span(tokens).first(400)) == want);
        const Feed long_one{&again, tokens};
        check_message(engine->feed({&long_one, 1}, ignore), "the context of 700 has 300 left");
    }
}

TEST_CASE("engine: further sequences can be kept beside those of a step, and pages are counted before it") {
    for (const auto& backend : engine_backends()) {
        INFO("on ", backend->device().name);
        const Model model = must(Model::load(golden("models/llama3.gguf"), *backend, {kContext, {}}));
        EngineOptions options = options_of(1, 4);
        options.kept = 2;
        const auto engine = must(Engine::create(model, options));
        CHECK(engine->rewinds());
        const std::vector<Token> tokens = random_tokens(model, 600, 1);
        Sequence running = must(engine->open_sequence());
        fed(*engine, running, std::span(tokens).first(300));
        Sequence kept = must(running.fork()), other = must(engine->open_sequence());
        CHECK_FALSE(engine->open_sequence().ok());
        CHECK(engine->pages().all == 4);
        CHECK(engine->pages().free == 2);
        const Sequence* both[] = {&running, &kept};
        CHECK(engine->pages_of(both) == 2);
        const auto pages_for = [&](Sequence& sequence, size_t count) {
            const Feed feed{&sequence, std::span(tokens).first(count)};
            return engine->has_pages({&feed, 1});
        };
        // The fork's next token copies the page that both use; a second page is left.
        CHECK(pages_for(kept, 1));
        CHECK(pages_for(kept, 300));
        CHECK_FALSE(pages_for(kept, 513));
        CHECK(pages_for(other, 512));
        CHECK_FALSE(pages_for(other, 513));
        CHECK(kept.rewound(299) == 299);
        CHECK(kept.position() == 300);
        kept.rewind(0);
        CHECK(pages_for(running, 212));
        CHECK(engine->pages_of(both) == 2);
        fed(*engine, other, std::span(tokens).first(512));
        CHECK(engine->pages().free == 0);
        CHECK(pages_for(running, 212));
        CHECK_FALSE(pages_for(running, 213));
    }
}

TEST_CASE("engine: sequences read their tokens again when the caches were lost") {
    const Files files;
    for (const auto& backend : engine_backends())
        for (const std::string& path : {files.whole, files.window}) {
            INFO("on ", backend->device().name, ", ", path);
            const Model model = must(Model::load(path, *backend, {kContext, {}}));
            const auto engine = must(Engine::create(model, options_of(2)));
            std::vector<Token> tokens = random_tokens(model, 330, 1);
            Sequence one = must(engine->open_sequence());
            fed(*engine, one, tokens);
            Sequence other = must(one.fork());
            engine->close();
            const Token next = 7;
            const Feed feed{&one, {&next, 1}};
            CHECK_FALSE(engine->feed({&feed, 1}, [](size_t, std::span<const float>) {}).ok());
            must(engine->reopen());
            CHECK_FALSE(engine->save(one, temporary("lost"), {}, nullptr).ok());
            const std::vector<std::vector<float>> got =
                fed(*engine, {{&one, {&next, 1}}, {&other, {&next, 1}}});
            tokens.push_back(next);
            CHECK(one.tokens() == tokens);
            const std::vector<float> want = alone(model, tokens);
            for (const std::vector<float>& logits : got)
                CHECK(relative_error(logits, want) < chunk_bound(model));
        }
}

TEST_CASE("engine: a sequence in pages is saved and restored, there and as a session") {
    const Files files;
    const std::string saved = temporary("saved");
    for (const auto& backend : engine_backends())
        for (const std::string& path : {files.whole, files.window}) {
            INFO("on ", backend->device().name, ", ", path);
            const Model model = must(Model::load(path, *backend, {kContext, {}}));
            const double bound = chunk_bound(model);
            const std::vector<Token> tokens = random_tokens(model, 555, 1);
            const auto engine = must(Engine::create(model, options_of(3)));
            Sequence between = must(engine->open_sequence()), one = must(engine->open_sequence());
            Sequence copy = must(engine->open_sequence());
            for (size_t first = 0; first < 550; first += 110) {
                fed(*engine, {{&between, std::span(tokens).subspan(first, 110)},
                              {&one, std::span(tokens).subspan(first, 110)}});
            }
            must(engine->save(one, saved, {}, nullptr));
            must(engine->restore(copy, saved, {}, nullptr));
            CHECK(copy.tokens() == one.tokens());
            const auto rest = std::span(tokens).subspan(550);
            const std::vector<float> want = fed(*engine, one, rest);
            CHECK(fed(*engine, copy, rest) == want);
            Session session = must(Session::create(model, options_of(1)));
            must(session.restore(saved));
            must(session.feed(rest));
            CHECK(relative_error(session.logits(), want) < bound);
        }
    std::filesystem::remove(saved);
}

TEST_CASE("engine: memory is what was planned before anything was loaded, to one percent") {
    for (const auto& backend : engine_backends()) {
        INFO("on ", backend->device().name);
        const EngineOptions options = options_of(5, 9);
        Model model = must(Model::inspect(golden("models/llama3.gguf"), options.context));
        const uint64_t before = backend->allocated();
        const MemoryNeed need = must(memory_need(model, *backend, options));
        must(model.place(*backend, {}));
        const auto engine = must(Engine::create(model, options));
        Sequence one = must(engine->open_sequence()), other = must(engine->open_sequence());
        const std::vector<Token> tokens = random_tokens(model, 100, 1);
        for (const size_t count : {100u, 3u, 1u})
            fed(*engine, {{&one, std::span(tokens).first(count)}, {&other, std::span(tokens).first(count)}});
        const Token token = 1;
        fed(*engine, one, {&token, 1});
        const uint64_t planned = need.weights + need.cache + need.scratch;
        CHECK(double(backend->allocated() - before) == doctest::Approx(double(planned)).epsilon(0.01));
    }
}
