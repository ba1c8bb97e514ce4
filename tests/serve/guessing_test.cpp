// Speculation in a scheduler: answers are those of plain decoding, whoever else is answered meanwhile.
#include "serving.h"
#include "support/mtp_model.h"

using namespace redline;
using namespace redline::serve;
using namespace redline::test;

namespace {

// Steps of several rows have the bits of single ones, and texts of such small models soon repeat themselves.
const std::string kDense = golden("models/llama3.gguf");

std::unique_ptr<Serving> guessing(const std::string& path, const SpeculationOptions& speculation,
                                  SchedulerOptions options = serve_options(4, 256)) {
    HostOptions host = serving_host(path);
    host.head = speculation.head();
    options.speculation = speculation;
    return serving(std::move(host), options);
}

AnswerRequest greedy(const Serving& serving, uint32_t seed, int64_t tokens = 60) {
    AnswerRequest request = request_of(made_up_tokens(*serving.loaded.model, 9, seed), tokens);
    request.ignore_eos = true;
    return request;
}

AnswerRequest seeded(const Serving& serving, uint32_t seed, int64_t tokens = 60) {
    return seeded_request(made_up_tokens(*serving.loaded.model, 9, seed), tokens, seed);
}

struct Answered {
    std::vector<std::vector<Token>> tokens;
    std::vector<AnswerCost> costs;
};

// All at once, or one after the other.
Answered answers_to(Serving& serving, const std::vector<AnswerRequest>& requests, bool together) {
    std::vector<Asked> asked(requests.size());
    Answered all;
    const auto take = [&](Asked& one) {
        const AnswerEnd end = one.end();
        CHECK_MESSAGE(end.problem.ok(), (end.problem.ok() ? "" : end.problem.error().message));
        all.tokens.push_back(one.tokens);
        all.costs.push_back(end.cost);
    };
    for (size_t i = 0; i < requests.size(); ++i) {
        ask(*serving.scheduler, asked[i], requests[i]);
        REQUIRE_MESSAGE(asked[i].submission.ticket, asked[i].submission.message);
        if (!together) take(asked[i]);
    }
    for (size_t i = 0; together && i < requests.size(); ++i) take(asked[i]);
    return all;
}

std::vector<AnswerRequest> mixed_requests(const Serving& serving) {
    return {greedy(serving, 1), seeded(serving, 2), greedy(serving, 3), seeded(serving, 4)};
}

bool looks_up(const SpeculationOptions& how) {
    return how.type == SpeculationType::automatic || how.type == SpeculationType::ngram_simple;
}

uint64_t drafted(const Answered& all) {
    uint64_t sum = 0;
    for (const AnswerCost& cost : all.costs) sum += cost.drafted;
    return sum;
}

}  // namespace

TEST_CASE("guessing: greedy and seeded answers are those without guesses, alone and beside others") {
    const HeadFile head("llama3"), second("llama3", true), hybrid("qwen35");
    const auto check = [](const std::string& path, const SpeculationOptions& how) {
        INFO(path, " ", int(how.type), " ", how.draft_model);
        const auto plain = guessing(path, {}), guesses = guessing(path, how);
        const std::vector<AnswerRequest> requests = mixed_requests(*plain);
        const Answered want = answers_to(*plain, requests, false);
        CHECK(drafted(want) == 0);
        for (const bool together : {false, true}) {
            CAPTURE(together);
            const Answered got = answers_to(*guesses, requests, together);
            CHECK(got.tokens == want.tokens);
            if (!looks_up(how)) CHECK(drafted(got) > 0);
        }
    };
    check(kDense, {.type = SpeculationType::ngram_simple});
    check(kDense, {.type = SpeculationType::automatic});
    check(kDense, {.type = SpeculationType::draft_simple, .draft_model = kDense});
    check(kDense, {.type = SpeculationType::draft_mtp, .draft_model = second.path});
    check(head.path, {.type = SpeculationType::draft_mtp});
    check(head.path, {.type = SpeculationType::draft_mtp, .most = 3});
    check(hybrid.path, {.type = SpeculationType::draft_mtp});
    check(golden("models/gemma3.gguf"), {.type = SpeculationType::ngram_simple});
}

TEST_CASE("guessing: limits, stop strings, grammars, logprobs and forced tokens are those without guesses") {
    const auto plain = guessing(kDense, {}),
               guesses = guessing(kDense, {.type = SpeculationType::draft_simple, .draft_model = kDense});
    Asked whole;
    ask(*plain->scheduler, whole, greedy(*plain, 5));
    whole.end();
    REQUIRE(whole.text.size() > 40);
    const auto requests = [&](const Serving& serving) {
        std::vector<AnswerRequest> all(9, greedy(serving, 5));
        for (int64_t i = 0; i < 4; ++i) all[size_t(i)].max_tokens = 7 + i;
        all[4].stops = {whole.text.substr(whole.text.size() / 2, 5)};
        all[5].logprobs = 2;
        all[6].constraint =
            must(make_constraint(*serving.loaded.model, must(Grammar::parse("root ::= [a-z ]{20}"))));
        all[7].forced = [times = std::make_shared<int>(0)]() -> std::vector<Token> {
            if (++*times != 9) return {};
            return {70, 71};
        };
        all[8].stop_tokens = {whole.tokens[whole.tokens.size() / 2]};
        return all;
    };
    const auto answers = [&](Serving& serving) {
        std::vector<std::unique_ptr<Asked>> all;
        for (const AnswerRequest& request : requests(serving)) {
            all.push_back(std::make_unique<Asked>());
            ask(*serving.scheduler, *all.back(), request);
            all.back()->ended.wait();
        }
        return all;
    };
    const auto want = answers(*plain), got = answers(*guesses);
    for (size_t i = 0; i < want.size(); ++i) {
        CAPTURE(i);
        const AnswerEnd a = want[i]->end(), b = got[i]->end();
        CHECK(a.reason == b.reason);
        CHECK(a.stop == b.stop);
        CHECK(a.stop_token == b.stop_token);
        CHECK(a.cost.generated_tokens == b.cost.generated_tokens);
        CHECK(want[i]->tokens == got[i]->tokens);
        CHECK(want[i]->text == got[i]->text);
        REQUIRE(want[i]->logprobs.size() == got[i]->logprobs.size());
        for (size_t k = 0; k < want[i]->logprobs.size(); ++k)
            CHECK(want[i]->logprobs[k].chosen.logprob ==
                  doctest::Approx(got[i]->logprobs[k].chosen.logprob).epsilon(1e-3));
        CHECK(b.cost.drafted > 0);
        CHECK(b.cost.accepted > 0);
    }
}

TEST_CASE("guessing: forced tokens that follow what was sent come where they come without guesses") {
    const auto answer_with = [](const SpeculationOptions& how) {
        const auto serving = guessing(kDense, how);
        Asked asked;
        AnswerRequest request = greedy(*serving, 5, 40);
        request.forced = [&asked, done = std::make_shared<bool>(false)]() -> std::vector<Token> {
            if (asked.tokens.size() < 20 || std::exchange(*done, true)) return {};
            return {70, 71, 72};
        };
        ask(*serving->scheduler, asked, request);
        asked.end();
        return asked.tokens;
    };
    const std::vector<Token> want = answer_with({});
    REQUIRE(want.size() == 40);
    CHECK(std::vector<Token>(want.begin() + 20, want.begin() + 23) == std::vector<Token>{70, 71, 72});
    CHECK(answer_with({.type = SpeculationType::draft_simple, .draft_model = kDense}) == want);
}

TEST_CASE("guessing: a text that repeats itself is looked up, and goes on where it does not") {
    SpeculationOptions how{.type = SpeculationType::ngram_simple};
    const ChainModel chain;
    SchedulerOptions options = serve_options(2, 128);
    const auto plain = serving_chain(options, chain);
    options.speculation = how;
    const auto guesses = serving_chain(options, chain);
    const std::vector<Token> prompt = plain->tokenizer().encode("abcdefghijklmnopqrsabcdefghijklm");
    const auto ask_both = [&](Serving& serving) { return answers_to(serving, {request_of(prompt)}, false); };
    const Answered want = ask_both(*plain), got = ask_both(*guesses);
    CHECK(got.tokens == want.tokens);
    CHECK(got.costs[0].accepted >= 4);
    CHECK(got.costs[0].drafted > got.costs[0].accepted);
}

TEST_CASE("guessing: a model that drafts for itself is right, and what came of guesses is counted") {
    const auto s = guessing(kDense, {.type = SpeculationType::draft_simple, .draft_model = kDense});
    const Answered got = answers_to(*s, {greedy(*s, 1, 80)}, false);
    const AnswerCost& cost = got.costs[0];
    CHECK(cost.generated_tokens == 80);
    CHECK(cost.drafted >= 60);
    CHECK(cost.accepted * 10 > cost.drafted * 9);
    const Statistics counted = s->scheduler->statistics();
    CHECK(counted.draft_methods == "draft-simple");
    CHECK(counted.most_drafted == 8);
    CHECK(counted.drafted == cost.drafted);
    CHECK(counted.accepted == cost.accepted);
    CHECK(counted.drafts >= cost.drafted / 8);
    CHECK(counted.generating_steps < 30);
    CHECK(counted.generated_tokens == 80);
    REQUIRE(counted.accepted_at.size() == 8);
    CHECK(counted.accepted_at[0] >= counted.accepted_at[7]);
    CHECK(counted.inter_token.count() == 79);
}

TEST_CASE("guessing: requests that are cancelled or whose pages others take leave no trace") {
    const SpeculationOptions how{.type = SpeculationType::draft_simple, .draft_model = kDense};
    SchedulerOptions tight = serve_options(4, 512);
    tight.cache_tokens = 5 * kPageRows;  // the prompts fit, two of the four answers do
    const auto plain = guessing(kDense, {}, serve_options(4, 512)), guesses = guessing(kDense, how, tight);
    std::vector<AnswerRequest> requests;
    for (uint32_t i = 0; i < 4; ++i) requests.push_back(greedy(*plain, 10 + i, 300));
    const Answered want = answers_to(*plain, requests, false);
    Asked cancelled;
    std::promise<void> asked;
    cancelled.at_piece = [&, has_ticket = asked.get_future().share()] {
        has_ticket.wait();
        if (cancelled.tokens.size() > 40) cancelled.submission.ticket->cancel();
    };
    const Answered got = answers_to(*guesses, requests, true);
    CHECK(got.tokens == want.tokens);
    ask(*guesses->scheduler, cancelled, greedy(*guesses, 77, 400));
    asked.set_value();
    CHECK(cancelled.end().reason == StopReason::cancelled);
    CHECK(answers_to(*guesses, requests, false).tokens == want.tokens);
}

TEST_CASE("guessing: kept sequences serve conversations that go on, whatever a model's layers keep") {
    const HeadFile dense("llama3"), hybrid("qwen35");
    for (const HeadFile* file : {&dense, &hybrid}) {
        INFO(file->path);
        const auto plain = guessing(file->path, {}),
                   guesses = guessing(file->path, {.type = SpeculationType::draft_mtp});
        const auto talk = [](Serving& serving) {
            std::vector<Token> text = made_up_tokens(*serving.loaded.model, 40, 3);
            uint64_t cached = 0;
            for (int turn = 0; turn < 3; ++turn) {
                AnswerRequest request = request_of(text, 21);
                request.ignore_eos = true;
                const Answered got = answers_to(serving, {request}, false);
                text.insert(text.end(), got.tokens[0].begin(), got.tokens[0].end());
                for (const Token token : made_up_tokens(*serving.loaded.model, 5, uint32_t(turn)))
                    text.push_back(token);
                cached += got.costs[0].cached_tokens;
            }
            return std::make_pair(text, cached);
        };
        const auto want = talk(*plain), got = talk(*guesses);
        CHECK(got.first == want.first);
        CHECK(got.second == want.second);
        CHECK(got.second > 60);
    }
}
