// Sessions: chunking, replay, cancelling, shifting, and the cache in a file.
#include "support/backends.h"
#include "support/large_bias.h"
#include "support/material.h"
#include "support/models.h"

#include "reference/reference.h"

#include <unistd.h>
#include <cstring>
#include <fstream>
#include <optional>
#include <random>
#include <thread>

using namespace redline;
using namespace redline::test;

namespace {

Backends& session_backends() {
    static Backends backends = [] {
        at_end([] { session_backends().clear(); });
        return session_test_backends();
    }();
    return backends;
}

}  // namespace

TEST_CASE("session: a prompt in chunks of any size gives the logits of one chunk, and of token by token") {
    for (const auto& backend : session_backends()) {
        INFO("on ", backend->device().name);
        const std::vector<Token> tokens = golden_tokens();
        for (const std::string& name : tiny_models(*backend)) {
            const Model model = tiny(*backend, name);
            // One of 64 takes minutes step by step, and has the layers of another.
            if (model.config().layers > 32) continue;
            for (const CacheType type : {CacheType::f32, CacheType::f16}) {
                SessionOptions options{64, 64, 64, type};
                const double bound = chunk_bound(model, options, tokens);
                const std::vector<float> whole = all_logits(model, tokens, options);
                for (const uint32_t batch : {1u, 2u, 5u, 16u, 36u}) {
                    options.batch = options.outputs = batch;
                    INFO(name, " in chunks of ", batch, " with a cache of ", cache_type_name(type));
                    CHECK(relative_error(all_logits(model, tokens, options), whole) < bound);
                }
            }
        }
    }
}

TEST_CASE(
    "session: the same tokens give the same logits bit for bit, run after run, whatever the threads do") {
    for (const auto& backend : session_backends()) {
        INFO("on ", backend->device().name);
        const Model model = tiny(*backend, "llama3");
        const std::vector<Token> tokens = golden_tokens();
        const std::vector<float> first = all_logits(model, tokens, {64, 16, 16});
        for (int i = 0; i < 20; ++i) CHECK(all_logits(model, tokens, {64, 16, 16}) == first);
    }
}

TEST_CASE("session: threads with a session each use one backend in turns, and read what one alone reads") {
    for (const auto& backend : session_backends()) {
        INFO("on ", backend->device().name);
        const Model model = tiny(*backend, "llama3");
        const std::vector<Token> tokens = golden_tokens();
        // The numbers of rows of the steps differ, so that kernels are recorded while others run.
        const auto read = [&](size_t first) {
            Session session = must(Session::create(model, {64, 16}));
            std::vector<float> all;
            for (size_t at = 0, rows = first; at < tokens.size(); at += rows, rows = 1 + (at + first) % 9) {
                const auto chunk = std::span(tokens).subspan(at, std::min(rows, tokens.size() - at));
                if (!session.feed(chunk)) return std::vector<float>();
                all.insert(all.end(), session.logits().begin(), session.logits().end());
            }
            return all;
        };
        constexpr size_t kThreads = 4;
        std::vector<float> alone[kThreads], together[kThreads];
        for (size_t i = 0; i < kThreads; ++i) alone[i] = read(1 + i);
        {
            std::vector<std::jthread> threads;
            for (size_t i = 0; i < kThreads; ++i) threads.emplace_back([&, i] { together[i] = read(1 + i); });
        }
        for (size_t i = 0; i < kThreads; ++i) {
            CHECK_FALSE(alone[i].empty());
            CHECK(together[i] == alone[i]);
        }
    }
}

// On the CPU both are the same walk over the steps.
TEST_CASE("session: replayed steps give the logits of steps that are launched anew, bit for bit") {
    for (const auto& backend : session_backends()) {
        INFO("on ", backend->device().name, ", ", backend->device().detail);
        for (const std::string name : {"llama3", "qwen3moe"}) {
            const Model model = tiny(*backend, name);
            SessionOptions options{48, 8, 8};
            Session replayed = must(Session::create(model, options));
            options.record = Record::direct;
            Session direct = must(Session::create(model, options));
            std::mt19937 random(6);
            for (int step = 0; step < 40; ++step) {
                CAPTURE(step);
                // Mostly one row, as text is made; now and then several, and a context that begins again.
                std::vector<Token> tokens(step % 5 == 0 ? 1 + random() % 8 : 1);
                for (Token& token : tokens) token = Token(random() % model.usable_vocab());
                for (Session* session : {&replayed, &direct}) {
                    if (session->position() + tokens.size() > session->context()) session->rewind(3);
                    must(session->feed(tokens));
                }
                CHECK(copy(replayed.logits()) == copy(direct.logits()));
            }
        }
    }
}

TEST_CASE("session: thousands of single steps with truncation leave no trace in the logits") {
    for (const auto& backend : session_backends()) {
        INFO("on ", backend->device().name);
        const Model model = tiny(*backend, "qwen3");
        Session session = must(Session::create(model, {64}));
        const std::vector<Token> tokens = golden_tokens();
        must(session.feed(tokens));
        const std::vector<float> want = copy(session.logits());
        std::mt19937 random(5);
        for (int i = 0; i < 2000; ++i) {
            if (session.position() == session.context()) session.rewind(random() % 30);
            const Token token = Token(random() % model.usable_vocab());
            must(session.feed(std::span(&token, 1)));
        }
        session.rewind(0);
        must(session.feed(tokens));
        CHECK(copy(session.logits()) == want);
    }
}

TEST_CASE("session: the best logits that a device picks are the best of all") {
    for (const auto& backend : session_backends()) {
        INFO("on ", backend->device().name);
        const Model model = tiny(*backend, "llama3");
        Session whole = must(Session::create(model, {64})), picked = must(Session::create(model, {64}));
        for (const Token token : golden_tokens()) {
            must(whole.feed(std::span(&token, 1)));
            must(picked.feed_for_best(token, 40));
            if (picked.best().empty()) {
                CHECK(copy(picked.logits()) == copy(whole.logits()));
                continue;
            }
            CHECK(picked.logits().empty());
            std::vector<Scored> all;
            for (size_t id = 0; id < model.usable_vocab(); ++id)
                all.push_back({whole.logits()[id], int32_t(id)});
            std::sort(all.begin(), all.end(), comes_first);
            REQUIRE(picked.best().size() >= std::min<size_t>(40, all.size()));
            for (size_t i = 0; i < picked.best().size(); ++i) {
                CHECK(picked.best()[i].id == all[i].id);
                CHECK(picked.best()[i].logit == all[i].logit);
            }
        }
        // More than any device picks: all of them.
        must(picked.feed_for_best(golden_tokens()[0], 1u << 20));
        CHECK(picked.best().empty());
        CHECK(picked.logits().size() >= model.usable_vocab());
    }
}

TEST_CASE("session: a q8_0 cache stays close to an f16 one, and refuses heads that it cannot hold") {
    for (const auto& backend : session_backends()) {
        INFO("on ", backend->device().name);
        const std::vector<Token> tokens = golden_tokens();
        const Model model = tiny(*backend, "qwen3");
        SessionOptions q8{64, 16, 16};
        q8.cache = CacheType::q8_0;
        const double off =
            relative_error(all_logits(model, tokens, q8), all_logits(model, tokens, {64, 16, 16}));
        CHECK(off > 0.0);
        CHECK(off < 0.1);
        const Model narrow = tiny(*backend, "llama-tied");
        const Result<Session> refused = Session::create(narrow, q8);
        REQUIRE_FALSE(refused.ok());
        CHECK(refused.error().message.find("use f16") != std::string::npos);
        q8.cache = {CacheType::f16, CacheType::q5_0};
        CHECK_FALSE(Session::create(narrow, q8).ok());
        // Its values are parts of its keys.
        const Model latent = tiny(*backend, "deepseek2-lite");
        q8.cache = {CacheType::q8_0, CacheType::f16};
        const Result<Session> unlike = Session::create(latent, q8);
        REQUIRE_FALSE(unlike.ok());
        CHECK(unlike.error().message.find("q8_0 and f16; use one for both") != std::string::npos);
        // On the CPU alone a latent may be of any type.
        q8.cache = CacheType::bf16;
        const Result<Session> other = Session::create(latent, q8);
        CHECK(other.ok() == (backend->device().threads > 0));
        if (!other)
            CHECK(other.error().message.ends_with(
                " but with f32, f16, q8_0, alike for keys and values; the device cpu runs it"));
    }
}

static Session with_cache(const Model& model, SessionOptions options, CacheTypes types) {
    options.cache = types;
    return must(Session::create(model, options));
}

TEST_CASE("session: keys and values of other types stay close to f16, whether they are alike or not") {
    // Steps are 254 / 31 and 254 / 15 times those of q8_0, which is off by less than 0.1.
    constexpr std::pair<CacheTypes, double> kMost[] = {{CacheType::bf16, 0.1},
                                                       {CacheType::q5_1, 0.82},
                                                       {CacheType::q4_0, 1.7},
                                                       {{CacheType::f32, CacheType::q8_0}, 0.1},
                                                       {{CacheType::q8_0, CacheType::iq4_nl}, 1.7}};
    for (const auto& backend : session_backends()) {
        const std::vector<Token> tokens = golden_tokens();
        const Model model = tiny(*backend, "qwen3");
        const std::vector<float> plain = all_logits(model, tokens, {64, 16, 16});
        for (const auto& [types, most] : kMost) {
            INFO(cache_types_name(types), " on ", backend->device().name);
            SessionOptions options{64, 16, 16};
            options.cache = types;
            const double off = relative_error(all_logits(model, tokens, options), plain);
            CHECK(off > 0.0);
            CHECK(off < most);
        }
    }
}

TEST_CASE("session: caches that are rotated are rewound, saved and restored, and not taken for others") {
    for (const auto& backend : session_backends()) {
        INFO("on ", backend->device().name);
        const Model model = must(Model::load(demo(), *backend, {64, {}}));
        const std::vector<Token> tokens = model.tokenizer().encode("A cache of keys and values, of which");
        const std::string path = temporary("rotated_cache");
        const CacheTypes types = {CacheType::q4_0, CacheType::q5_1};
        Session session = with_cache(model, {64, 64}, types);
        // In the same steps each time: where kernels of another number of rows round keys in another way,
        // codes of four bits are others.
        const auto first = std::span(tokens).first(tokens.size() / 2),
                   rest = std::span(tokens).subspan(first.size());
        must(session.feed(first));
        must(session.feed(rest));
        const std::vector<float> whole = copy(session.logits());
        session.rewind(first.size());
        must(session.save(path));
        must(session.feed(rest));
        const std::vector<float> again = copy(session.logits());
        CHECK(again == whole);
        Session other = with_cache(model, {48, 48}, types);
        must(other.restore(path));
        must(other.feed(rest));
        CHECK(copy(other.logits()) == again);
        Session unlike = with_cache(model, {64, 64}, {CacheType::q4_0, CacheType::q5_1, false});
        const Status refused = unlike.restore(path);
        REQUIRE_FALSE(refused.ok());
        CHECK(refused.error().message.find("holds a q4_0/q5_1 rotated cache, not q4_0/q5_1") !=
              std::string::npos);
        std::filesystem::remove(path);
    }
}

TEST_CASE("session: layers with large biases of keys cache them as q8_0, rotated or not, and are saved so") {
    const std::string all_path = temporary("large_biases.gguf"), one_path = temporary("large_bias.gguf"),
                      path = temporary("large_bias");
    save_large_bias(all_path, 354.0f, 0);
    save_large_bias(one_path, 354.0f);
    const std::vector<Token> tokens = golden_tokens();
    const auto first = std::span(tokens).first(8), rest = std::span(tokens).subspan(8);
    for (const auto& backend : session_backends()) {
        INFO("on ", backend->device().name);
        const Model all = must(Model::load(all_path, *backend, {64, {}}));
        SessionOptions few{64, 16, 16}, wide{64, 16, 16};
        few.cache = {CacheType::q4_0, CacheType::q5_1, false};
        wide.cache = {CacheType::q8_0, CacheType::q5_1, false};
        CHECK(all_logits(all, tokens, few) == all_logits(all, tokens, wide));
        few.cache.rotate = true;
        const Model one = must(Model::load(one_path, *backend, {64, {}}));
        Session session = with_cache(one, {64, 64}, few.cache), other = with_cache(one, {64, 64}, few.cache);
        must(session.feed(first));
        must(session.save(path));
        must(session.feed(rest));
        must(other.restore(path));
        must(other.feed(rest));
        CHECK(copy(other.logits()) == copy(session.logits()));
    }
    for (const std::string& each : {all_path, one_path, path}) std::filesystem::remove(each);
}

TEST_CASE("session: files of caches whose types are alike have the numbers of before they could differ") {
    if (session_backends().empty()) return;
    const auto& backend = session_backends().front();
    const Model model = tiny(*backend, "qwen3");
    const std::string path = temporary("numbered_cache");
    const std::vector<Token> tokens = golden_tokens();
    for (const auto& [type, number] :
         {std::pair(CacheType::f16, 0u), {CacheType::q8_0, 1u}, {CacheType::f32, 2u}}) {
        Session session = with_cache(model, {64, 8}, type);
        must(session.feed(tokens));
        must(session.save(path));
        const std::string bytes = must(read_text_file(path));
        uint32_t stored = 0;
        std::memcpy(&stored, bytes.data() + 40 + 8, sizeof stored);
        CHECK(stored == number);
    }
    std::filesystem::remove(path);
}

TEST_CASE("session: more tokens than the context has room for are refused, and nothing is read") {
    for (const auto& backend : session_backends()) {
        INFO("on ", backend->device().name);
        const Model model = tiny(*backend, "qwen2");
        Session session = must(Session::create(model, {8}));
        const std::vector<Token> nine(9, 5);
        CHECK_FALSE(session.feed(nine).ok());
        CHECK(session.position() == 0);
        must(session.feed(std::span(nine).first(8)));
        CHECK_FALSE(session.feed(std::span(nine).first(1)).ok());
        CHECK(session.position() == 8);
    }
}

TEST_CASE("session: token ids outside the vocabulary, no tokens and a context of 0 are errors") {
    for (const auto& backend : session_backends()) {
        INFO("on ", backend->device().name);
        const Model model = tiny(*backend, "qwen2");
        Session session = must(Session::create(model, {8}));
        CHECK_FALSE(session.feed(std::vector<Token>{-1}).ok());
        CHECK_FALSE(session.feed(std::vector<Token>{100000}).ok());
        CHECK_FALSE(session.feed(std::vector<Token>{}).ok());
        CHECK_FALSE(Session::create(model, {0}).ok());
    }
}

TEST_CASE("session: a context that cannot fit is refused with the numbers and a context that would") {
    for (const auto& backend : session_backends()) {
        INFO("on ", backend->device().name);
        const Model model = tiny(*backend, "llama3");
        const Result<Session> session = Session::create(model, {uint64_t(1) << 40});
        REQUIRE_FALSE(session.ok());
        CHECK(session.error().message.find("cache") != std::string::npos);
        CHECK(session.error().message.find("a context of") != std::string::npos);
    }
}

TEST_CASE("session: cancelling ends a step early and the session goes on from where it was") {
    for (const auto& backend : session_backends()) {
        INFO("on ", backend->device().name);
        const Model model = tiny(*backend, "llama3");
        const std::vector<Token> tokens = golden_tokens();
        Session session = must(Session::create(model, {64}));
        std::atomic<bool> cancel{true};
        CHECK_FALSE(session.feed(tokens, &cancel).ok());
        CHECK(session.position() == 0);
        cancel = false;
        must(session.feed(tokens, &cancel));
        Session fresh = must(Session::create(model, {64}));
        must(fresh.feed(tokens));
        CHECK(copy(session.logits()) == copy(fresh.logits()));
    }
}

TEST_CASE("session: a shift gives what a conversation without the forgotten tokens gives") {
    for (const auto& backend : session_backends()) {
        INFO("on ", backend->device().name);
        const Model model = tiny(*backend, "mixtral");
        const std::vector<Token> tokens = golden_tokens();
        // Kept tokens first, then those that are read again: the same steps as in a fresh session.
        Session session = must(Session::create(model, {64}));
        must(session.feed(std::span(tokens).first(4)));
        must(session.feed(std::span(tokens).subspan(4)));
        must(session.shift(4, 12));
        std::vector<Token> left(tokens.begin(), tokens.begin() + 4);
        left.insert(left.end(), tokens.begin() + 16, tokens.end());
        CHECK(session.tokens() == left);
        Session fresh = must(Session::create(model, {64}));
        must(fresh.feed(std::span(left).first(4)));
        must(fresh.feed(std::span(left).subspan(4)));
        CHECK(copy(session.logits()) == copy(fresh.logits()));
    }
}

TEST_CASE("session: a saved cache restores to the same logits, in both cache types") {
    for (const auto& backend : session_backends()) {
        INFO("on ", backend->device().name);
        const Model model = tiny(*backend, "qwen3");
        const std::vector<Token> tokens = golden_tokens();
        const std::string path = temporary("cache");
        for (const CacheType type : {CacheType::f16, CacheType::q8_0, CacheType::f32}) {
            SessionOptions options{64};
            options.cache = type;
            Session session = must(Session::create(model, options));
            must(session.feed(std::span(tokens).first(30)));
            must(session.save(path));
            must(session.feed(std::span(tokens).subspan(30)));
            options.context = 48;  // another capacity is no obstacle
            Session other = must(Session::create(model, options));
            must(other.restore(path));
            CHECK(other.position() == 30);
            must(other.feed(std::span(tokens).subspan(30)));
            CHECK(copy(other.logits()) == copy(session.logits()));
        }
        std::filesystem::remove(path);
    }
}

TEST_CASE(
    "session: a cache file that is damaged, foreign, too long or of another type is refused and harms "
    "nothing") {
    for (const auto& backend : session_backends()) {
        INFO("on ", backend->device().name);
        const Model model = tiny(*backend, "qwen3"), other_model = tiny(*backend, "qwen2");
        const std::vector<Token> tokens = golden_tokens();
        const std::string path = temporary("bad_cache");
        Session session = must(Session::create(model, {64}));
        must(session.feed(tokens));
        must(session.save(path));
        const std::string sound = must(read_text_file(path));
        Session target = must(Session::create(model, {64}));
        must(target.feed(std::span(tokens).first(3)));
        const auto refuse = [&](const std::string& bytes) {
            std::ofstream(path, std::ios::binary) << bytes;
            CHECK_FALSE(target.restore(path).ok());
            CHECK(target.position() == 3);
        };
        for (const size_t size :
             {size_t(0), size_t(7), size_t(39), size_t(40), sound.size() / 2, sound.size() - 1})
            refuse(sound.substr(0, size));
        refuse(sound + "x");
        for (size_t at = 0; at < sound.size(); at += 97) {
            std::string broken = sound;
            broken[at] = char(broken[at] ^ 0x10);
            refuse(broken);
        }
        std::ofstream(path, std::ios::binary) << sound;
        Session foreign = must(Session::create(other_model, {64}));
        CHECK_FALSE(foreign.restore(path).ok());
        Session small = must(Session::create(model, {16}));
        CHECK_FALSE(small.restore(path).ok());
        SessionOptions q8{64};
        q8.cache = CacheType::q8_0;
        Session typed = must(Session::create(model, q8));
        CHECK_FALSE(typed.restore(path).ok());
        CHECK_FALSE(target.restore(temporary("not_there")).ok());
        must(target.restore(path));
        CHECK(target.position() == tokens.size());
        std::filesystem::remove(path);
    }
}

TEST_CASE(
    "session: a window kept as a ring gives what the whole context gives, rewound and restored as well") {
    const std::string path = temporary("window.gguf"), saved = temporary("window.cache");
    save_with_key(must(Gguf::open(golden("models/llama3.gguf"))), "llama.attention.sliding_window", 40, path);
    std::vector<Token> tokens;
    while (tokens.size() < 600) tokens.push_back(golden_tokens()[tokens.size() * 7 % golden_tokens().size()]);
    // In the others some layers have a window or chunks, and some see everything.
    for (const std::string& file : {path, golden("models/gemma3.gguf"), golden("models/gemma3n.gguf"),
                                    golden("models/gpt-oss.gguf"), golden("models/llama4-chunks.gguf")})
        for (const auto& backend : session_backends()) {
            INFO(file, " on ", backend->device().name);
            const Model model = must(Model::load(file, *backend, {700, {}}));
            const uint64_t window = model.config().window;
            SessionOptions options{700, 32};
            options.cache = CacheType::f32;
            Session ring = must(Session::create(model, options));
            SessionOptions wide = options;
            wide.batch = 700;
            Session whole = must(Session::create(model, wide));
            CHECK(double(ring.memory().cache) < 0.6 * double(whole.memory().cache));
            must(ring.feed(tokens));
            must(whole.feed(tokens));
            const std::vector<float> want = copy(whole.logits());
            const double bound = chunk_bound(model, wide, tokens);
            CHECK(relative_error(ring.logits(), want) < bound);

            // The last 256 of 600 tokens are there; those in the window are seen.
            CHECK(ring.rewind(590) == 590);
            must(ring.feed(std::span(tokens).subspan(590)));
            CHECK(relative_error(ring.logits(), want) < bound);
            must(ring.save(saved));
            CHECK(ring.rewind(344 + window) == 344 + window);
            must(ring.feed(std::span(tokens).subspan(344 + window)));
            CHECK(relative_error(ring.logits(), want) < bound);
            CHECK(ring.rewind(342 + window) == 0);

            must(ring.restore(saved));
            CHECK(ring.position() == 600);
            CHECK(ring.rewind(599) == 599);
            must(ring.feed(std::span(tokens).subspan(599)));
            CHECK(relative_error(ring.logits(), want) < bound);
            // Into a ring of another size, and into the whole context.
            must(whole.restore(saved));
            CHECK(whole.rewind(560) == 560);
            must(whole.feed(std::span(tokens).subspan(560)));
            CHECK(relative_error(whole.logits(), want) < bound);
            CHECK(whole.rewind(300) == 0);
        }
    std::filesystem::remove(path);
    std::filesystem::remove(saved);
}

TEST_CASE("session: saving and restoring tell of their progress, and end where they are cancelled") {
    for (const auto& backend : session_backends()) {
        INFO("on ", backend->device().name);
        const Model model = tiny(*backend, "qwen3");
        const std::string path = temporary("cancelled");
        Session session = must(Session::create(model, {64}));
        must(session.feed(golden_tokens()));
        uint64_t last = 0, total = 0;
        const auto progress = [&](uint64_t done, uint64_t all) {
            CHECK(done >= last);
            last = done;
            total = all;
        };
        std::atomic<bool> cancel = true;
        CHECK_FALSE(session.save(path, {}, &cancel).ok());
        CHECK_FALSE(std::filesystem::exists(path));
        must(session.save(path, progress));
        CHECK(last > total / 2);
        Session other = must(Session::create(model, {64}));
        CHECK_FALSE(other.restore(path, {}, &cancel).ok());
        CHECK(other.position() == 0);
        last = 0;
        must(other.restore(path, progress));
        CHECK(last > total / 2);
        std::filesystem::remove(path);
    }
}

TEST_CASE("session: memory is what was planned before anything was loaded, to one percent") {
    for (const auto& backend : session_backends()) {
        INFO("on ", backend->device().name);
        for (const std::string& name : tiny_models(*backend)) {
            INFO(name);
            const std::string path = golden("models/" + name + ".gguf");
            const uint32_t positions = must(Model::inspect(path, 64)).config().positions;
            SessionOptions options{positions > 0 ? positions : 4096, 256};
            Model model = must(Model::inspect(path, options.context));
            const uint64_t before = backend->allocated();
            const MemoryNeed need = must(memory_need(model, *backend, options));
            CHECK(backend->allocated() == before);
            must(model.place(*backend, {}));
            const auto planned = [&](uint64_t part) {
                CHECK(double(backend->allocated() - before) == doctest::Approx(double(part)).epsilon(0.01));
            };
            planned(need.weights);
            Session session = must(Session::create(model, options));
            planned(need.weights + need.cache);
            const std::vector<Token> tokens = golden_tokens();
            // On a stand-in the device computes nothing, and what it gives is not looked at.
            must(session.feed(tokens));
            must(session.feed(std::span(tokens).first(1)));
            planned(need.weights + need.cache + need.scratch);
            CHECK(need.total() == session.memory().total());
        }
    }
}

TEST_CASE("session: saving where nothing can be written is an error and leaves no file behind") {
    for (const auto& backend : session_backends()) {
        INFO("on ", backend->device().name);
        const Model model = tiny(*backend, "qwen3");
        Session session = must(Session::create(model, {64}));
        must(session.feed(golden_tokens()));
        CHECK_FALSE(session.save("/nonexistent/folder/cache").ok());
    }
}

TEST_CASE("session: a traced step reports every op with its cost and gives the same logits") {
    for (const auto& backend : session_backends()) {
        INFO("on ", backend->device().name);
        const Model model = tiny(*backend, "llama3");
        const std::vector<Token> tokens = golden_tokens();
        Session plain = must(Session::create(model, {64})), traced = must(Session::create(model, {64}));
        must(plain.feed(tokens));
        uint64_t weight_bytes = 0;
        size_t steps = 0;
        must(traced.feed_traced(tokens, [&](const TraceStep& step) {
            weight_bytes += step.cost.weight_bytes;
            ++steps;
        }));
        CHECK(copy(traced.logits()) == copy(plain.logits()));
        const Plan plan = must(model.plan(512, 1, {64, 512, CacheType::f16}));
        CHECK(steps == must(lower(plan, *backend)).kernels.size());
        CHECK(weight_bytes > model.weight_bytes(*backend) / 2);
    }
}
