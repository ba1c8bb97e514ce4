// A model each of whose layers is divided over the ranks of a job, which are threads here: its results are
// those of ranks of one process, bit for bit.
#include "places/job_step.h"
#include "support/fails_in_turn.h"
#include "support/local_job.h"
#include "support/models.h"

using namespace redline;
using namespace redline::test;

namespace {

constexpr uint32_t kChunkRows = 8;
constexpr uint64_t kMostTokens = 128;
// Dense, of experts, with states, and with latent attention.
constexpr const char* kDivided[] = {"llama3", "gemma3", "qwen3moe", "qwen35", "mamba2", "deepseek2-v3"};

std::string file_of(const std::string& name) {
    return golden("models/" + name + ".gguf");
}

EngineOptions of_size(uint32_t sequences = 1) {
    EngineOptions options{kMostTokens, kChunkRows};
    options.cache = CacheType::f32;
    options.sequences = sequences;
    return options;
}

std::vector<Token> text_of(size_t count) {
    const std::vector<Token> known = golden_tokens();
    std::vector<Token> tokens;
    for (size_t i = 0; i < count; ++i) tokens.push_back(known[(i * 7 + i / known.size()) % known.size()]);
    return tokens;
}

// A CPU for each rank, and the model as rank 0 has it.
struct DividedJob {
    DividedJob(const std::string& name, std::vector<double> shares, Calls* calls = nullptr, size_t fails = 0)
        : model(must(Model::inspect(file_of(name), kMostTokens))) {
        for (size_t i = 0; i < shares.size(); ++i) devices.push_back(test::cpu(1));
        if (calls) failing = std::make_unique<FailingDevice>(*devices[fails], *calls);
        std::vector<Backend*> all;
        for (const auto& device : devices) all.push_back(device.get());
        if (calls) all[fails] = failing.get();
        ranks = std::make_unique<LocalJob>(file_of(name), kMostTokens, std::span(all).subspan(1));
        for (size_t i = 0; i < shares.size(); ++i) {
            over_job.push_back({i == 0 ? all[0] : &ranks->device(i - 1), shares[i]});
            here.push_back({all[i], shares[i]});
        }
    }
    EngineOptions over(EngineOptions options) const {
        options.ranks = over_job;
        return options;
    }
    EngineOptions in_process(EngineOptions options) const {
        options.ranks = here;
        return options;
    }
    Session session() const { return must(Session::create(model, over(of_size()))); }

    Model model;
    std::vector<std::unique_ptr<Backend>> devices;
    std::unique_ptr<FailingDevice> failing;
    std::unique_ptr<LocalJob> ranks;
    std::vector<RankPlace> over_job, here;  // the same ranks, by messages and in one process
};

// Says what is allocated once all ranks have carried out the calls that they were sent.
class FreedDevice : public FailingDevice {
public:
    explicit FreedDevice(std::vector<const DividedJob*> jobs)
        : FailingDevice(*jobs[0]->devices[0], none_), jobs_(std::move(jobs)) {}
    uint64_t allocated() const override {
        uint64_t sum = 0;
        for (const DividedJob* job : jobs_)
            for (const RankPlace& place : job->over_job) static_cast<void>(place.backend->allocated());
        for (const DividedJob* job : jobs_)
            for (const auto& device : job->devices) sum += device->allocated();
        return sum;
    }

private:
    Calls none_;
    std::vector<const DividedJob*> jobs_;
};

// The logits behind a prompt of several chunks, after single tokens, after a rewind, and behind another
// prompt.
std::vector<std::vector<float>> logits_of(Session session) {
    const std::vector<Token> text = text_of(90);
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

}  // namespace

TEST_CASE("job: sums over two to four ranks are those in their order, the same bits on all of them") {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    for (const uint32_t ranks : {2u, 3u, 4u}) {
        const auto all = std::make_shared<LocalSwitch>(ranks);
        std::vector<std::unique_ptr<LocalWire>> wires;
        std::vector<std::unique_ptr<WireSums>> sums;
        std::vector<uint32_t> order;
        for (uint32_t rank = 0; rank < ranks; ++rank) {
            wires.push_back(std::make_unique<LocalWire>(all, rank));
            sums.push_back(std::make_unique<WireSums>(*wires.back()));
            wires.back()->listen([to = sums.back().get()](
                                     uint32_t from, const WireMessage& message) { to->took(from, message); },
                                 [](uint32_t, const std::string&) {});
            order.insert(order.begin(), rank);
        }
        // Whole rows go to all ranks where they are short, and else parts of them.
        for (const auto& [rows, width, stride] : {std::array<size_t, 3>{1, 1, 1},
                                                  {1, 4097, 4097},
                                                  {3, 33, 47},
                                                  {37, 1021, 1021},
                                                  {64, 777, 1000}}) {
            INFO(ranks, " ranks, ", rows, " rows of ", width, " of ", stride);
            std::vector<std::vector<float>> mine(ranks), got(ranks);
            std::vector<RankRows> in_order(ranks);
            for (uint32_t rank = 0; rank < ranks; ++rank) {
                for (size_t i = 0; i < rows * stride; ++i) mine[rank].push_back(normal(random));
                in_order[ranks - 1 - rank] = {mine[rank].data(), stride};
            }
            std::vector<float> want(rows * width);
            add_rows(in_order, width, 0, want.size(), want);
            std::vector<std::thread> threads;
            for (uint32_t rank = 0; rank < ranks; ++rank)
                threads.emplace_back([&, rank] {
                    WireReducer reducer(*sums[rank], rows, order);
                    for (int step = 0; step < 3; ++step) {
                        reducer.begin();
                        for (int i = 0; i < 5; ++i) {
                            got[rank].clear();
                            if (!reducer.sum(ranks - 1 - rank, {mine[rank].data(), stride}, rows, width,
                                             got[rank]))
                                got[rank].clear();
                        }
                    }
                });
            for (std::thread& thread : threads) thread.join();
            for (uint32_t rank = 0; rank < ranks; ++rank) CHECK(got[rank] == want);
        }
    }
}

TEST_CASE(
    "job: a rank that fails ends the sums of a step on all ranks, and those of the next one are right") {
    constexpr uint32_t kRanks = 3;
    const auto all = std::make_shared<LocalSwitch>(kRanks);
    std::vector<std::unique_ptr<LocalWire>> wires;
    std::vector<std::unique_ptr<WireSums>> sums;
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
        wires.push_back(std::make_unique<LocalWire>(all, rank));
        sums.push_back(std::make_unique<WireSums>(*wires.back()));
        wires.back()->listen(
            [to = sums.back().get()](uint32_t from, const WireMessage& message) { to->took(from, message); },
            [](uint32_t, const std::string&) {});
    }
    std::vector<std::vector<int>> outcomes(kRanks);
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < kRanks; ++rank)
        threads.emplace_back([&, rank] {
            WireReducer reducer(*sums[rank], 1, {0, 1, 2});
            const std::vector<float> mine(100, float(rank + 1));
            std::vector<float> into;
            for (uint32_t step = 0; step < 30; ++step) {
                reducer.begin();
                int done = 0;
                for (uint32_t i = 0; i < 4; ++i) {
                    // In every second step another rank has no rows for one of the sums.
                    const bool fails = step % 2 == 1 && step / 2 % kRanks == rank && i == step % 4;
                    const RankRows rows = fails ? RankRows() : RankRows{mine.data(), mine.size()};
                    if (!reducer.sum(rank, rows, 1, mine.size(), into)) break;
                    done += into == std::vector<float>(100, 6.0f);
                }
                outcomes[rank].push_back(done);
            }
        });
    for (std::thread& thread : threads) thread.join();
    for (uint32_t rank = 0; rank < kRanks; ++rank)
        for (size_t step = 0; step < outcomes[rank].size(); ++step) {
            // A rank that is behind may hear of the end before it has made the sums that it could.
            if (step % 2 == 1) CHECK(outcomes[rank][step] <= int(step % 4));
            if (step % 2 == 0) CHECK(outcomes[rank][step] == 4);
        }
}

TEST_CASE("job: texts divided over two to four ranks have the logits of ranks of one process, bit for bit") {
    for (const std::string name : kDivided) {
        const std::unique_ptr<Backend> device = test::cpu(1);
        const Model whole = must(Model::load(file_of(name), *device, {kMostTokens, {}}));
        const auto alone = logits_of(must(Session::create(whole, of_size())));
        for (const std::vector<double>& shares :
             {std::vector<double>{1, 1}, {1, 3}, {1, 1, 1}, {2, 1, 1, 1}}) {
            INFO(name, " in shares of ", fmt::format("{}", fmt::join(shares, ", ")));
            const DividedJob job(name, shares);
            const auto got = logits_of(job.session());
            CHECK(logits_of(must(Session::create(job.model, job.in_process(of_size())))) == got);
            CHECK(logits_of(job.session()) == got);
            for (size_t i = 0; i < got.size(); ++i) CHECK(relative_error(got[i], alone[i]) < 1e-2);
        }
    }
}

TEST_CASE("job: sequences in pages, forks of them and saved ones are those of ranks of one process") {
    for (const std::string name : {"llama3", "qwen35"}) {
        INFO(name);
        const std::vector<Token> text = text_of(70);
        const std::string file = temporary("job_cache");
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
        EngineOptions options = of_size(2);
        options.kept = 1;
        options.pages = 6;
        const DividedJob job(name, {1, 1, 1});
        const auto want = read(*must(Engine::create(job.model, job.in_process(options))));
        CHECK(read(*must(Engine::create(job.model, job.over(options)))) == want);
        std::filesystem::remove(file);
    }
}

TEST_CASE(
    "job: drafts are taken back to any of them, with states, too, and the best of all ranks are found") {
    for (const std::string name : {"llama3", "mamba2"}) {
        INFO(name);
        const std::vector<Token> text = text_of(40);
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
        EngineOptions options = of_size();
        options.outputs = 5;
        options.drafts = 4;
        const DividedJob job(name, {1, 1});
        const auto want = read(*must(Engine::create(job.model, job.in_process(options))));
        CHECK(read(*must(Engine::create(job.model, job.over(options)))) == want);
    }
}

TEST_CASE("job: a divided prompt that is cancelled ends, and the next one is right") {
    const DividedJob job("llama3", {1, 1, 1});
    Session session = job.session();
    std::atomic<bool> cancel = true;
    const Status ended = session.feed(text_of(80), &cancel);
    REQUIRE_FALSE(ended.ok());
    CHECK(ended.error().message == "interrupted");
    session.rewind(0);
    cancel = false;
    must(session.feed(text_of(30), &cancel));
    Session alone = must(Session::create(job.model, job.in_process(of_size())));
    must(alone.feed(text_of(30)));
    CHECK(copy(session.logits()) == copy(alone.logits()));
}

TEST_CASE(
    "job: a rank that is lost in a divided model is an error that names it, and no rank waits for ever") {
    for (const uint32_t lost : {1u, 2u}) {
        DividedJob job("llama3", {1, 1, 1});
        Session session = job.session();
        must(session.feed(text_of(10)));
        job.ranks->lose(lost);
        const Status fed = session.feed(text_of(10));
        REQUIRE_FALSE(fed.ok());
        CHECK(fed.error().message == fmt::format("rank {} is lost: the test has cut it off", lost));
    }
    // Rank 0 hears of a connection between two others.
    DividedJob job("llama3", {1, 1, 1});
    Session session = job.session();
    must(session.feed(text_of(10)));
    job.ranks->lose_between(1, 2);
    const Status fed = session.feed(text_of(10));
    REQUIRE_FALSE(fed.ok());
    CHECK(fed.error().message == "rank 2 is lost: rank 1 says: the test has cut it off");
}

TEST_CASE("job: any call that fails on any of three ranks is one error, and frees everything") {
    for (size_t which = 0; which < 3; ++which) {
        INFO("rank ", which);
        const DividedJob plain("qwen35", {1, 1, 1});
        Calls calls;
        DividedJob failing("qwen35", {1, 1, 1}, &calls, which);
        FreedDevice device({&plain, &failing});
        fails_in_turn(failing.model, plain.over(of_size()), failing.over(of_size()), calls, device,
                      text_of(25), kChunkRows);
    }
}

TEST_CASE("job: what cannot be joined, or is no part of a weight, is an error") {
    DividedJob job("llama3", {1, 1});
    RemoteTeam& team = job.ranks->team();
    RemoteJoin how;
    how.ranks = {0, 1};
    CHECK_FALSE(team.call(1, RemoteCall::join, std::move(Packer().add(how))).ok());
    how.parts.push_back({12345});
    CHECK_FALSE(team.call(1, RemoteCall::join, std::move(Packer().add(how))).ok());
    CHECK_FALSE(team.call(1, RemoteCall::sums,
                          std::move(Packer().add(uint64_t(9), std::vector<uint32_t>{0, 7}, uint64_t(5))))
                    .ok());
    const std::span<const WeightInfo> infos = job.model.file_weights();
    const uint64_t rows = infos[0].tensor.shape.rows;
    for (const Run run : {Run{0, rows + 1}, Run{rows, 1}, Run{UINT64_MAX, 2}}) {
        WeightSlice slice{{0}};
        slice.rows = {run};
        const auto loaded = team.call(
            1, RemoteCall::load, std::move(Packer().add(uint32_t(0), std::vector{slice}, infos.first(1))));
        REQUIRE_FALSE(loaded.ok());
        CHECK(loaded.error().message.find("that is not there") != std::string::npos);
    }
    must(job.session().feed(text_of(10)));
}

TEST_CASE("job: the time of a sum over ranks is measured") {
    const DividedJob job("llama3", {1, 1, 1});
    CHECK(Ranks::job_ranks(job.over_job) == std::vector<uint32_t>{0, 1, 2});
    CHECK(Ranks::job_ranks(job.here).empty());
    CHECK(Ranks::sum_seconds(job.over_job, 4096) > 0.0);
}
