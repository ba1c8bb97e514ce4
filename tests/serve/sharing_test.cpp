// Requests beside each other: the same tokens as alone, beginnings read once, pages that run out.
#include "serving.h"

using namespace redline;
using namespace redline::serve;
using namespace redline::test;

namespace {

std::unique_ptr<Serving> serving_golden(const std::string& name, const SchedulerOptions& options) {
    return serving(serving_host(golden("models/" + name + ".gguf")), options);
}

struct Several {
    std::vector<std::unique_ptr<Asked>> asked;

    Asked& ask(Serving& serving, AnswerRequest request) {
        asked.push_back(std::make_unique<Asked>());
        redline::test::ask(*serving.scheduler, *asked.back(), std::move(request));
        REQUIRE_MESSAGE(asked.back()->submission.ticket, asked.back()->submission.message);
        return *asked.back();
    }

    // All start in the same step, however slow this thread is: they come while another's token is delivered.
    void ask_all(Serving& serving, const std::vector<AnswerRequest>& requests) {
        Asked gate;
        std::promise<void> reached, all_asked;
        gate.at_piece = [&] {
            reached.set_value();
            all_asked.get_future().wait();
        };
        AnswerRequest first = request_of({1, 2}, 1);
        first.cache_prompt = false;
        first.ignore_eos = true;
        redline::test::ask(*serving.scheduler, gate, first);
        reached.get_future().wait();
        for (const AnswerRequest& request : requests) {
            asked.push_back(std::make_unique<Asked>());
            redline::test::ask(*serving.scheduler, *asked.back(), request);
        }
        all_asked.set_value();
        gate.end();
        for (const auto& one : asked) REQUIRE_MESSAGE(one->submission.ticket, one->submission.message);
    }
};

std::vector<Token> joined(std::vector<Token> first, const std::vector<Token>& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

}  // namespace

TEST_CASE("scheduler: seeded requests get the same tokens alone and beside seven others") {
    const std::string demo = source_file("models/demo/redline-demo-q8_0.gguf");
    for (const std::string name : {"llama3", "qwen35", "gemma3", "mixtral", "mamba2", "demo"}) {
        INFO(name);
        HostOptions host = serving_host(name == "demo" ? demo : golden("models/" + name + ".gguf"));
        if (name == "demo") host.cache = CacheType::f16;
        const auto s = serving(host, serve_options(8, 500));
        const Model& model = *s->loaded.model;
        std::vector<AnswerRequest> requests;
        // The last ones see more than the 256 keys behind which an attention of one row is divided.
        for (uint32_t i = 0; i < 8; ++i) {
            requests.push_back(seeded_request(made_up_tokens(model, 10 + 41 * i, i), 40, 100 + i));
            requests.back().cache_prompt = false;
            requests.back().logprobs = 0;
        }
        Several alone, several;
        for (const AnswerRequest& request : requests) alone.ask(*s, request).end();
        several.ask_all(*s, requests);
        for (size_t i = 0; i < requests.size(); ++i) {
            CAPTURE(i);
            several.asked[i]->end();
            CHECK(several.asked[i]->tokens == alone.asked[i]->tokens);
            REQUIRE(several.asked[i]->logprobs.size() == 40);
            // Experts round by how many rows chose them, and states by where a prompt was cut.
            if (name == "mixtral" || name == "qwen35") continue;
            for (size_t j = 0; j < 40; ++j)
                CHECK(several.asked[i]->logprobs[j].chosen.logprob ==
                      alone.asked[i]->logprobs[j].chosen.logprob);
        }
        const Statistics statistics = s->scheduler->statistics();
        CHECK(statistics.generating_rows > statistics.generating_steps);
        CHECK(statistics.cached_tokens == 0);
    }
}

TEST_CASE("scheduler: a prompt that begins as an earlier one is read from where they differ") {
    const auto s = serving_golden("llama3", serve_options(2, 700));
    const Model& model = *s->loaded.model;
    const std::vector<Token> shared = made_up_tokens(model, 300, 1);
    const auto asked_for = [&](const std::vector<Token>& prompt, bool cached) {
        Several several;
        AnswerRequest request = seeded_request(prompt, 12, 7);
        request.cache_prompt = cached;
        Asked& one = several.ask(*s, request);
        const AnswerEnd end = one.end();
        return std::pair(one.tokens, end.cost.cached_tokens);
    };
    const auto first = asked_for(shared, true);
    CHECK(first.second == 0);
    // The same again: all but the last token, whose logits are wanted.
    const auto again = asked_for(shared, true);
    CHECK(again.second == 299);
    CHECK(again.first == first.first);
    // A conversation that goes on: the answer was read, but for its last token.
    const std::vector<Token> longer = joined(joined(shared, first.first), made_up_tokens(model, 20, 2));
    const auto uncached = asked_for(longer, false);
    CHECK(uncached.second == 0);
    const auto next = asked_for(longer, true);
    CHECK(next.second == 311);
    CHECK(next.first == uncached.first);
    // One that leaves it in the middle of a page, and in a full one.
    for (const size_t common : {270u, 100u}) {
        std::vector<Token> other(shared.begin(), shared.begin() + ptrdiff_t(common));
        other = joined(other, made_up_tokens(model, 30, 3));
        other[common] = (shared[common] + 1) % Token(model.usable_vocab());
        const auto without = asked_for(other, false);
        const auto with = asked_for(other, true);
        CHECK(with.second == common);
        CHECK(with.first == without.first);
    }
    const Statistics statistics = s->scheduler->statistics();
    CHECK(statistics.cached_tokens == 299 + 311 + 270 + 100);
    CHECK(statistics.sequences_kept > 0);
    wait_until([&] {
        const Statistics now = s->scheduler->statistics();
        return now.pages_free + now.pages_kept == now.pages;
    });
}

TEST_CASE("scheduler: requests that come together read their common beginning once") {
    const auto s = serving_golden("llama3", serve_options(4, 700));
    const Model& model = *s->loaded.model;
    const std::vector<Token> shared = made_up_tokens(model, 400, 1);
    const auto request_number = [&](uint32_t i) {
        return seeded_request(joined(shared, made_up_tokens(model, 5 + i, 10 + i)), 8, i);
    };
    Several several;
    for (uint32_t i = 0; i < 4; ++i) several.ask(*s, request_number(i));
    uint64_t cached = 0;
    std::vector<std::vector<Token>> tokens;
    for (const auto& asked : several.asked) {
        cached += asked->end().cost.cached_tokens;
        tokens.push_back(asked->tokens);
    }
    CHECK(cached == 3 * 400);
    for (uint32_t i = 0; i < 4; ++i) {
        AnswerRequest alone = request_number(i);
        alone.cache_prompt = false;
        CHECK(answer(*s->scheduler, alone) == tokens[i]);
    }
}

TEST_CASE("scheduler: models with states or windows go on from the end of a message or of an answer") {
    for (const std::string name : {"qwen35", "lfm2", "mamba2", "gemma3"}) {
        INFO(name);
        const auto s = serving_golden(name, serve_options(2, 300));
        const Model& model = *s->loaded.model;
        REQUIRE_FALSE(s->tokenizer().end_of_generation().empty());
        const Token end_of_message = s->tokenizer().end_of_generation()[0];
        const auto message = [&](size_t tokens, uint32_t seed) {
            return joined(made_up_tokens(model, tokens, seed), {end_of_message});
        };
        const auto cached_of = [&](const std::vector<Token>& prompt, std::vector<Token>& answered) {
            AnswerRequest request = seeded_request(prompt, 20, 5);
            request.cache_prompt = false;
            const std::vector<Token> alone = answer(*s->scheduler, request);
            request.cache_prompt = true;
            Several several;
            Asked& one = several.ask(*s, request);
            const uint64_t cached = one.end().cost.cached_tokens;
            answered = one.tokens;
            CHECK(answered == alone);
            return cached;
        };
        std::vector<Token> answered, other;
        const std::vector<Token> system = message(30, 1), question = message(25, 2);
        const std::vector<Token> opening = made_up_tokens(model, 3, 4);
        const std::vector<Token> talk = joined(system, question);
        CHECK(cached_of(joined(talk, opening), answered) == 0);
        // The answer stays in the conversation: it is read to its last token.
        const std::vector<Token> whole = joined(joined(talk, opening), answered);
        CHECK(cached_of(joined(whole, joined(message(10, 6), opening)), other) == whole.size() - 1);
        // It is left out, as reasoning is: the next turn begins behind the last message.
        CHECK(cached_of(joined(talk, joined(message(12, 7), opening)), other) == talk.size());
        // Another conversation with the same first message.
        CHECK(cached_of(joined(system, joined(message(12, 8), opening)), other) == system.size());
    }
}

TEST_CASE("scheduler: where pages run out the youngest request is read again later, with the same tokens") {
    SchedulerOptions options = serve_options(4, 700);
    options.cache_tokens = 5 * kPageRows;  // the prompts fit, two of the four answers do
    const auto s = serving_golden("llama3", options);
    const Model& model = *s->loaded.model;
    std::vector<AnswerRequest> requests;
    for (uint32_t i = 0; i < 4; ++i) {
        requests.push_back(seeded_request(made_up_tokens(model, 10 + i, i), 300, i));
        requests.back().cache_prompt = i % 2 == 0;
    }
    std::vector<std::vector<Token>> alone;
    for (const AnswerRequest& request : requests) alone.push_back(answer(*s->scheduler, request));
    CHECK(s->scheduler->statistics().preemptions == 0);
    Several several;
    several.ask_all(*s, requests);
    uint64_t preempted = 0;
    for (size_t i = 0; i < requests.size(); ++i) {
        const AnswerEnd end = several.asked[i]->end();
        preempted += end.cost.preempted;
        CHECK(end.reason == StopReason::max_tokens);
        CHECK(several.asked[i]->tokens == alone[i]);
    }
    CHECK(several.asked[0]->submission.ticket);
    CHECK(preempted > 0);
    CHECK(s->scheduler->statistics().preemptions == preempted);
    wait_until([&] { return s->scheduler->statistics().running() == 0; });
}

TEST_CASE(
    "scheduler: a request that has all pages ends with its context full, and a longer prompt is refused") {
    SchedulerOptions options = serve_options(2, 700);
    options.cache_tokens = kPageRows;
    const auto s = serving_golden("llama3", options);
    Several several;
    Asked& one = several.ask(*s, seeded_request(made_up_tokens(*s->loaded.model, 250, 1), -1, 1));
    CHECK(one.end().reason == StopReason::context_full);
    CHECK(one.tokens.size() == 7);
    Asked too_long;
    ask(*s->scheduler, too_long, request_of(made_up_tokens(*s->loaded.model, 257, 1)));
    CHECK(too_long.submission.refusal == Refusal::prompt_too_long);
    CHECK(too_long.submission.context == 256);
}
