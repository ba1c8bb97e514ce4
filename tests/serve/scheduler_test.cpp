// The scheduler: answers, their ends, what is refused, and what happens to requests that share a model.
#include "serving.h"

using namespace redline;
using namespace redline::serve;
using namespace redline::test;

namespace {

std::vector<Token> prompt_of(const Serving& serving, const std::string& text) {
    return serving.tokenizer().encode(text);
}

Asked& ask(Serving& serving, Asked& asked, AnswerRequest request) {
    ask(*serving.scheduler, asked, std::move(request));
    REQUIRE_MESSAGE(asked.submission.ticket, asked.submission.message);
    return asked;
}

constexpr Token letter(char which) {
    return ChainModel::kLetterA + (which - 'a');
}

}  // namespace

TEST_CASE("scheduler: an answer comes in pieces, and its end says why and what it took") {
    const auto s = serving_chain(serve_options(2));
    Asked asked;
    ask(*s, asked, request_of(prompt_of(*s, "a")));
    const AnswerEnd end = asked.end();
    CHECK(asked.text == ChainModel::kWholeText);
    CHECK(asked.tokens.size() == 29);
    CHECK(asked.pieces >= 29);
    CHECK(end.reason == StopReason::end_of_generation);
    CHECK(end.stop_token == ChainModel::kEos);
    CHECK(end.problem.ok());
    CHECK(end.cost.prompt_tokens == 2);
    CHECK(end.cost.cached_tokens == 0);
    CHECK(end.cost.generated_tokens == 29);
    CHECK(end.cost.prompt_seconds > 0.0);
    CHECK(end.cost.generation_seconds > 0.0);
    CHECK(end.cost.preempted == 0);
    CHECK(asked.progress == std::vector<uint64_t>{2});
    const Statistics statistics = s->scheduler->statistics();
    CHECK(statistics.generated_tokens == 29);
    CHECK(statistics.prompt_tokens == 2);
    CHECK(statistics.first_token.count() == 1);
    CHECK(statistics.inter_token.count() == 28);
    CHECK(statistics.whole.count() == 1);
    CHECK(statistics.ended_stop == 1);
}

TEST_CASE("scheduler: limits, stop strings, stop tokens and forced tokens end or change an answer") {
    const auto s = serving_chain(serve_options(4));
    Asked none, three, fewest, string, token, forced, full;
    ask(*s, none, request_of(prompt_of(*s, "abc"), 0));
    ask(*s, three, request_of(prompt_of(*s, "a"), 3));
    AnswerRequest request = request_of(prompt_of(*s, "a"));
    request.stops = {"zzz", "klm"};
    ask(*s, string, request);
    request = request_of(prompt_of(*s, "a"));
    request.stop_tokens = {letter('e')};
    ask(*s, token, request);
    request.min_tokens = 6;
    request.max_tokens = 7;
    ask(*s, fewest, request);
    request = request_of(prompt_of(*s, "a"), 4);
    request.forced = [times = std::make_shared<int>(0)]() -> std::vector<Token> {
        if (++*times != 2) return {};
        return {letter('x'), letter('y')};
    };
    ask(*s, forced, request);
    ask(*s, full, request_of(std::vector<Token>(60, letter('a'))));

    CHECK(none.end().reason == StopReason::max_tokens);
    CHECK(none.tokens.empty());
    CHECK(none.progress == std::vector<uint64_t>{4});
    CHECK(three.end().reason == StopReason::max_tokens);
    CHECK(three.text == "bcd");
    const AnswerEnd at_string = string.end();
    CHECK(at_string.reason == StopReason::stop_string);
    CHECK(at_string.stop == "klm");
    CHECK(string.text == "bcdefghij");
    const AnswerEnd at_token = token.end();
    CHECK(at_token.reason == StopReason::end_of_generation);
    CHECK(at_token.stop_token == letter('e'));
    CHECK(token.text == "bcd");
    fewest.end();
    CHECK(fewest.tokens.size() >= 6);
    forced.end();
    CHECK(forced.text == "bxyz");
    CHECK(full.end().reason == StopReason::context_full);
    CHECK(full.text == "bcdef");  // the last of them is not read
}

TEST_CASE("scheduler: logprobs come with each token, and a grammar binds its request alone") {
    const auto s = serving_chain(serve_options(3));
    Asked scored, bound, free;
    AnswerRequest request = request_of(prompt_of(*s, "a"), 5);
    request.logprobs = 2;
    ask(*s, scored, request);
    request = request_of(prompt_of(*s, "a"), 9);
    request.constraint = must(make_constraint(*s->loaded.model, must(Grammar::parse("root ::= \"bcx\""))));
    ask(*s, bound, request);
    ask(*s, free, request_of(prompt_of(*s, "a"), 5));
    scored.end();
    REQUIRE(scored.logprobs.size() == 5);
    for (size_t i = 0; i < 5; ++i) {
        CHECK(scored.logprobs[i].chosen.token == scored.tokens[i]);
        CHECK(scored.logprobs[i].top.size() == 2);
    }
    CHECK(bound.end().reason == StopReason::end_of_generation);
    CHECK(bound.text == "bcx");
    free.end();
    CHECK(free.text == "bcdef");
    CHECK(free.logprobs.empty());
}

TEST_CASE("scheduler: what cannot be served is refused by kind, with the numbers") {
    SchedulerOptions options = serve_options(1);
    options.queue = 2;
    const auto s = serving_chain(options);
    const auto refused = [&](AnswerRequest request) {
        Asked asked;
        ask(*s->scheduler, asked, std::move(request));
        CHECK_FALSE(asked.submission.ticket);
        CHECK_FALSE(asked.submission.message.empty());
        return asked.submission;
    };
    CHECK(refused(request_of({})).refusal == Refusal::invalid);
    CHECK(refused(request_of({1, 5000})).refusal == Refusal::invalid);
    AnswerRequest odd = request_of({1, 2});
    odd.sampling.samplers = "nonsense";
    CHECK(refused(odd).refusal == Refusal::invalid);
    const Submission too_long = refused(request_of(std::vector<Token>(65, letter('a'))));
    CHECK(too_long.refusal == Refusal::prompt_too_long);
    CHECK(too_long.prompt_tokens == 65);
    CHECK(too_long.context == 64);

    // The first waits in its first piece while others come.
    std::promise<void> go;
    Asked first, second, third;
    first.at_piece = [&, gone = go.get_future().share()] { gone.wait(); };
    ask(*s, first, request_of(prompt_of(*s, "a"), 3));
    wait_until([&] { return first.pieces > 0; });
    ask(*s, second, request_of(prompt_of(*s, "b"), 3));
    ask(*s, third, request_of(prompt_of(*s, "c"), 3));
    const Submission full = refused(request_of(prompt_of(*s, "d"), 3));
    CHECK(full.refusal == Refusal::queue_full);
    CHECK(full.retry_seconds > 0);
    CHECK(s->scheduler->statistics().waiting == 2);
    go.set_value();
    third.end();
    CHECK(second.is_over());  // first come, first served
    CHECK(third.text == "def");
    CHECK(s->scheduler->statistics().refused == 5);
}

TEST_CASE("scheduler: a cancelled request ends at the next step, whether it waits, reads or generates") {
    const auto s = serving_chain(serve_options(2, 2000));
    Asked generates, reads, waits, other;
    AnswerRequest endless = request_of(prompt_of(*s, "a"));
    endless.ignore_eos = true;
    ask(*s, generates, endless);
    wait_until([&] { return generates.pieces > 2; });
    AnswerRequest long_one = request_of(std::vector<Token>(1900, letter('b')));
    ask(*s, other, request_of(prompt_of(*s, "c"), 100000));
    other.submission.ticket->cancel();
    CHECK(other.end().reason == StopReason::cancelled);
    Asked blocker;
    ask(*s, blocker, endless);
    ask(*s, waits, request_of(prompt_of(*s, "d")));
    waits.submission.ticket->cancel();
    CHECK(waits.end().reason == StopReason::cancelled);
    CHECK(waits.tokens.empty());
    blocker.submission.ticket->cancel();
    blocker.end();
    // The ticket is there when the first part of the prompt was read.
    std::promise<void> sent;
    long_one.sink.progress = [&, ready = sent.get_future().share()](uint64_t, uint64_t) {
        ready.wait();
        reads.submission.ticket->cancel();
    };
    ask(*s->scheduler, reads, long_one);
    sent.set_value();
    CHECK(reads.end().reason == StopReason::cancelled);
    CHECK(reads.tokens.empty());
    CHECK_FALSE(generates.is_over());
    generates.submission.ticket->cancel();
    CHECK(generates.end().reason == StopReason::cancelled);
    wait_until([&] { return s->scheduler->statistics().running() == 0; });
    CHECK(s->scheduler->statistics().ended_cancelled == 5);
}

TEST_CASE("scheduler: a drained one refuses requests, ends those that run, and cancels late ones") {
    auto s = serving_chain(serve_options(1));
    Asked runs, waits;
    ask(*s, runs, request_of(prompt_of(*s, "a")));
    ask(*s, waits, request_of(prompt_of(*s, "x")));
    CHECK(s->scheduler->health() == Health::serving);
    s->scheduler->drain(std::chrono::seconds(60));
    CHECK(s->scheduler->health() == Health::stopped);
    CHECK(runs.end().reason == StopReason::end_of_generation);
    CHECK(waits.end().reason == StopReason::end_of_generation);
    Asked late;
    ask(*s->scheduler, late, request_of({1, 2}));
    CHECK(late.submission.refusal == Refusal::draining);
    CHECK(late.submission.retry_seconds > 0);

    s = serving_chain(serve_options(1));
    Asked endless, behind;
    AnswerRequest request = request_of(prompt_of(*s, "a"));
    request.ignore_eos = true;
    ask(*s, endless, request);
    ask(*s, behind, request_of(prompt_of(*s, "x")));
    s.reset();
    endless.end();  // as cancelled, or its context was full before
    CHECK(behind.is_over());
}

TEST_CASE("scheduler: a model that computes nonsense ends the answer as broken, and others go on") {
    ChainModel chain;
    chain.broken = letter('f');
    const auto s = serving_chain(serve_options(2), chain);
    Asked good, bad;
    ask(*s, bad, request_of(prompt_of(*s, "a")));
    ask(*s, good, request_of(prompt_of(*s, "g"), 10));
    const AnswerEnd end = bad.end();
    CHECK(end.reason == StopReason::broken);
    REQUIRE_FALSE(end.problem.ok());
    CHECK(end.problem.error().message.find("logit") != std::string::npos);
    CHECK_FALSE(end.device_lost);
    CHECK(bad.text == "bcdef");
    CHECK(good.end().reason == StopReason::max_tokens);
    CHECK(good.text == "hijklmnopq");
    CHECK(s->scheduler->statistics().ended_error == 1);
}

TEST_CASE("scheduler: nothing runs while there is nothing to do") {
    const auto s = serving_chain(serve_options(4));
    Asked asked;
    ask(*s, asked, request_of(prompt_of(*s, "a"), 3));
    asked.end();
    wait_until([&] { return s->scheduler->statistics().running() == 0; });
    const uint64_t steps = s->scheduler->statistics().steps;
    const std::clock_t begin = std::clock();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    CHECK(double(std::clock() - begin) / CLOCKS_PER_SEC < 0.1);
    CHECK(s->scheduler->statistics().steps == steps);
}

TEST_CASE("scheduler: a long prompt is read while others generate, and these go on between its parts") {
    const auto s = serving_chain(serve_options(3, 3000));
    Asked one, two, reader;
    AnswerRequest endless = request_of(prompt_of(*s, "a"));
    endless.ignore_eos = true;
    ask(*s, one, endless);
    ask(*s, two, endless);
    wait_until([&] { return one.pieces > 20 && two.pieces > 20; });
    // The pieces of others at each part of the prompt that was read.
    std::vector<std::pair<uint64_t, uint64_t>> seen;
    AnswerRequest request = request_of(std::vector<Token>(1000, letter('b')), 1);
    request.sink.progress = [&](uint64_t read, uint64_t) { seen.emplace_back(read, one.pieces); };
    ask(*s, reader, request);
    reader.end();
    CHECK_FALSE(one.is_over());
    REQUIRE(seen.size() > 10);
    for (size_t i = 1; i < seen.size(); ++i) {
        CHECK(seen[i].first - seen[i - 1].first <= 64);
        CHECK(seen[i].second > seen[i - 1].second);
    }
    for (Asked* asked : {&one, &two}) asked->submission.ticket->cancel();
    one.end();
    two.end();
}
