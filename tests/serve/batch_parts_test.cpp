// The parts of the scheduler: kept sequences, the order and the pace of prompts, worker threads.
#include "serve/batch/kept_sequences.h"
#include "serve/batch/prompt_pace.h"
#include "serve/batch/workers.h"
#include "support/models.h"

using namespace redline;
using namespace redline::serve;
using namespace redline::test;

TEST_CASE("kept sequences: the longest common beginning is found to the token, and the oldest goes first") {
    const auto backend = redline::test::cpu();
    const Model model = must(Model::load(golden("models/llama3.gguf"), *backend, {700, {}}));
    EngineOptions options{700, 64};
    options.sequences = 2;
    options.kept = 3;
    options.pages = 9;
    const auto engine = must(Engine::create(model, options));
    KeptSequences kept(3, true);
    std::vector<Token> a(300, 5), b(280, 5), c(40, 7);
    b[270] = 6;
    const auto read = [&](const std::vector<Token>& tokens) {
        Sequence sequence = must(engine->open_sequence());
        const Feed feed{&sequence, tokens};
        must(engine->feed({&feed, 1}, [](size_t, std::span<const float>) {}));
        return sequence;
    };
    kept.add(read(a));
    kept.add(read(c));
    kept.add(read(b));
    CHECK(kept.size() == 3);
    CHECK(kept.find(b).tokens == 279);
    std::vector<Token> other(b.begin(), b.begin() + 275);
    other.push_back(9);
    CHECK(kept.find(other).tokens == 275);
    CHECK(kept.find(std::vector<Token>{9, 9}).tokens == 0);
    CHECK(kept.find(std::vector<Token>{5}).tokens == 0);  // one token is read in any case
    // One that is a beginning of another says nothing new.
    kept.add(read({5, 5, 5}));
    CHECK(kept.size() == 3);
    // A fork takes what is asked for, and makes its origin the youngest.
    {
        const Sequence fork = must(kept.take(kept.find(std::vector<Token>(290, 5))));
        CHECK(fork.position() == 289);
    }
    CHECK(kept.size() == 3);
    const uint64_t free = engine->pages().free;
    CHECK(kept.give_up());  // c is the oldest, and has one page
    CHECK(engine->pages().free == free + 1);
    CHECK(kept.find(c).tokens == 0);
    CHECK(kept.give_up());  // then the end of b
    CHECK(kept.find(b).tokens == 270);
    // Where all of it is wanted it is handed over.
    const std::vector<Token> longer(310, 5);
    const Sequence whole = must(kept.take(kept.find(longer)));
    CHECK(whole.position() == 300);
    CHECK(kept.size() == 1);
    while (kept.give_up()) {
    }
    CHECK(kept.size() == 0);
}

TEST_CASE("prompt order: short prompts go first, but a long one is not passed over for ever") {
    const auto first = [](std::vector<PromptState> prompts) { return prompt_order(prompts)[0]; };
    CHECK(first({{8000, 0}, {100, 0}}) == 1);
    CHECK(first({{100, 0}, {100, 0}}) == 0);
    // Short ones come all the time.
    uint64_t passed_over = 0, rounds = 0;
    while (first({{8000, passed_over}, {100, 0}}) == 1) {
        passed_over += 100;
        ++rounds;
    }
    CHECK(rounds == 79);
}

TEST_CASE("prompt pace: prompts get their share of the time while others generate") {
    PromptPace pace(0.6);
    CHECK(pace.rows(0, 512) == 512);
    CHECK(pace.rows(4, 512) == PromptPace::kUnmeasured);
    pace.measured(0.010, 4, 0);
    pace.measured(0.100, 0, 1000);
    // Ten milliseconds of generating, fifteen for prompts of 0.1 ms a row.
    CHECK(pace.rows(4, 512) == 150);
    CHECK(pace.rows(4, 100) == 100);
    // A step with both: 0.4 ms a row more. The new value counts for 0.4.
    pace.measured(0.010 + 0.0400, 4, 100);
    CHECK(pace.rows(4, 512) == doctest::Approx(0.015 / (0.0001 + 0.4 * 0.0003)).epsilon(0.02));
    // Slow ones are read all the same.
    pace.measured(10.0, 0, 10);
    CHECK(pace.rows(4, 512) == PromptPace::kFewest);
    // With another number of generating sequences a step without prompts is wanted, now and then.
    for (int i = 0; i < 4; ++i) pace.measured(0.02, 5, 16);
    CHECK(pace.wants_measure(5));
    CHECK_FALSE(pace.wants_measure(4));
    pace.measured(0.02, 5, 0);
    CHECK_FALSE(pace.wants_measure(6));
}

TEST_CASE(
    "prompt bursts: prompts are read in large parts, and those that generate get their time between them") {
    PromptBursts bursts(0.75);
    CHECK(bursts.rows(0, 1, 1024) == 1024);
    CHECK(bursts.rows(4, 1, 1024) == PromptBursts::kUnmeasured);
    CHECK(bursts.rows(4, 1, 100) == 100);
    bursts.measured(0.003, 4, 0);
    // A burst of 15 ms: those that generate are owed 5, and had 3 before.
    bursts.measured(0.015, 0, 500);
    CHECK(bursts.rows(4, 1, 1024) == 0);
    bursts.measured(0.003, 4, 0);
    CHECK(bursts.rows(4, 1, 1024) > 0);
    bursts.measured(0.015, 0, 500);
    for (int step = 0; step < 2; ++step) {
        CHECK(bursts.rows(4, 1, 1024) == 0);
        bursts.measured(0.003, 4, 0);
    }
    // 30 microseconds a row: 30 ms where as many read as generate, 15 where there is one for four, by whole
    // tiles.
    CHECK(bursts.rows(4, 4, 2048) == 7 * PromptBursts::kTile);
    CHECK(bursts.rows(4, 1, 2048) == 3 * PromptBursts::kTile);
    // The end of a prompt changes nothing, though its row takes long.
    bursts.measured(0.005, 0, 1);
    CHECK(bursts.rows(0, 1, 64) == 64);
    CHECK(bursts.rows(4, 4, 2048) == 7 * PromptBursts::kTile);
}

TEST_CASE("prompt bursts: where more prompts wait than others generate, they get more of the time") {
    PromptBursts bursts(0.6);
    bursts.measured(0.002, 1, 0);
    CHECK(bursts.rows(1, 9, 1024) > 0);
    bursts.measured(0.036, 0, 500);
    CHECK(bursts.rows(1, 9, 1024) == 0);
    bursts.measured(0.002, 1, 0);
    CHECK(bursts.rows(1, 9, 1024) > 0);
    // Slow devices have shorter bursts, but not shorter than a step that takes the same time.
    for (int i = 0; i < 20; ++i) bursts.measured(1.0, 1, 0);
    for (int i = 0; i < 20; ++i) bursts.measured(8.0, 0, 128);
    bursts.rows(0, 1, 64);
    CHECK(bursts.rows(1, 1, 1024) == doctest::Approx(128).epsilon(0.05));
    for (int i = 0; i < 20; ++i) bursts.measured(80.0, 0, 64);
    bursts.rows(0, 1, 64);
    CHECK(bursts.rows(1, 1, 1024) == PromptBursts::kFewest);
}

TEST_CASE("prompt bursts: where steps also generate, the whole step has tiles and nothing is owed") {
    PromptBursts bursts(0.75);
    bursts.go_together();
    bursts.measured(0.003, 8, 0);
    bursts.measured(0.003 + 0.0075, 8, 125);  // 60 microseconds a row
    // 20 ms, and a part of the 30 that it is where as many read as generate: 354 rows.
    CHECK(bursts.rows(8, 1, 2048) == 2 * PromptBursts::kTile - 8);
    CHECK(bursts.rows(0, 1, 2048) == 2048);
}

TEST_CASE("workers: each number is worked on once, round after round") {
    for (const uint32_t threads : {0u, 1u, 3u}) {
        Workers workers(threads);
        for (size_t count = 0; count < 60; ++count) {
            std::vector<std::atomic<int>> times(count);
            workers.each(count, [&](size_t i) { ++times[i]; });
            for (const auto& time : times) CHECK(time == 1);
        }
    }
}
