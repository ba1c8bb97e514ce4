// Guesses for texts that share a step: who gets its rows.
#include "speculate/shared_speculation.h"
#include "support/material.h"

#include <doctest/doctest.h>

using namespace redline;
using namespace redline::test;

namespace {

// Guesses as many tokens as may be.
class Eager : public GroupProposer {
public:
    std::string_view name() const override { return "eager"; }
    Status propose(std::span<TextDraft* const> drafts, const std::atomic<bool>*) override {
        ++calls;
        if (fails) return error("no memory");
        for (TextDraft* one : drafts) one->tokens.assign(one->most, 7);
        return {};
    }
    int calls = 0;
    bool fails = false;
};

struct Users {
    explicit Users(size_t count, SharedSpeculation::Limits limits = {8, false}, double one = 0.010,
                   double each = 0.0002) {
        auto made = std::make_unique<Eager>();
        eager = made.get();
        speculation = std::make_unique<SharedSpeculation>(0, std::move(made), limits);
        speculation->measured(1, one);
        for (int i = 0; i < 30; ++i) speculation->measured(9, one + 8 * each);
        for (size_t i = 0; i < count; ++i) {
            sequences.push_back(must(engine->open_sequence()));
            texts.push_back(speculation->open());
        }
        for (size_t i = 0; i < count; ++i) drafts.push_back({&texts[i], &sequences[i], 3, 99});
    }
    std::vector<size_t> lengths(uint64_t room = 99) {
        for (TextDraft& one : drafts) one.most = 99;
        must(speculation->propose(drafts, room, nullptr));
        std::vector<size_t> all;
        for (const TextDraft& one : drafts) all.push_back(one.tokens.size());
        return all;
    }
    size_t sum(uint64_t room = 99) {
        size_t all = 0;
        for (const size_t length : lengths(room)) all += length;
        return all;
    }

    std::unique_ptr<Backend> backend = redline::test::cpu(1);
    Model model = must(Model::load(golden("models/llama3.gguf"), *backend, {64, {}}));
    std::unique_ptr<Engine> engine = must(Engine::create(model, options()));
    std::vector<Sequence> sequences;
    Eager* eager = nullptr;
    std::unique_ptr<SharedSpeculation> speculation;
    std::vector<TextGuesses> texts;
    std::vector<TextDraft> drafts;

private:
    static EngineOptions options() {
        EngineOptions all{64, 16, 16};
        all.sequences = 16;
        return all;
    }
};

}  // namespace

TEST_CASE(
    "shared guesses: one text has them all, several have the rows that a cheap step leaves, many none") {
    CHECK(Users(1).sum() > 4);
    Users two(2), four(4), seven(7), eight(8);
    CHECK(two.sum() == 6);
    CHECK(two.lengths() == std::vector<size_t>{3, 3});
    CHECK(four.lengths() == std::vector<size_t>{1, 1, 1, 1});
    CHECK(seven.sum() == 1);
    CHECK(eight.sum() == 0);
    CHECK(four.sum(2) == 2);
    CHECK(Users(2, {3, true}).sum() == 3);
}

TEST_CASE("shared guesses: rows go to the texts whose guesses are right, and none where they are dear") {
    Users users(3);
    for (int i = 0; i < 6; ++i) {
        users.lengths();
        users.speculation->tell(users.texts[0], 2, 2);
        users.speculation->tell(users.texts[1], 2, i % 2);
        users.speculation->tell(users.texts[2], 2, 0);
    }
    const std::vector<size_t> lengths = users.lengths();
    CHECK(lengths[0] > lengths[1]);
    CHECK(lengths[2] == 0);
    CHECK(Users(3, {8, false}, 0.010, 0.012).sum() == 0);
    CHECK(Users(3, {8, true}, 0.010, 0.012).sum() == 5);
}

TEST_CASE("shared guesses: a method that is never right rests, and new texts know of it") {
    Users users(1);
    int rounds = 0;
    for (int i = 0; i < 250; ++i) {
        const size_t length = users.sum();
        rounds += length > 0;
        users.speculation->tell(users.texts[0], length, 0);
    }
    CHECK(rounds < 30);
    CHECK(rounds > 1);
    for (int text = 0; text < 60; ++text) {
        users.texts[0] = users.speculation->open();
        for (int i = 0; i < 5; ++i) users.speculation->tell(users.texts[0], users.sum(), 0);
    }
    const int before = users.eager->calls;
    for (int text = 0; text < 32; ++text) {
        users.texts[0] = users.speculation->open();
        for (int i = 0; i < 5; ++i) users.speculation->tell(users.texts[0], users.sum(), 0);
    }
    CHECK(users.eager->calls - before <= 10);
    CHECK(users.eager->calls > before);
}

TEST_CASE("shared guesses: a method that fails says so, and rests") {
    Users users(2);
    users.eager->fails = true;
    CHECK_FALSE(users.speculation->propose(users.drafts, 99, nullptr).ok());
    for (const TextDraft& one : users.drafts) CHECK(one.tokens.empty());
    CHECK(users.sum() == 0);
    CHECK(users.eager->calls == 1);
}

TEST_CASE("shared guesses: steps of several rows alone tell what one takes") {
    StepTimes times;
    times.measured(4, 0.0145);
    CHECK(times.one() == doctest::Approx(0.010));
}
