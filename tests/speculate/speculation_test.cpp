// Guesses of what follows: how they are found, how long they are, and that the text is the model's in any
// case.
#include "speculate/speculation.h"
#include "engine/generate.h"
#include "speculate/draft_model.h"
#include "speculate/mtp_head.h"
#include "speculate/ngram.h"
#include "support/material.h"
#include "support/mtp_model.h"

#include <doctest/doctest.h>

using namespace redline;
using namespace redline::test;

namespace {

std::vector<Token> guess_of(Proposer& proposer, const std::vector<Token>& text, size_t most) {
    return must(proposer.propose({std::span(text).first(text.size() - 1), text.back()}, most, nullptr));
}

// A model on one thread. Of f32 weights, a step of several rows has the logits of single ones but for the
// last bits; of quantized ones it is only close, and texts part at the first near tie.
struct Bed {
    explicit Bed(const std::string& path, ReadHead head = ReadHead::no)
        : model(std::make_unique<Model>(must(Model::load(path, *backend, {256, {}, head})))),
          session(must(Session::create(
              *model, {.context = 256, .batch = 64, .outputs = 9, .cache = CacheType::f32, .drafts = 8}))) {}
    std::unique_ptr<Backend> backend = redline::test::cpu(1);
    std::unique_ptr<Model> model;
    Session session;
};
const std::string kExact = source_file("tests/golden/models/llama3.gguf");

// Guesses what a text was before, with every `wrong`-th token spoilt; 0: none.
class Script : public Drafter {
public:
    Script(std::vector<Token> text, size_t wrong, size_t most)
        : text_(std::move(text)), wrong_(wrong), most_(most) {}
    Result<std::vector<Token>> propose(std::span<const Token> read, Token, size_t most,
                                       const std::atomic<bool>*) override {
        std::vector<Token> guess;
        for (size_t i = read.size() + 1; i < text_.size() && guess.size() < std::min(most, most_); ++i)
            guess.push_back(wrong_ > 0 && i % wrong_ == 0 ? (text_[i] == 5 ? 6 : 5) : text_[i]);
        return guess;
    }
    void tell(const DraftRound& round) override {
        ++rounds;
        accepted += round.accepted;
    }
    uint64_t rounds = 0, accepted = 0;

private:
    std::vector<Token> text_;
    size_t wrong_, most_;
};

constexpr const char* kPrompt = "Once upon a time there was a little robot who";

Generation written(Bed& bed, float temperature, GenerateOptions options, Drafter* drafter) {
    SamplerOptions how;
    how.temperature = temperature;
    how.seed = 11;
    Sampler sampler = must(make_sampler(*bed.model, how, true, 256));
    bed.session.rewind(0);
    const std::vector<Token> prompt = bed.model->tokenizer().encode(kPrompt);
    must(read_prompt(bed.session, sampler, prompt));
    options.drafter = drafter;
    return must(generate(bed.session, sampler, options, {}));
}

std::vector<Token> whole(const Bed& bed, const Generation& plain) {
    std::vector<Token> text = bed.model->tokenizer().encode(kPrompt);
    text.insert(text.end(), plain.tokens.begin(), plain.tokens.end());
    return text;
}

}  // namespace

TEST_CASE("ngrams: a text goes on as it did after the last place with the same tokens") {
    NgramProposer proposer(3);
    CHECK(guess_of(proposer, {1, 2, 3}, 4).empty());
    CHECK(guess_of(proposer, {1, 2, 3, 4, 5, 6, 1, 2}, 4).empty());
    CHECK(guess_of(proposer, {1, 2, 3, 4, 5, 6, 1, 2, 3}, 2) == std::vector<Token>{4, 5});
    CHECK(guess_of(proposer, {1, 2, 3, 4, 5, 6, 1, 2, 3}, 99) == std::vector<Token>{4, 5, 6, 1, 2, 3});
    // The last place counts.
    CHECK(guess_of(proposer, {1, 2, 3, 4, 5, 6, 1, 2, 3, 7, 1, 2, 3}, 1) == std::vector<Token>{7});
    // After another text with the same length nothing of the first is left.
    CHECK(guess_of(proposer, {9, 9, 9, 4, 5, 6, 1, 2, 3, 7, 1, 2, 3}, 1) == std::vector<Token>{7});
    CHECK(guess_of(proposer, {9, 8, 9, 4, 1, 2, 3}, 1).empty());
}

TEST_CASE("draft length: sure guesses are long, unsure ones short, and dear steps make them shorter") {
    StepTimes times;
    times.measured(1, 0.01);
    for (int i = 0; i < 30; ++i) times.measured(5, 0.014);
    CHECK(times.cost(3) == doctest::Approx(1.2));
    CHECK(best_draft_length(0.95, 0.0, 8, times).tokens == 8);
    CHECK(best_draft_length(0.5, 0.0, 8, times).tokens == 2);
    CHECK(best_draft_length(0.05, 0.0, 8, times).gain < 1.0);
    CHECK(best_draft_length(0.8, 0.3, 8, times).tokens < best_draft_length(0.8, 0.0, 8, times).tokens);
    for (int i = 0; i < 30; ++i) times.measured(2, 0.02);
    CHECK(best_draft_length(0.7, 0.0, 8, times).gain < 1.0);
}

namespace {

// Guesses as much as it may.
class Willing : public Proposer {
public:
    std::string_view name() const override { return "willing"; }
    Result<std::vector<Token>> propose(const DraftText&, size_t most, const std::atomic<bool>*) override {
        return std::vector<Token>(most, 1);
    }
};

// The lengths of 400 guesses of which so many tokens are right, whose steps take these seconds.
std::vector<size_t> lengths(const std::optional<AssumedCosts>& assumed, size_t right, double one,
                            double further) {
    std::vector<std::unique_ptr<Proposer>> methods;
    methods.push_back(std::make_unique<Willing>());
    Speculation speculation(std::move(methods), {8, false, assumed});
    std::vector<size_t> all;
    const std::vector<Token> read(3, 1);
    for (int i = 0; i < 400; ++i) {
        const size_t n = must(speculation.propose(read, 1, 8, nullptr)).size();
        all.push_back(n);
        speculation.tell({n, std::min(n, right), one + further * double(n)});
    }
    return all;
}

}  // namespace

TEST_CASE("speculation: with assumed costs what steps take decides nothing, so that texts come again") {
    const AssumedCosts assumed{{1.0, 1.4, 1.4, 1.4, 1.4, 1.6, 1.6, 1.6, 1.6}, 0.05};
    const std::vector<size_t> lasts = lengths(assumed, 4, 0.01, 0.001);
    CHECK(lasts == lengths(assumed, 4, 0.001, 0.1));
    CHECK(lasts.front() > 0);
    CHECK(lasts.back() > 1);
    CHECK(lengths({}, 4, 0.001, 0.1) != lasts);
    // Guesses that are always wrong rest.
    const std::vector<size_t> wrong = lengths(assumed, 0, 0.01, 0.0);
    CHECK(std::count(wrong.begin(), wrong.end(), size_t(0)) > 380);
}

// A head is right more often than not, and is wrong several times in a row now and then.
TEST_CASE("speculation: unlucky guesses at first do not end a method that pays") {
    std::vector<std::unique_ptr<Proposer>> methods;
    methods.push_back(std::make_unique<Willing>());
    const AssumedCosts mixture{{1.0, 1.3, 1.5, 1.8, 2.0}, 0.08};
    Speculation speculation(std::move(methods), {4, false, mixture});
    const std::vector<Token> read(3, 1);
    size_t guessed = 0;
    for (int i = 0; i < 40; ++i) {
        const size_t n = must(speculation.propose(read, 1, 4, nullptr)).size();
        const bool right = i >= 2 && i % 4 != 3;
        speculation.tell({n, right ? n : 0, 0.01});
        if (n > 0) ++guessed;
    }
    CHECK(guessed == 40);
}

TEST_CASE("speculation: steps that were slow once, as the first of a kind are, do not end guesses for good") {
    std::vector<std::unique_ptr<Proposer>> methods;
    methods.push_back(std::make_unique<Willing>());
    Speculation speculation(std::move(methods), {4, false, {}});
    const std::vector<Token> read(3, 1);
    size_t guessed = 0;
    for (int i = 0; i < 2000; ++i) {
        const size_t n = must(speculation.propose(read, 1, 4, nullptr)).size();
        const bool slow = i < 12 || (i > 100 && i < 110);
        speculation.tell({n, n, 0.01 * (slow && n > 0 ? 60.0 : 1.0 + 0.05 * double(n))});
        if (i >= 1000 && n > 0) ++guessed;
    }
    CHECK(guessed > 990);
}

TEST_CASE("speculation: the text is the same with guesses that are right, often wrong, and always wrong") {
    Bed bed(kExact);
    GenerateOptions options;
    options.max_tokens = 150;
    for (const float temperature : {0.0f, 1.0f}) {
        const Generation plain = written(bed, temperature, options, nullptr);
        REQUIRE(plain.tokens.size() > 30);
        for (const size_t wrong : {0u, 1u, 2u, 3u, 7u})
            for (const size_t most : {1u, 3u, 8u}) {
                Script script(whole(bed, plain), wrong, most);
                const Generation guessed = written(bed, temperature, options, &script);
                CHECK(guessed.text == plain.text);
                CHECK(guessed.tokens == plain.tokens);
                CHECK(guessed.reason == plain.reason);
                CHECK(guessed.steps == plain.steps);
                CHECK(guessed.rounds > 0);
                CHECK(guessed.accepted == script.accepted);
                if (wrong == 1) CHECK(guessed.accepted == 0);
                if (wrong == 0 && most == 8) CHECK(script.rounds <= plain.tokens.size() / 9 + 3);
                CHECK(bed.session.position() + 1 == whole(bed, plain).size());
            }
    }
}

TEST_CASE("speculation: stop strings, the limit of tokens and logprobs are those of plain decoding") {
    Bed bed(kExact);
    GenerateOptions options;
    options.max_tokens = 60;
    const Generation plain = written(bed, 0.0f, options, nullptr);
    for (int64_t limit = 1; limit < 20; ++limit) {
        options.max_tokens = limit;
        Script script(whole(bed, plain), 5, 8);
        const Generation guessed = written(bed, 0.0f, options, &script);
        CHECK(guessed.tokens == std::vector<Token>(plain.tokens.begin(), plain.tokens.begin() + limit));
        CHECK(guessed.reason == StopReason::max_tokens);
    }
    options.max_tokens = 60;
    const std::string middle = plain.text.substr(plain.text.size() / 2, 6);
    options.stops = {middle};
    const Generation stopped = written(bed, 0.0f, options, nullptr);
    Script script(whole(bed, plain), 0, 8);
    const Generation guessed = written(bed, 0.0f, options, &script);
    CHECK(guessed.text == stopped.text);
    CHECK(guessed.stop == middle);
    CHECK(guessed.tokens == stopped.tokens);
    options.stops.clear();
    options.logprobs = 2;
    const Generation scored = written(bed, 0.0f, options, nullptr);
    Script again(whole(bed, plain), 4, 8);
    const Generation also = written(bed, 0.0f, options, &again);
    REQUIRE(also.logprobs.size() == scored.logprobs.size());
    for (size_t i = 0; i < scored.logprobs.size(); ++i) {
        CHECK(also.logprobs[i].chosen.token == scored.logprobs[i].chosen.token);
        CHECK(also.logprobs[i].chosen.logprob ==
              doctest::Approx(scored.logprobs[i].chosen.logprob).epsilon(1e-3));
    }
}

TEST_CASE("speculation: a model that drafts for itself is right, and a method that never is rests") {
    Bed bed(demo());
    GenerateOptions options;
    options.max_tokens = 120;
    const Generation plain = written(bed, 0.0f, options, nullptr);
    std::vector<std::unique_ptr<Proposer>> itself;
    must(check_draft_vocabulary(*bed.model, *bed.model));
    itself.push_back(std::make_unique<DraftModelProposer>(
        must(Session::create(*bed.model, {.context = 256, .batch = 64}))));
    Speculation drafts(std::move(itself), {4, true});
    const Generation drafted = written(bed, 0.0f, options, &drafts);
    CHECK(drafted.tokens.size() == plain.tokens.size());
    CHECK(drafted.accepted * 10 > drafted.drafted * 9);
    class Wrong : public Proposer {
    public:
        std::string_view name() const override { return "wrong"; }
        Result<std::vector<Token>> propose(const DraftText& text, size_t most,
                                           const std::atomic<bool>*) override {
            return std::vector<Token>(most, text.last);
        }
    };
    std::vector<std::unique_ptr<Proposer>> wrong;
    wrong.push_back(std::make_unique<Wrong>());
    Speculation rests(std::move(wrong), {4, false, AssumedCosts{{1.0, 1.3, 1.5, 1.7, 1.9}, 0.0}});
    CHECK(written(bed, 0.0f, options, &rests).accepted == 0);
    REQUIRE(rests.results().size() == 1);
    CHECK(rests.results()[0].rounds < 20);
}

TEST_CASE("speculation: the text is the same with an MTP head, whatever a model's layers keep") {
    for (const char* name : {"llama3", "qwen35", "deepseek2-v2", "glm4"}) {
        INFO(name);
        const HeadFile file(name);
        Bed bed(file.path, ReadHead::required);
        GenerateOptions options;
        options.max_tokens = 120;
        for (const float temperature : {0.0f, 1.0f}) {
            const Generation plain = written(bed, temperature, options, nullptr);
            for (const uint64_t most : {1u, 3u, 8u}) {
                std::vector<std::unique_ptr<Proposer>> heads;
                heads.push_back(std::make_unique<MtpProposer>(bed.session.engine(), bed.session.sequence()));
                Speculation drafts(std::move(heads), {most, true});
                const Generation guessed = written(bed, temperature, options, &drafts);
                CHECK(guessed.tokens == plain.tokens);
                CHECK(guessed.text == plain.text);
                CHECK(guessed.rounds > 20);
                CHECK(drafts.results()[0].proposed == guessed.drafted);
            }
        }
    }
}

TEST_CASE("speculation: models with states take back guesses that are right, often wrong, and always wrong") {
    for (const char* name : {"qwen35", "lfm2", "mamba2"}) {
        INFO(name);
        Bed bed(golden(std::string("models/") + name + ".gguf"));
        GenerateOptions options;
        options.max_tokens = 100;
        for (const float temperature : {0.0f, 1.0f}) {
            const Generation plain = written(bed, temperature, options, nullptr);
            for (const size_t wrong : {0u, 1u, 3u})
                for (const size_t most : {2u, 8u}) {
                    Script script(whole(bed, plain), wrong, most);
                    const Generation guessed = written(bed, temperature, options, &script);
                    CHECK(guessed.tokens == plain.tokens);
                    CHECK(guessed.accepted == script.accepted);
                    CHECK(bed.session.position() + 1 == whole(bed, plain).size());
                }
        }
    }
}

TEST_CASE("speculation: the first guess of a method, which may have read a prompt, does not count as slow") {
    class SlowAtFirst : public Proposer {
    public:
        std::string_view name() const override { return "slow at first"; }
        Result<std::vector<Token>> propose(const DraftText&, size_t most, const std::atomic<bool>*) override {
            if (std::exchange(first_, false)) std::this_thread::sleep_for(std::chrono::milliseconds(80));
            return std::vector<Token>(most, 1);
        }

    private:
        bool first_ = true;
    };
    std::vector<std::unique_ptr<Proposer>> methods;
    methods.push_back(std::make_unique<SlowAtFirst>());
    Speculation speculation(std::move(methods), {4, false});
    const std::vector<Token> read = {1, 2, 3};
    speculation.tell({0, 0, 0.01});
    for (int round = 0; round < 2; ++round) {
        const std::vector<Token> guess = must(speculation.propose(read, 4, 4, nullptr));
        REQUIRE(!guess.empty());
        speculation.tell({guess.size(), guess.size(), 0.011});
    }
    CHECK(speculation.results()[0].rounds == 2);
    CHECK(speculation.results()[0].gain > 1.0);
}

TEST_CASE("speculation: a method that is never right costs less than 3 % once it has rested") {
    class NeverRight : public Proposer {
    public:
        std::string_view name() const override { return "never right"; }
        Result<std::vector<Token>> propose(const DraftText&, size_t most, const std::atomic<bool>*) override {
            return std::vector<Token>(most, 1);
        }
    };
    const std::vector<Token> read = {1, 2, 3};
    for (const double each : {0.02, 0.05, 0.15, 0.3, 0.6}) {
        CAPTURE(each);
        std::vector<std::unique_ptr<Proposer>> methods;
        methods.push_back(std::make_unique<NeverRight>());
        Speculation speculation(std::move(methods), {8, false});
        double spent = 0.0;  // in steps of one row
        constexpr int kFirst = 256, kTokens = 4096;
        for (int token = 0; token < kFirst + kTokens; ++token) {
            const std::vector<Token> guess = must(speculation.propose(read, 4, 8, nullptr));
            const double steps = 1.0 + each * double(guess.size());
            speculation.tell({guess.size(), 0, 0.01 * steps});
            if (token >= kFirst) spent += steps;
        }
        CHECK(spent / kTokens < 1.03);
    }
}
