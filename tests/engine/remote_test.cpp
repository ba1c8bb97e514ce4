// A model whose first layers are computed by other ranks, which are threads here: its results are those of
// one process, bit for bit.
#include "host/split.h"
#include "speculate/mtp_head.h"
#include "support/local_job.h"
#include "support/models.h"

using namespace redline;
using namespace redline::test;

namespace {

constexpr uint32_t kChunk = 8;
constexpr uint64_t kRoom = 128;

std::string path_of(const std::string& name) {
    return golden("models/" + name + ".gguf");
}

EngineOptions sized(uint32_t sequences = 1) {
    EngineOptions options{kRoom, kChunk};
    options.cache = CacheType::f32;
    options.sequences = sequences;
    return options;
}

std::vector<Token> long_text(size_t count) {
    const std::vector<Token> known = golden_tokens();
    std::vector<Token> tokens;
    for (size_t i = 0; i < count; ++i) tokens.push_back(known[(i * 7 + i / known.size()) % known.size()]);
    return tokens;
}

// A CPU for each rank, the ranks, and the model as rank 0 has it.
struct Job {
    explicit Job(const std::string& name, size_t others = 1)
        : model(must(Model::inspect(path_of(name), kRoom))) {
        for (size_t i = 0; i <= others; ++i) devices.push_back(cpu(1));
        std::vector<Backend*> theirs;
        for (size_t i = 1; i < devices.size(); ++i) theirs.push_back(devices[i].get());
        ranks = std::make_unique<LocalJob>(path_of(name), kRoom, theirs);
        for (size_t i = 0; i < others; ++i) where.devices.push_back(&ranks->device(i));
        where.devices.push_back(devices[0].get());
    }
    // Layers in equal shares, the last ones here.
    EngineOptions over(EngineOptions options) const {
        SplitWish wish;
        wish.shares.assign(where.devices.size(), 1.0);
        wish.exact = true;
        options.placements = must(split_model(model, options, where, wish)).placements;
        return options;
    }
    Session session(EngineOptions options = sized()) const {
        return must(Session::create(model, over(options)));
    }

    Model model;
    std::vector<std::unique_ptr<Backend>> devices;
    std::unique_ptr<LocalJob> ranks;
    SplitPlaces where;
};

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
    must(session.feed(all.subspan(left, 80 - left)));
    logits.push_back(copy(session.logits()));
    return logits;
}

std::vector<std::vector<float>> on_one(const std::string& name) {
    const std::unique_ptr<Backend> device = cpu(1);
    const Model model = must(Model::load(path_of(name), *device, {kRoom, {}}));
    return conversation(must(Session::create(model, sized())));
}

}  // namespace

TEST_CASE("remote: plans of all models come through a message as they were") {
    for (const std::string& name : tiny_models()) {
        INFO(name);
        const Plan plan = must(must(Model::inspect(path_of(name), 64)).plan(16, 2, {64, 16}));
        Packer first, second;
        pack_plan(first, plan);
        const std::vector<std::byte> bytes = first.take();
        Unpacker in(bytes);
        pack_plan(second, must(unpack_plan(in)));
        CHECK(second.take() == bytes);
    }
}

TEST_CASE("remote: a message that is cut short, or garbled, is an error") {
    const Plan plan = must(must(Model::inspect(path_of("llama3"), 64)).plan(16, 2, {64, 16}));
    Packer out;
    pack_plan(out, plan);
    const std::vector<std::byte> bytes = out.take();
    for (size_t length = 0; length < bytes.size(); length += 1 + bytes.size() / 97) {
        Unpacker in(std::span<const std::byte>(bytes).first(length));
        CHECK_FALSE(unpack_plan(in).ok());
    }
    std::mt19937 random(5);
    for (int i = 0; i < 300; ++i) {
        std::vector<std::byte> garbled = bytes;
        for (int k = 0; k < 3; ++k) garbled[random() % garbled.size()] = std::byte(random());
        Unpacker in(garbled);
        static_cast<void>(unpack_plan(in).ok());  // whatever it is, the program goes on
    }
}

TEST_CASE("remote: texts over two and three ranks have the logits of one process, bit for bit") {
    for (const std::string name :
         {"llama3", "gemma3", "qwen3moe", "qwen35", "lfm2", "mamba2", "deepseek2-v3"}) {
        const auto want = on_one(name);
        for (size_t others = 1; others <= 2; ++others) {
            INFO(name, " with ", others, " others");
            CHECK(conversation(Job(name, others).session()) == want);
        }
    }
}

TEST_CASE("remote: sequences in pages, forks of them and saved ones are those of one process") {
    for (const std::string name : {"llama3", "qwen35"}) {
        INFO(name);
        const std::vector<Token> text = long_text(70);
        const std::string file = temporary("remote_cache");
        const auto read = [&](Engine& engine) {
            Sequence first = must(engine.open_sequence()), second = must(engine.open_sequence());
            std::vector<std::vector<float>> logits(5);
            const std::span<const Token> all(text);
            const std::vector<Feed> feeds = {{&first, all.first(60)}, {&second, all.subspan(5, 30)}};
            must(engine.feed(feeds, [&](size_t i, auto last) { logits[i] = copy(last); }));
            must(engine.save(first, file, {}, nullptr));
            {
                Sequence other = must(first.fork());
                const std::vector<Feed> next = {{&other, all.subspan(60, 10)},
                                                {&second, all.subspan(35, 20)}};
                must(engine.feed(next, [&](size_t i, auto last) { logits[2 + i] = copy(last); }));
            }
            must(engine.restore(second, file, {}, nullptr));
            const Feed again{&second, all.subspan(60, 5)};
            must(engine.feed({&again, 1}, [&](size_t, auto last) { logits[4] = copy(last); }));
            return logits;
        };
        EngineOptions options = sized(2);
        options.kept = 1;
        options.pages = 6;
        const std::unique_ptr<Backend> device = cpu(1);
        const Model whole = must(Model::load(path_of(name), *device, {kRoom, {}}));
        const auto want = read(*must(Engine::create(whole, options)));
        const Job job(name, 2);
        CHECK(read(*must(Engine::create(job.model, job.over(options)))) == want);
        std::filesystem::remove(file);
    }
}

TEST_CASE("remote: drafts are taken back to any of them, with states, too") {
    for (const std::string name : {"llama3", "mamba2"}) {
        INFO(name);
        const std::vector<Token> text = long_text(40);
        const auto read = [&](Engine& engine) {
            Sequence sequence = must(engine.open_sequence());
            const std::span<const Token> all(text);
            std::vector<std::vector<float>> logits;
            const Feed prompt{&sequence, all.first(20)};
            must(engine.feed({&prompt, 1}, [](size_t, auto) {}));
            for (const size_t right : {0, 2, 4}) {
                const Feed guessed{&sequence, all.subspan(sequence.position(), 5)};
                must(engine.step({&guessed, 1}, {.outputs = 5}));
                logits.push_back(copy(engine.output()));
                const uint64_t wanted = sequence.position() - 5 + 1 + right;
                CHECK(sequence.rewind(wanted) == wanted);
            }
            return logits;
        };
        EngineOptions options = sized();
        options.outputs = 5;
        options.drafts = 4;
        const std::unique_ptr<Backend> device = cpu(1);
        const Model whole = must(Model::load(path_of(name), *device, {kRoom, {}}));
        const auto want = read(*must(Engine::create(whole, options)));
        const Job job(name);
        CHECK(read(*must(Engine::create(job.model, job.over(options)))) == want);
    }
}

TEST_CASE("remote: a prompt that is cancelled ends, and the next one is right") {
    const Job job("llama3", 2);
    Session session = job.session();
    std::atomic<bool> cancel = true;
    CHECK_FALSE(session.feed(long_text(80), &cancel).ok());
    session.rewind(0);
    cancel = false;
    const std::vector<Token> text = long_text(30);
    must(session.feed(text, &cancel));
    const Job other("llama3");
    Session alone = other.session();
    must(alone.feed(text));
    CHECK(copy(session.logits()) == copy(alone.logits()));
}

TEST_CASE("remote: a rank that is lost is an error that names it, and no step waits for ever") {
    Job job("llama3");
    Session session = job.session();
    must(session.feed(long_text(10)));
    job.ranks->lose(1);
    const Status fed = session.feed(long_text(10));
    REQUIRE_FALSE(fed.ok());
    CHECK(fed.error().message == "rank 1 is lost: the test has cut it off");
    CHECK(job.ranks->team().problem() == "rank 1 is lost: the test has cut it off");
}

TEST_CASE("remote: calls that name what is not there are answered with errors") {
    Job job("llama3");
    RemoteTeam& team = job.ranks->team();
    Packer none;
    for (int call = 0; call <= int(RemoteCall::host); ++call) {
        const auto what = RemoteCall(call);
        if (what == RemoteCall::drop || what == RemoteCall::pass || what == RemoteCall::run ||
            what == RemoteCall::run_rank)
            continue;
        INFO("call ", call);
        CHECK_FALSE(
            team.call(1, what, std::move(Packer().add(uint32_t(7), uint64_t(99), uint64_t(99)))).ok());
    }
    job.ranks->send(1, 0, {});
    job.ranks->send(1, 0, WireMessage(100, std::byte(2)));
    job.ranks->send(0, 1, WireMessage(100, std::byte(3)));
    must(job.session().feed(long_text(10)));
}
