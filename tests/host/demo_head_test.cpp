// The MTP head of the demo model, which is trained: most of its guesses are right.
#include "engine/generate.h"
#include "speculate/mtp_head.h"
#include "speculate/speculation.h"
#include "support/backends.h"
#include "support/models.h"
#include "text/chat/chat_format.h"

#include <doctest/doctest.h>

using namespace redline;
using namespace redline::test;

namespace {

// Answers and a story whose likeliest tokens are well ahead of the next ones: demo_test.
constexpr const char* kAsked[] = {
    "What is GGUF?",    "Which quant should I use?", "What is the KV cache?",        "Who are you?",
    "What is prefill?", "How much is 12 plus 30?",   "What is the capital of Japan?"};
constexpr const char* kStory = "Tell me a story about a fox";

constexpr uint64_t kDrafts = 3;

class DemoWithHead {
public:
    explicit DemoWithHead(Backend& backend)
        : model_(must(Model::load(demo(), backend, {0, {}, ReadHead::required}))),
          format_(must(ChatFormat::detect(model_.gguf().metadata(), model_.tokenizer()))) {}

    // `sampled`: the seed; 0: greedy.
    Generation answer(const std::string& question, uint64_t drafts, int64_t tokens, uint32_t sampled = 0) {
        Session session = must(Session::create(
            model_, {.context = 512, .outputs = uint32_t(1 + drafts), .drafts = uint32_t(drafts)}));
        SamplerOptions how;
        how.temperature = 0.0f;
        // From the whole distribution: with the usual cuts texts are nearly always the greedy ones.
        if (sampled > 0)
            how.temperature = 1.0f, how.seed = sampled, how.top_k = 0, how.top_p = 1.0f, how.min_p = 0.0f;
        Sampler sampler = must(make_sampler(model_, how, false, 512));
        must(read_prompt(session, sampler, format_.encode(model_.tokenizer(), {{Role::user, question}})));
        GenerateOptions generating;
        generating.max_tokens = tokens;
        std::vector<std::unique_ptr<Proposer>> heads;
        heads.push_back(std::make_unique<MtpProposer>(session.engine(), session.sequence()));
        Speculation speculation(std::move(heads), {drafts, true});
        if (drafts > 0) generating.drafter = &speculation;
        return must(generate(session, sampler, generating, {}));
    }

private:
    Model model_;
    ChatFormat format_;
};

// Steps of the model: each reads one token that it chose itself.
uint64_t model_steps(const Generation& one) {
    return one.steps - one.accepted;
}

}  // namespace

TEST_CASE("demo head: answers and a story are those without guesses, in far fewer steps") {
    const auto backend = test::cpu();
    DemoWithHead model(*backend);
    uint64_t tokens = 0, steps = 0;
    for (const char* question : kAsked) {
        CAPTURE(question);
        const Generation guessed = model.answer(question, kDrafts, 150);
        CHECK(guessed.tokens == model.answer(question, 0, 150).tokens);
        tokens += guessed.steps;
        steps += model_steps(guessed);
    }
    MESSAGE("answers: ", double(tokens) / double(steps), " tokens of a step");
    CHECK(2 * tokens >= 5 * steps);
    const Generation story = model.answer(kStory, kDrafts, 200);
    CHECK(story.tokens == model.answer(kStory, 0, 200).tokens);
    MESSAGE("a story: ", double(story.steps) / double(model_steps(story)), " tokens of a step");
    CHECK(story.steps >= 3 * model_steps(story));
}

TEST_CASE("demo head: nine of ten first guesses are right, and four of five of sampled tokens") {
    const auto backend = test::cpu();
    DemoWithHead model(*backend);
    const Generation greedy = model.answer(kStory, 1, 120);
    MESSAGE("greedy: ", greedy.accepted, " of ", greedy.drafted, " guesses");
    CHECK(10 * greedy.accepted >= 9 * greedy.drafted);
    uint64_t proposed = 0, accepted = 0, others = 0;
    for (uint32_t seed = 1; seed <= 4; ++seed) {
        const Generation guessed = model.answer(kStory, 1, 120, seed);
        proposed += guessed.drafted;
        accepted += guessed.accepted;
        others += guessed.tokens != greedy.tokens;
    }
    MESSAGE("sampled: ", accepted, " of ", proposed, " guesses, in ", others, " other texts");
    CHECK(others >= 3);
    CHECK(5 * accepted >= 4 * proposed);
}

TEST_CASE("demo head: every backend guesses what the CPU does") {
    const auto reference = test::cpu();
    DemoWithHead first(*reference);
    const Generation wanted = first.answer(kAsked[1], kDrafts, 60);
    for (const auto& backend : all_test_backends(false)) {
        CAPTURE(backend->device().name);
        DemoWithHead other(*backend);
        const Generation got = other.answer(kAsked[1], kDrafts, 60);
        CHECK(got.text == wanted.text);
        // A near tie of two guesses may fall either way; the text has none.
        CHECK(got.accepted + 2 >= wanted.accepted);
    }
}
