// MTP heads: their guesses are held to those of their layer as a model for itself, which has for each row a
// token whose embedding is what eh_proj makes of the row.
#include "plan/passes/cut.h"
#include "support/backends.h"
#include "support/layer_alone.h"

#include <numeric>

using namespace redline;
using namespace redline::test;

namespace {

constexpr const char* kModels[] = {
    "llama3",          "llama-tied",        "qwen3",         "mixtral",    "glm4",
    "glm4moe",         "glm4moelite",       "qwen35",        "qwen35moe",  "qwen3next",
    "qwen3next-fused", "deepseek2-v2",      "deepseek2-v3",  "step35",     "bailingmoe2",
    "dots1",           "exaone4",           "exaone4-small", "cohere2moe", "nemotron-h",
    "nemotron-h-moe",  "nemotron-h-latent", "step35:0",      "glm4moe:0"};

constexpr uint32_t kDrafts = 4;

EngineOptions options_of(uint32_t batch = 16) {
    EngineOptions options{64, batch, kDrafts + 1};
    options.cache = CacheType::f32;
    options.drafts = kDrafts;
    return options;
}

std::vector<Token> guess(Session& session, Token last) {
    Guess guess{&session.sequence(), last, kDrafts};
    must(session.engine().guess({&guess, 1}));
    return guess.tokens;
}

std::vector<Token> guess_behind(Session& session, std::span<const Token> text, size_t chunk) {
    while (session.position() + 1 < text.size()) {
        const size_t at = size_t(session.position());
        must(session.feed(text.subspan(at, std::min(chunk, text.size() - 1 - at))));
    }
    return guess(session, text.back());
}

void for_models(const std::function<void(Backend&, const std::string&)>& test) {
    for (const auto& backend : session_test_backends())
        for (const std::string name : kModels) {
            if (!runs_on(*backend, tiny_name(name))) continue;
            INFO(name, " on ", backend->device().name);
            test(*backend, name);
        }
}

}  // namespace

TEST_CASE(
    "mtp: guesses are those of the head's layer as a model for itself, whatever the chunks of a prompt") {
    for_models([](Backend& backend, const std::string& name) {
        const HeadFile file(name);
        const Model model = file.load(backend);
        REQUIRE(model.has_head());
        const std::vector<Token> tokens = golden_tokens();
        const auto text = std::span(tokens).first(12);
        LayerAlone alone(name, backend);
        std::vector<Token> wanted;
        {
            const Model plain = tiny(backend, tiny_name(name));
            Session session = must(Session::create(plain, {64, 16, 1, CacheType::f32}));
            std::pair<std::vector<float>, std::vector<float>> last;
            for (size_t i = 0; i + 1 < text.size(); ++i)
                last = alone.add(alone.left(read_one(session, text[i]).residual), text[i + 1]);
            wanted.push_back(largest(last.first));
            while (wanted.size() < kDrafts) {
                last = alone.add(last.second, wanted.back());
                wanted.push_back(largest(last.first));
            }
        }
        for (const size_t chunk : {11u, 3u, 1u}) {
            Session session = must(Session::create(model, options_of()));
            REQUIRE(session.guesses());
            CHECK(guess_behind(session, text, chunk) == wanted);
            // A guess leaves nothing behind.
            CHECK(guess(session, text.back()) == wanted);
        }
    });
}

namespace {

// A head's plan, run row by row on rows that a test makes up.
class HeadAlone {
public:
    explicit HeadAlone(const Model& model) {
        const Plan plan =
            must(model.head_plan(0, 1, 1, CacheSizing{.context = 64, .types = CacheType::f32}, model));
        caches_ = must(model.backend().make_caches(plan.caches));
        executable_ = must(model.backend().record(must(lower(plan, model.backend(), false)), model.weights(),
                                                  *caches_, Record::replay));
    }
    void run(Token token, std::span<const float> hidden, const TraceSink& sink = {}) {
        const Row row{0, at_++};
        const uint32_t output = 0;
        StepParams params{{&token, 1}, {&row, 1}, {&output, 1}};
        params.input = hidden;
        must(sink ? executable_->run_traced(params, sink) : executable_->run(params));
    }
    std::span<const float> logits() const { return executable_->output(); }
    std::span<const float> hidden() const { return executable_->hidden(); }

private:
    std::unique_ptr<CacheStore> caches_;
    std::unique_ptr<Executable> executable_;
    uint32_t at_ = 0;
};

std::vector<float> random_row(size_t size, uint32_t seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> row(size);
    for (float& v : row) v = normal(random);
    return row;
}

}  // namespace

// With equal streams, each of which the embedding of the layer alone is; and streams that differ up to where
// the layer begins.
TEST_CASE("mtp: a head of streams does what its layer alone does, and each stream has its row") {
    for (const auto& backend : session_test_backends())
        for (const std::string name : {"qwen4exp", "deepseek4-dense"}) {
            if (!runs_on(*backend, name)) continue;
            INFO(name, " on ", backend->device().name);
            const std::vector<Token> tokens = golden_tokens();
            const HeadFile file(name), apart_file(name, HeadForm{.apart = true});
            const Model model = file.load(*backend), apart_model = apart_file.load(*backend);
            LayerAlone alone(name, *backend), apart(name, *backend, 0, true);
            const size_t dim = alone.dim(), streams = alone.streams();
            REQUIRE(streams > 2);
            HeadAlone head(model), apart_head(apart_model);
            for (uint32_t i = 0; i < 9; ++i) {
                CAPTURE(i);
                const std::vector<float> one = random_row(dim, i), wide = random_row(dim * streams, 100 + i);
                std::vector<float> equal;
                for (size_t stream = 0; stream < streams; ++stream)
                    equal.insert(equal.end(), one.begin(), one.end());
                head.run(tokens[i], equal);
                const auto [logits, hidden] = alone.add(one, tokens[i]);
                CHECK(relative_error(head.logits(), logits) < 1e-4);
                CHECK(relative_error(head.hidden(), hidden) < 1e-4);
                std::vector<float> rows, wanted;
                size_t copies = 0;
                apart_head.run(tokens[i], wide, [&](const TraceStep& step) {
                    const bool wide_copy = std::holds_alternative<CopyParts>(step.step->op) &&
                                           step.written[0].size() == dim * streams;
                    if (wide_copy && ++copies == streams) rows = copy(step.written[0]);
                });
                for (size_t stream = 0; stream < streams; ++stream) {
                    const std::vector<float> row =
                        apart.row_of(std::span(wide).subspan(stream * dim, dim), tokens[i], stream);
                    wanted.insert(wanted.end(), row.begin(), row.end());
                }
                REQUIRE(rows.size() == wanted.size());
                CHECK(relative_error(rows, wanted) < 1e-4);
            }
        }
}

// Head k has for each row the one that the head before it left there, and a token that is k further on.
TEST_CASE("mtp: of several heads each guesses one token, with the rows of the head before it") {
    for (const auto& backend : session_test_backends())
        for (const std::string name : {"step35", "llama3", "glm4moe", "deepseek2-v3"}) {
            if (!runs_on(*backend, name)) continue;
            INFO(name, " on ", backend->device().name);
            const HeadFile file(name, HeadForm{.heads = 3});
            const Model model = file.load(*backend);
            REQUIRE(model.heads() == 3);
            const std::vector<Token> tokens = golden_tokens();
            const auto text = std::span(tokens).first(12);
            std::vector<Token> wanted, known(text.begin(), text.end());
            std::vector<std::vector<float>> hidden;
            {
                const LayerAlone ends(name, *backend);
                const Model plain = tiny(*backend, name);
                Session session = must(Session::create(plain, {64, 16, 1, CacheType::f32}));
                for (const Token token : text.first(text.size() - 1))
                    hidden.push_back(ends.left(read_one(session, token).residual));
            }
            for (uint32_t head = 0; head < 3; ++head) {
                LayerAlone alone(name, *backend, head);
                std::vector<float> logits;
                for (size_t i = 0; i < hidden.size(); ++i) {
                    auto [made, left] = alone.add(hidden[i], known[i + 1 + head]);
                    logits = std::move(made);
                    hidden[i] = std::move(left);
                }
                wanted.push_back(largest(logits));
                known.push_back(wanted.back());
            }
            for (const size_t chunk : {11u, 3u, 1u}) {
                Session session = must(Session::create(model, options_of()));
                CHECK(guess_behind(session, text, chunk) == wanted);
                CHECK(guess(session, text.back()) == wanted);
            }
        }
}

namespace {

// A text of any length.
std::vector<Token> long_text(size_t count) {
    std::vector<Token> text;
    for (size_t i = 0; i < count; ++i) text.push_back(Token((i * i * 7 + i * 13 + 5) % 250 + 1));
    return text;
}

std::vector<Token> fresh_guess(const Model& model, const EngineOptions& options,
                               std::span<const Token> text) {
    Session session = must(Session::create(model, options));
    return guess_behind(session, text, 1000);
}

// Those of few kinds, for tests of what no kind of layer has for itself. `heads`: models with several, too.
void for_some(const std::function<void(const Model&, const HeadFile&)>& test, bool heads = false) {
    struct Case {
        const char* name;
        HeadForm form;
    };
    std::vector<Case> cases = {{"llama3", {}}, {"qwen35", {}}, {"deepseek2-v3", {}}};
    if (heads) {
        cases.push_back({"step35", {.heads = 3}});
        cases.push_back({"qwen35", {.heads = 2}});
        cases.push_back({"qwen4exp", {}});
        cases.push_back({"deepseek4-dense", {}});
        cases.push_back({"nemotron-h-moe", {.two_layers = true}});
    }
    for (const auto& backend : session_test_backends())
        for (const auto& [name, form] : cases) {
            if (!runs_on(*backend, name)) continue;
            INFO(name, " with ", form.heads, " on ", backend->device().name);
            const HeadFile file(name, form);
            test(file.load(*backend), file);
        }
}

}  // namespace

TEST_CASE("mtp: rounds of which some tokens are taken back leave the head as a prompt does") {
    for_some(
        [](const Model& model, const HeadFile&) {
            const std::vector<Token> text = long_text(64);
            Session session = must(Session::create(model, options_of()));
            must(session.feed(std::span(text).first(7)));
            for (size_t right = 1; session.position() + kDrafts + 2 < 50; right = right % (kDrafts + 1) + 1) {
                const size_t at = size_t(session.position());
                CAPTURE(at);
                std::vector<Token> round = guess(session, text[at]);
                CHECK(round == fresh_guess(model, options_of(), std::span(text).first(at + 1)));
                round.insert(round.begin(), text[at]);
                for (size_t i = 1; i < std::min(right, round.size()); ++i) round[i] = text[at + i];
                must(session.feed_rows(round, 0));
                const size_t kept = at + std::min(right, round.size());
                CHECK(session.rewind(kept) == kept);
            }
        },
        true);
}

TEST_CASE("mtp: steps without a guess between those with one leave the heads as a prompt does") {
    for_some(
        [](const Model& model, const HeadFile&) {
            const std::vector<Token> text = long_text(64);
            Session session = must(Session::create(model, options_of()));
            must(session.feed(std::span(text).first(5)));
            for (size_t plain = 1; session.position() < 40; plain = plain % 4 + 1) {
                const size_t at = size_t(session.position());
                CAPTURE(at);
                CHECK(guess(session, text[at]) ==
                      fresh_guess(model, options_of(), std::span(text).first(at + 1)));
                // In a step of its kind each, or together; other tokens than the head guessed.
                if (plain % 2 == 0)
                    must(session.feed(std::span(text).subspan(at, plain)));
                else
                    for (size_t i = 0; i < plain; ++i) must(session.feed(std::span(text).subspan(at + i, 1)));
            }
        },
        true);
}

TEST_CASE("mtp: a head reads long texts as they come, and guesses behind a rewind to long before") {
    for_some(
        [](const Model& model, const HeadFile&) {
            EngineOptions options = options_of();
            options.context = 400;
            const std::vector<Token> text = long_text(300);
            Session session = must(Session::create(model, options));
            const std::vector<Token> wanted = fresh_guess(model, options, text);
            for (const size_t chunk : {16u, 5u}) {
                session.rewind(0);
                CHECK(guess_behind(session, text, chunk) == wanted);
            }
            session.rewind(180);  // further back than hidden rows are kept
            CHECK(guess_behind(session, text, 16).size() == wanted.size());
            session.rewind(0);
            CHECK(guess_behind(session, std::span(text).first(100), 16) ==
                  fresh_guess(model, options, std::span(text).first(100)));
            // The token beside the last hidden row was another one.
            guess(session, text[120]);
            CHECK(guess_behind(session, text, 7) == wanted);
        },
        true);
}

TEST_CASE(
    "mtp: a restored session guesses as the saved one, and files go between models with a head and without") {
    const std::string path = temporary("mtp_session");
    for_some([&](const Model& model, const HeadFile& file) {
        const std::vector<Token> text = golden_tokens();
        Session session = must(Session::create(model, options_of()));
        must(session.feed(std::span(text).first(20)));
        must(session.save(path));
        Session again = must(Session::create(model, options_of()));
        must(again.feed(std::span(text).subspan(3, 4)));
        must(again.restore(path));
        const std::vector<Token> next = guess(session, text[20]);
        CHECK(!next.empty());
        CHECK(guess(again, text[20]) == next);
        // With the rows that the head has read, and those that it has not.
        must(again.save(path));
        Session third = must(Session::create(model, options_of())),
                whole = must(Session::create(model, options_of()));
        must(third.restore(path));
        must(third.feed(std::span(text).subspan(20, 1)));
        must(whole.feed(std::span(text).first(20)));
        must(whole.feed(std::span(text).subspan(20, 1)));
        CHECK(guess(third, text[21]) == guess(whole, text[21]));
        const Model plain = must(Model::load(file.path, model.backend(), {64, {}}));
        CHECK_FALSE(plain.has_head());
        Session without = must(Session::create(plain, options_of()));
        CHECK_FALSE(without.guesses());
        must(without.restore(path));
        must(without.feed(std::span(text).subspan(20, 3)));
        must(without.save(path));
        Session other = must(Session::create(model, options_of()));
        must(other.feed(std::span(text).subspan(2, 9)));
        must(other.restore(path));
        CHECK(guess(other, text[23]).empty());  // no hidden row is known
        must(other.feed(std::span(text).subspan(23, 1)));
        CHECK(!guess(other, text[24]).empty());
        must(session.feed(std::span(text).subspan(20, 4)));
        CHECK(relative_error(other.logits(), session.logits()) < 1e-3);
    });
    std::filesystem::remove(path);
}

TEST_CASE("mtp: a restored session of several heads guesses as the saved one, or begins anew with fewer") {
    const std::string path = temporary("mtp_heads_session");
    for (const auto& backend : session_test_backends()) {
        if (!runs_on(*backend, "step35")) continue;
        const HeadFile file("step35", HeadForm{.heads = 3});
        const Model model = file.load(*backend);
        const std::vector<Token> text = golden_tokens();
        Session session = must(Session::create(model, options_of()));
        must(session.feed(std::span(text).first(20)));
        for (size_t end = 20; end < 23;
             ++end) {  // before and behind guesses, and behind a token that was read
            must(session.save(path));
            Session again = must(Session::create(model, options_of()));
            must(again.feed(std::span(text).subspan(3, 4)));
            must(again.restore(path));
            const std::vector<Token> next = guess(session, text[end]);
            CHECK(next.size() == 3);
            CHECK(guess(again, text[end]) == next);
            must(session.save(path));
            must(again.restore(path));
            CHECK(guess(again, text[end]) == next);
            for (Session* each : {&session, &again}) must(each->feed(std::span(text).subspan(end, 1)));
            CHECK(guess(again, text[end + 1]) == guess(session, text[end + 1]));
        }
        EngineOptions one = options_of();
        one.drafts = 1;
        Session fewer = must(Session::create(model, one));
        must(fewer.restore(path));
        CHECK(guess(fewer, text[22]).empty());
        must(fewer.feed(std::span(text).subspan(22, 1)));
        CHECK(!guess(fewer, text[23]).empty());  // one head alone goes on with its guesses
    }
    std::filesystem::remove(path);
}

TEST_CASE("mtp: sequences guess together what each guesses alone, and forks go on from there") {
    for_some([](const Model& model, const HeadFile&) {
        EngineOptions options = options_of();
        options.sequences = 4;
        const auto engine = must(Engine::create(model, options));
        const std::vector<Token> text = golden_tokens();
        const size_t ends[] = {5, 17, 30};
        std::vector<Sequence> sequences;
        std::vector<Guess> guesses;
        for (const size_t end : ends) {
            sequences.push_back(must(engine->open_sequence()));
            const Feed feed{&sequences.back(), std::span(text).first(end)};
            must(engine->feed({&feed, 1}, [](size_t, std::span<const float>) {}));
        }
        for (size_t i = 0; i < 3; ++i) guesses.push_back({&sequences[i], text[ends[i]], 1 + i});
        must(engine->guess(guesses));
        for (size_t i = 0; i < 3; ++i) {
            std::vector<Token> wanted = fresh_guess(model, options_of(), std::span(text).first(ends[i] + 1));
            wanted.resize(std::min(wanted.size(), 1 + i));
            CHECK(guesses[i].tokens == wanted);
        }
        sequences[0] = must(sequences[2].fork());
        for (size_t i : {0u, 2u}) {
            const Feed feed{&sequences[i], std::span(text).subspan(30 + i, 2)};
            must(engine->feed({&feed, 1}, [](size_t, std::span<const float>) {}));
        }
        guesses = {{&sequences[0], text[32], kDrafts}, {&sequences[2], text[34], kDrafts}};
        must(engine->guess(guesses));
        CHECK(guesses[0].tokens == fresh_guess(model, options_of(), std::span(text).first(33)));
        CHECK(!guesses[1].tokens.empty());
    });
}

TEST_CASE("mtp: lists by layer may lack the layers that predict") {
    for (const auto& backend : session_test_backends())
        for (const char* name : {"step35", "exaone4", "nemotron-h-moe", "qwen4exp"}) {
            if (!runs_on(*backend, name)) continue;
            INFO(name, " on ", backend->device().name);
            const HeadFile full(name), shorter(name, HeadForm{.short_lists = true});
            const Model model = full.load(*backend), other = shorter.load(*backend);
            const std::vector<Token> text = long_text(20);
            CHECK(fresh_guess(other, options_of(), text) == fresh_guess(model, options_of(), text));
        }
}

namespace {

// The model's steps up to the middle on one backend, the others on the other.
std::vector<Placement> halves(const Model& model, const EngineOptions& options, Backend& first,
                              Backend& last) {
    const Plan plan = divided(must(placed_plan(model, options)));
    const std::vector<Block> all = blocks(plan);
    const size_t middle = all[all.size() / 2].first;
    return {{&first, 0, middle}, {&last, middle, plan.steps.size()}};
}

}  // namespace

TEST_CASE("mtp: heads beside the last part of a model in two guess as those of a whole one") {
    const auto cpu = redline::test::cpu(1);
    struct Case {
        const char* name;
        HeadForm form;
    };
    const Case cases[] = {{"qwen35", {}},       {"step35", {.heads = 3}}, {"llama3", {}},
                          {"deepseek2-v3", {}}, {"qwen4exp", {}},         {"glm4", {}}};
    const std::vector<Token> text = long_text(40);
    for (const auto& backend : session_test_backends())
        // A GPU's driver compiles for each pair of halves.
        for (const auto& [name, form] : std::span(cases).first(backend->device().threads > 0 ? 6 : 2)) {
            if (!runs_on(*backend, name)) continue;
            INFO(name, " on ", backend->device().name);
            const HeadFile file(name, form);
            const auto wanted = [&](const Model& model, size_t end) {
                return fresh_guess(model, options_of(), std::span(text).first(end));
            };
            const Model whole = file.load(*backend);
            const Model parts = must(Model::inspect(file.path, 64, ReadHead::required));
            for (const bool cpu_last : {false, true}) {
                CAPTURE(cpu_last);
                EngineOptions options = options_of();
                options.placements = cpu_last ? halves(parts, options, *backend, *cpu)
                                              : halves(parts, options, *cpu, *backend);
                Session session = must(Session::create(parts, options));
                REQUIRE(session.guesses());
                CHECK(guess_behind(session, std::span(text).first(20), 7) == wanted(whole, 20));
                CHECK(fresh_guess(parts, options, text) == wanted(whole, text.size()));  // in flight
                must(session.feed_rows(std::span(text).subspan(19, 4), 0));
                session.rewind(21);
                CHECK(guess(session, text[21]) == wanted(whole, 22));
                uint64_t all = 0;
                for (const MemoryNeed& need : must(memory_needs(parts, options))) all += need.total();
                options.drafts = 0;
                for (const MemoryNeed& need : must(memory_needs(parts, options))) all -= need.total();
                CHECK(all > 0);
                CHECK(all < 1u << 30);
            }
        }
}

TEST_CASE("mtp: a head of a second file guesses for a model in two") {
    const auto first = redline::test::cpu(1), last = redline::test::cpu(1);
    const HeadFile file("llama3"), second("llama3", true);
    const Model head = second.load(*last);
    const Model whole = file.load(*last), parts = must(Model::inspect(golden("models/llama3.gguf"), 64));
    const std::vector<Token> text = long_text(40);
    EngineOptions options = options_of();
    options.head = &head;
    options.placements = halves(parts, options, *first, *last);
    CHECK(fresh_guess(parts, options, std::span(text).first(20)) ==
          fresh_guess(whole, options_of(), std::span(text).first(20)));
    const std::vector<MemoryNeed> with = must(memory_needs(parts, options));
    // Here so many chunks of a prompt fly that the head reads in between.
    const std::vector<Token> longer = long_text(300);
    EngineOptions large = options_of();
    large.context = 400;
    const std::vector<Token> wanted = fresh_guess(whole, large, longer);
    large.head = &head;
    large.placements = options.placements;
    CHECK(fresh_guess(parts, large, longer) == wanted);
    options.head = nullptr;
    const std::vector<MemoryNeed> without = must(memory_needs(parts, options));
    CHECK(with[0].total() == without[0].total());
    CHECK(with[1].weights > without[1].weights);
    CHECK(with[1].cache > without[1].cache);
}

TEST_CASE("mtp: a head in a second file guesses as one in the model's file, and both are planned for") {
    for (const auto& backend : session_test_backends()) {
        const HeadFile file("llama3"), second("llama3", true);
        const Model model = file.load(*backend), head = second.load(*backend),
                    plain = tiny(*backend, "llama3");
        CHECK(head.is_head());
        CHECK_FALSE(model.is_head());
        const std::vector<Token> tokens = golden_tokens();
        EngineOptions options = options_of();
        const MemoryNeed with = must(memory_need(model, *backend, options));
        options.head = &head;
        const MemoryNeed both = must(memory_need(plain, *backend, options));
        options.head = nullptr;
        const MemoryNeed without = must(memory_need(plain, *backend, options));
        CHECK(with.weights > without.weights);
        CHECK(with.cache > without.cache);
        CHECK(both.weights > with.weights);  // the embedding and the output twice
        CHECK(both.cache == with.cache);
        options.head = &head;
        CHECK(fresh_guess(plain, options, std::span(tokens).first(20)) ==
              fresh_guess(model, options_of(), std::span(tokens).first(20)));
    }
}

TEST_CASE(
    "mtp: files without a head, with nothing but one, and of architectures that cannot run one say so") {
    const auto message = [](const Result<Model>& model) { return model ? "" : model.error().message; };
    const std::string plain = golden("models/llama3.gguf");
    CHECK(message(Model::inspect(plain, 64, ReadHead::required)).find("this file has no MTP head") !=
          std::string::npos);
    CHECK_FALSE(must(Model::inspect(plain, 64, ReadHead::if_any)).has_head());
    CHECK_FALSE(must(Model::inspect(plain, 64)).offers_head());
    const HeadFile with("llama3");
    const Model unread = must(Model::inspect(with.path, 64));
    CHECK(unread.offers_head());
    CHECK_FALSE(unread.has_head());
    CHECK(unread.notes().empty());
    const HeadFile alone("llama3", true);
    CHECK(message(Model::inspect(alone.path)).find("holds an MTP head alone, which guesses for a model") !=
          std::string::npos);
    const std::string path = temporary("mtp_refused.gguf");
    const auto refused = [&](const std::string& name, const std::string& arch, const std::string& why) {
        CAPTURE(name);
        save_with_key(must(Gguf::open(golden("models/" + name + ".gguf"))), arch + ".nextn_predict_layers", 1,
                      path);
        CHECK(message(Model::inspect(path, 64, ReadHead::required)).find(why) != std::string::npos);
        for (const ReadHead head : {ReadHead::no, ReadHead::if_any}) {
            const Model left = must(Model::inspect(path, 64, head));
            CHECK_FALSE(left.offers_head());
            CHECK_FALSE(left.has_head());
            REQUIRE(left.notes().size() == 1);
            CHECK(left.notes()[0] == "the last layer, which predicts further tokens, is left out: " + why);
        }
    };
    refused("granitehybrid", "granitehybrid", "redline cannot run MTP heads of architecture granitehybrid");
    // A layer that is not there, as its tensors are in another file.
    const HeadFile head("llama3");
    save_changed(
        must(Gguf::open(head.path)),
        [](std::vector<TensorData>& all) {
            std::erase_if(all, [](const TensorData& one) { return one.tensor.name.starts_with("blk.2."); });
        },
        {}, path);
    CHECK(message(Model::inspect(path, 64, ReadHead::required)).find("this file has no MTP head") !=
          std::string::npos);
    CHECK_FALSE(must(Model::inspect(path, 64, ReadHead::if_any)).has_head());
    CHECK(must(Model::inspect(path, 64, ReadHead::if_any)).notes().empty());
    // A layer like the others is no head.
    refused("llama3", "llama", "tensor blk.1.nextn.eh_proj.weight is missing");
    std::filesystem::remove(path);
}
