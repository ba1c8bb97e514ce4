// A model over several places of one kind: its results are those of one device, bit for bit, also where steps
// are in flight, and each call that fails ends a session without leaving anything behind.
#include "host/split.h"
#include "support/backends.h"
#include "support/fails_in_turn.h"
#include "support/models.h"

using namespace redline;
using namespace redline::test;

namespace {

constexpr size_t kMostPlaces = 3;
constexpr uint32_t kChunk = 8;
constexpr uint64_t kRoom = 128;

struct Kind {
    std::string name;
    Backends devices;
};

// Three devices of each kind that is here: the same one, opened three times.
std::vector<Kind>& kinds() {
    static std::vector<Kind> all = [] {
        std::vector<Kind> made;
        for (const std::string& name : backend_names()) {
            Kind kind{name, {}};
            while (kind.devices.size() < kMostPlaces) {
                auto one = open_wanted(name, {.threads = 2});
                if (!one) break;
                kind.devices.push_back(std::move(one));
            }
            if (kind.devices.size() == kMostPlaces) made.push_back(std::move(kind));
        }
        at_end([] { kinds().clear(); });
        return made;
    }();
    return all;
}

EngineOptions several(uint32_t sequences = 1) {
    EngineOptions options{kRoom, kChunk};
    options.cache = CacheType::f32;
    options.sequences = sequences;
    return options;
}

Model model_of(const std::string& name) {
    return must(Model::inspect(golden("models/" + name + ".gguf"), kRoom));
}

std::vector<Token> long_text(size_t count) {
    const std::vector<Token> known = golden_tokens();
    std::vector<Token> tokens;
    for (size_t i = 0; i < count; ++i) tokens.push_back(known[(i * 7 + i / known.size()) % known.size()]);
    return tokens;
}

SplitPlaces first_of(const Kind& kind, size_t places) {
    SplitPlaces where;
    for (size_t i = 0; i < places; ++i) where.devices.push_back(kind.devices[i].get());
    return where;
}

// Layers in equal shares on so many places.
EngineOptions over(const Model& model, const SplitPlaces& where, EngineOptions options) {
    SplitWish wish;
    wish.shares.assign(where.devices.size(), 1.0);
    wish.exact = true;
    options.placements = must(split_model(model, options, where, wish)).placements;
    return options;
}

// The logits behind a prompt of several chunks, after single tokens, after a rewind, and behind another
// prompt.
std::vector<std::vector<float>> conversation(Session session) {
    const std::vector<Token> text = long_text(90);
    const std::span<const Token> all(text);
    std::vector<std::vector<float>> logits;
    must(session.feed(all.first(45)));
    logits.push_back(copy(session.logits()));
    for (size_t i = 45; i < 50; ++i) {
        must(session.feed(all.subspan(i, 1)));
        logits.push_back(copy(session.logits()));
    }
    const uint64_t left = session.rewind(45);
    CHECK(left <= 45);
    must(session.feed(all.subspan(left, 80 - left)));
    logits.push_back(copy(session.logits()));
    // The last chunk has one token.
    must(session.feed(all.subspan(80, 9)));
    logits.push_back(copy(session.logits()));
    return logits;
}

std::vector<std::vector<float>> on_one(const std::string& name, Backend& device) {
    const Model model = must(Model::load(golden("models/" + name + ".gguf"), device, {kRoom, {}}));
    return conversation(must(Session::create(model, several())));
}

}  // namespace

TEST_CASE("places: texts over two and three devices have the logits of one, bit for bit") {
    for (const Kind& kind : kinds())
        for (const std::string name :
             {"llama3", "gemma3", "qwen3moe", "qwen35", "lfm2", "mamba2", "deepseek2-v3"}) {
            const auto want = on_one(name, *kind.devices[0]);
            const Model model = model_of(name);
            for (size_t places = 1; places <= kMostPlaces; ++places) {
                INFO(name, " over ", places, " of ", kind.name);
                const SplitPlaces where = first_of(kind, places);
                CHECK(conversation(must(Session::create(model, over(model, where, several())))) == want);
            }
        }
}

TEST_CASE("places: sequences in pages have the logits of one device, and forks of them, too") {
    for (const Kind& kind : kinds())
        for (const std::string name : {"llama3", "qwen35"}) {
            INFO(name, " over 2 of ", kind.name);
            const std::vector<Token> text = long_text(70);
            const auto read = [&](Engine& engine) {
                Sequence first = must(engine.open_sequence()), second = must(engine.open_sequence());
                std::vector<std::vector<float>> logits(4);
                const std::span<const Token> all(text);
                const std::vector<Feed> feeds = {{&first, all.first(60)}, {&second, all.subspan(5, 30)}};
                must(engine.feed(feeds, [&](size_t i, auto last) { logits[i] = copy(last); }));
                Sequence other = must(first.fork());
                const std::vector<Feed> next = {{&other, all.subspan(60, 10)},
                                                {&second, all.subspan(35, 20)}};
                must(engine.feed(next, [&](size_t i, auto last) { logits[2 + i] = copy(last); }));
                return logits;
            };
            EngineOptions options = several(2);
            options.kept = 1;
            options.pages = 6;
            const Model whole =
                must(Model::load(golden("models/" + name + ".gguf"), *kind.devices[0], {kRoom, {}}));
            const auto want = read(*must(Engine::create(whole, options)));
            const Model model = model_of(name);
            CHECK(read(*must(Engine::create(model, over(model, first_of(kind, 2), options)))) == want);
        }
}

TEST_CASE("places: a prompt that is cancelled keeps whole chunks, and goes on from there") {
    for (const Kind& kind : kinds())
        for (const std::string name : {"llama3", "qwen35"}) {
            INFO(name, " over 3 of ", kind.name);
            const std::vector<Token> text = long_text(80);
            const Model model = model_of(name);
            const EngineOptions options = over(model, first_of(kind, 3), several());
            Session whole = must(Session::create(model, options));
            must(whole.feed(text));
            Session session = must(Session::create(model, options));
            std::atomic<bool> cancel{true};
            const Status stopped = session.feed(text, &cancel);
            REQUIRE_FALSE(stopped.ok());
            CHECK(stopped.error().message == "interrupted");
            CHECK(session.position() % kChunk == 0);
            cancel = false;
            must(session.feed(std::span(text).subspan(session.position()), &cancel));
            CHECK(std::ranges::equal(session.logits(), whole.logits()));
        }
}

TEST_CASE("places: any call that fails on any of three devices is one error, and frees everything") {
    for (const Kind& kind : kinds())
        for (const std::string name : {"llama3", "qwen35"})
            for (size_t which = 0; which < kMostPlaces; ++which) {
                INFO(name, " of ", kind.name, ", device ", which);
                const std::vector<Token> text = long_text(60);
                const Model model = model_of(name);
                Calls calls;
                FailingDevice failing(*kind.devices[which], calls);
                SplitPlaces where = first_of(kind, kMostPlaces);
                const EngineOptions plain = over(model, where, several());
                where.devices[which] = &failing;
                const EngineOptions options = over(model, where, several());
                fails_in_turn(model, plain, options, calls, *kind.devices[which], text, kChunk);
            }
}

TEST_CASE("places: layers go by room where the shares ask for more, and to the CPU where there is none") {
    const Model model = model_of("llama3");
    EngineOptions options = several();
    const auto cpu = must(open_backend("cpu", {.threads = 1})),
               wide = must(open_backend("cpu", {.threads = 1}));
    const auto whole = [&](std::vector<Backend*> devices) {
        return must(split_model(model, options, {nullptr, std::move(devices)}, {}));
    };
    const uint64_t all = whole({wide.get()}).needs[0].total();
    SplitWish halves;
    halves.shares = {1.0, 1.0};
    halves.exact = true;
    const Split even = must(split_model(model, options, {nullptr, {cpu.get(), wide.get()}}, halves));
    const uint64_t half = std::max(even.needs[0].total(), even.needs[1].total());
    const auto open = [](uint64_t memory) {
        return must(open_backend("cpu", {.threads = 1, .memory = memory}));
    };
    // Both hold all: halves. The first has little: the other has more.
    const auto roomy = open(all), roomy_too = open(all), small = open(half);
    CHECK(whole({roomy.get(), roomy_too.get()}).counts.by_device == std::vector<uint32_t>{1, 1});
    SplitWish first_alone;
    first_alone.shares = {1.0, 0.001};
    const SplitPlaces where{cpu.get(), {small.get(), roomy.get()}};
    const Split split = must(split_model(model, options, where, first_alone));
    CHECK(fits(split));
    CHECK(split.counts.by_device == std::vector<uint32_t>{1, 1});
    REQUIRE(split.crossings.size() == 1);
    CHECK(split.crossings[0].bytes == uint64_t(model.config().dim) * 4);
    // Exact shares are kept, whatever there is room for.
    first_alone.exact = true;
    CHECK(must(split_model(model, options, where, first_alone)).counts.by_device ==
          std::vector<uint32_t>{2, 0});
    // Two that have no room for all of it leave the first layers to the CPU.
    const auto tiny = open(1);
    const SplitPlaces tight{cpu.get(), {tiny.get(), small.get()}};
    const Split rest = must(fitting_split(model, options, tight, {}, Yield::layers));
    CHECK(fits(rest));
    CHECK(rest.counts.layers < model.config().layers);
    CHECK(rest.backends[0] == cpu.get());
}
