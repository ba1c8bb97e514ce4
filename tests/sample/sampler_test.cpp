// The sampling chain from options to tokens: order, penalties, DRY, seeds, bad input. Truncations:
// candidates_test.
#include "sample/sampler.h"
#include "sample/arithmetic.h"
#include "sample/chain.h"
#include "sample/dry.h"
#include "support/logits.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <vector>

using namespace redline;
using namespace redline::test;

namespace {

const float kNan = std::nanf("");

// Everything off: the final draw at temperature 1.
SamplerOptions bare(uint32_t seed = 1) {
    SamplerOptions options;
    options.seed = seed;
    options.temperature = 1.0f;
    options.top_k = 0;
    options.top_p = 1.0f;
    options.min_p = 0.0f;
    return options;
}

Sampler make(const SamplerOptions& options, size_t size, std::vector<DryBreaker> breakers = {}) {
    Result<Sampler> sampler = Sampler::create(options, {int32_t(size), 4096, std::move(breakers)});
    INFO((sampler.ok() ? std::string() : sampler.error().message));
    REQUIRE(sampler.ok());
    return std::move(sampler).value();
}

std::string refusal(const SamplerOptions& options) {
    const Result<Sampler> sampler = Sampler::create(options, {100, 4096, {}});
    return sampler.ok() ? "accepted" : sampler.error().message;
}

int32_t sampled(Sampler& sampler, const std::vector<float>& logits) {
    const Result<int32_t> token = sampler.sample(logits);
    INFO((token.ok() ? std::string() : token.error().message));
    REQUIRE(token.ok());
    return token.value();
}

// The distance of the counts of `draws` draws from the expected shares: chi-square over its degrees of
// freedom.
double chi_square(Sampler& sampler, const std::vector<float>& logits, const std::vector<double>& shares,
                  int draws) {
    std::vector<int> counts(shares.size());
    for (int i = 0; i < draws; ++i) counts[size_t(sampled(sampler, logits))] += 1;
    double sum = 0;
    int cells = 0;
    for (size_t i = 0; i < shares.size(); ++i) {
        if (shares[i] == 0) {
            CAPTURE(i);
            CHECK(counts[i] == 0);
            continue;
        }
        const double expected = shares[i] * draws;
        sum += (counts[i] - expected) * (counts[i] - expected) / expected;
        cells += 1;
    }
    return cells > 1 ? sum / (cells - 1) : sum;
}

// The argmax after the penalties tells two logits apart: the rival token 9 takes over below `threshold`.
bool stays_above(const SamplerOptions& options, const std::vector<int32_t>& history, int32_t token,
                 float logit, float threshold, const std::vector<DryBreaker>& breakers = {}) {
    SamplerOptions cold = options;
    cold.temperature = 0.0f;
    Sampler sampler = make(cold, 10, breakers);
    for (const int32_t t : history) sampler.accept(t);
    std::vector<float> logits(10, -kInf);
    logits[size_t(token)] = logit;
    logits[9] = threshold;
    return sampled(sampler, logits) == token;
}

// The logit of `token` after the penalties is `want`, to within 1e-4.
void check_penalised(const SamplerOptions& options, const std::vector<int32_t>& history, int32_t token,
                     float logit, double want, const std::vector<DryBreaker>& breakers = {}) {
    CAPTURE(token);
    CAPTURE(want);
    CHECK(stays_above(options, history, token, logit, float(want - 1e-4), breakers));
    CHECK_FALSE(stays_above(options, history, token, logit, float(want + 1e-4), breakers));
}

}  // namespace

TEST_CASE("sampler: greedy takes the argmax, the lowest id wins a tie") {
    SamplerOptions options;
    options.temperature = 0.0f;
    for (const size_t size : {1, 2, 15, 16, 17, 1000, 152'064}) {
        Sampler sampler = make(options, size);
        CHECK(sampler.greedy());
        std::vector<float> logits(size, -3.0f);
        CHECK(sampled(sampler, logits) == 0);
        logits[size / 2] = logits[size - 1] = 5.0f;
        CHECK(sampled(sampler, logits) == int32_t(size / 2));
        std::fill(logits.begin(), logits.end(), -kInf);
        logits[size - 1] = -1e38f;
        CHECK(sampled(sampler, logits) == int32_t(size - 1));
    }
}

TEST_CASE("sampler: greedy() is true only if the argmax of the raw logits is the answer") {
    SamplerOptions options;
    CHECK_FALSE(make(options, 10).greedy());
    options.temperature = -1.0f;
    options.top_n_sigma = 1.0f;
    CHECK(make(options, 10).greedy());
    const auto with = [&](auto change) {
        SamplerOptions changed = options;
        change(changed);
        return make(changed, 10).greedy();
    };
    CHECK_FALSE(with([](auto& o) { o.repeat_penalty = 1.1f; }));
    CHECK_FALSE(with([](auto& o) { o.presence_penalty = 1.0f; }));
    CHECK_FALSE(with([](auto& o) { o.dry_multiplier = 0.8f; }));
    CHECK_FALSE(with([](auto& o) { o.typical_p = 0.9f; }));
    CHECK_FALSE(with([](auto& o) { o.xtc_probability = 0.1f; }));
    CHECK_FALSE(with([](auto& o) { o.logit_bias = {{3, 1.0f}}; }));
    CHECK(with([](auto& o) { o.samplers = "top_k"; }));
    CHECK(with([](auto& o) { o.mirostat = 2; }));
}

TEST_CASE("sampler: NaN, all -inf and a wrong count of logits are errors") {
    for (const float temperature : {0.0f, 0.8f}) {
        SamplerOptions options;
        options.temperature = temperature;
        Sampler sampler = make(options, 100);
        std::vector<float> logits(100, 1.0f);
        logits[42] = kNan;
        CHECK(sampler.sample(logits).error().message ==
              "of 100 logits 1 are NaN and 0 are +inf, the first at token 42");
        std::fill(logits.begin(), logits.end(), -kInf);
        CHECK(sampler.sample(logits).error().message == "no token may be chosen: all 100 logits are -inf");
        logits.resize(99);
        CHECK(sampler.sample(logits).error().message ==
              "the sampler was made for a vocabulary of 100 and got 99 logits");
        logits.assign(100, -kInf);
        logits[63] = 2.0f;
        CHECK(sampled(sampler, logits) == 63);
    }
}

TEST_CASE("sampler: the final draw follows the softmax") {
    const std::vector<double> shares = {0.05, 0.0, 0.3, 0.02, 0.13, 0.5};
    const std::vector<float> logits = logs(shares);
    for (const uint32_t seed : {1u, 2u, 3u}) {
        Sampler sampler = make(bare(seed), shares.size());
        CHECK(chi_square(sampler, logits, shares, 20'000) < 3.0);
    }
}

TEST_CASE("sampler: temperature 0.5 squares the probabilities") {
    SamplerOptions options = bare(5);
    options.temperature = 0.5f;
    const std::vector<double> p = {0.1, 0.2, 0.3, 0.4};
    std::vector<double> shares;
    for (const double x : p) shares.push_back(x * x / 0.3);
    Sampler sampler = make(options, 4);
    CHECK(chi_square(sampler, logs(p), shares, 20'000) < 3.0);
}

TEST_CASE("sampler: a tiny temperature is greedy, a huge one uniform, without overflow") {
    SamplerOptions options = bare(5);
    options.temperature = 1e-40f;
    Sampler cold = make(options, 3);
    for (int i = 0; i < 100; ++i) CHECK(sampled(cold, {3e38f, 2e38f, -3e38f}) == 0);
    options.temperature = 3e38f;
    Sampler hot = make(options, 3);
    CHECK(chi_square(hot, {10.0f, 0.0f, -10.0f}, {1 / 3.0, 1 / 3.0, 1 / 3.0}, 20'000) < 3.0);
}

TEST_CASE("sampler: dynamic temperature follows the entropy of the candidates") {
    SamplerOptions options = bare(6);
    options.temperature = 1.0f;
    options.dynatemp_range = 0.5f;
    options.dynatemp_exponent = 2.0f;
    const std::vector<double> p = {0.7, 0.2, 0.1};
    double h = 0;
    for (const double x : p) h -= x * std::log(x);
    const double temperature = 0.5 + std::pow(h / std::log(3.0), 2.0);
    std::vector<double> shares;
    double sum = 0;
    for (const double x : p) sum += shares.emplace_back(std::pow(x, 1 / temperature));
    for (double& x : shares) x /= sum;
    Sampler sampler = make(options, 3);
    CHECK(chi_square(sampler, logs(p), shares, 40'000) < 3.0);
}

TEST_CASE("sampler: the order of the chain matters and is kept") {
    // Truncation before temperature: top_p 0.6 of {.5 .3 .2} keeps two. At temperature 0.1 the first has 99
    // %.
    SamplerOptions options = bare(3);
    options.top_p = 0.6f;
    options.temperature = 10.0f;
    const std::vector<float> logits = logs({0.5, 0.3, 0.1, 0.1});
    const auto seen = [&](const char* order) {
        options.samplers = order;
        Sampler sampler = make(options, 4);
        std::set<int32_t> tokens;
        for (int i = 0; i < 500; ++i) tokens.insert(sampled(sampler, logits));
        return tokens.size();
    };
    CHECK(seen("top_p;temperature") == 2);
    CHECK(seen("temperature;top_p") == 3);
    CHECK(seen("pt") == 2);
    CHECK(seen("tp") == 3);
    CHECK(seen("temperature") == 4);
    CHECK(seen("") == 4);
}

TEST_CASE("sampler: penalties give the same before and after a truncation") {
    SamplerOptions options = bare(4);
    options.top_k = 50;     // the whole vocabulary, but a list from there on
    options.top_p = 0.99f;  // sorts
    options.repeat_penalty = 1.3f;
    options.frequency_penalty = 0.2f;
    options.presence_penalty = 0.1f;
    options.dry_multiplier = 0.8f;
    options.samplers = "penalties;dry;top_k;top_p";
    Sampler early = make(options, 50);
    options.samplers = "top_k;penalties;dry;top_p";
    Sampler late = make(options, 50);
    std::mt19937 random(9);
    for (int i = 0; i < 1000; ++i) {
        std::vector<float> logits(50);
        for (float& x : logits) x = float(4 * uniform(random) - 1);
        const int32_t token = sampled(early, logits);
        REQUIRE(sampled(late, logits) == token);
        early.accept(token);
        late.accept(token);
    }
}

TEST_CASE("sampler: logit bias adds up, -inf forbids, and comes before everything") {
    SamplerOptions options = bare();
    options.temperature = 0.0f;
    options.logit_bias = {{2, 1.5f}, {2, 1.0f}, {3, -kInf}, {4, 3.4e38f}, {4, 3.4e38f}};
    Sampler sampler = make(options, 5);
    CHECK(sampled(sampler, {0.0f, 2.0f, 0.0f, 100.0f, -kInf}) == 2);
    CHECK(sampled(sampler, {0.0f, 2.6f, 0.0f, 100.0f, -kInf}) == 1);
    CHECK(sampled(sampler, {0.0f, 3e38f, 0.0f, 100.0f, 3e38f}) == 4);
    CHECK_FALSE(sampler.sample(std::vector<float>{-kInf, -kInf, -kInf, 1.0f, -kInf}).ok());
}

TEST_CASE("sampler: repeat, frequency and presence penalties follow their formulas") {
    SamplerOptions options = bare();
    options.repeat_penalty = 2.0f;
    check_penalised(options, {3}, 3, 2.0f, 1.0);
    check_penalised(options, {3, 3}, 3, -1.0f, -2.0);
    check_penalised(options, {4}, 3, 2.0f, 2.0);
    check_penalised(options, {}, 3, 2.0f, 2.0);
    options.repeat_penalty = 1.0f;
    options.frequency_penalty = 5.0f;
    options.presence_penalty = 5.0f;
    check_penalised(options, {3, 1, 3}, 3, 0.0f, -15.0);
    check_penalised(options, {3, 1, 3}, 1, 0.0f, -10.0);
}

TEST_CASE("sampler: penalties forget tokens that leave the window") {
    SamplerOptions options = bare();
    options.presence_penalty = 1.0f;
    options.repeat_last_n = 3;
    check_penalised(options, {3, 1, 1}, 3, 0.0f, -1.0);
    check_penalised(options, {3, 1, 1, 1}, 3, 0.0f, 0.0);
    check_penalised(options, {3, 1, 1, 3, 1, 1}, 3, 0.0f, -1.0);
    options.repeat_last_n = 0;
    check_penalised(options, {3, 3, 3}, 3, 0.0f, 0.0);
    options.repeat_last_n = -1;
    std::vector<int32_t> history(4095, 1);
    history.insert(history.begin(), 3);
    check_penalised(options, history, 3, 0.0f, -1.0);
    history.push_back(1);
    check_penalised(options, history, 3, 0.0f, 0.0);
}

TEST_CASE("sampler: tokens outside the vocabulary are remembered without harm") {
    SamplerOptions options = bare();
    options.presence_penalty = 1.0f;
    options.dry_multiplier = 1.0f;
    options.repeat_last_n = 2;
    check_penalised(options, {3, -1, 1'000'000, -1, -1, 1'000'000, -1, -1}, 3, 0.0f, 0.0);
}

TEST_CASE("dry: the worked example a b c c b c y a b c") {
    constexpr int32_t a = 1, b = 2, c = 3, y = 4;
    const std::vector<int32_t> history = {a, b, c, c, b, c, y, a, b, c};
    SamplerOptions options = bare();
    options.dry_multiplier = 0.8f;
    check_penalised(options, history, c, 0.0f, -0.8 * 1.75);
    check_penalised(options, history, y, 0.0f, -0.8);
    check_penalised(options, history, b, 0.0f, 0.0);
    options.dry_penalty_last_n = 9;  // the first a is out of reach: b c only
    check_penalised(options, history, c, 0.0f, -0.8);
    options.dry_penalty_last_n = -1;
    // y as a breaker: the repetition may be the three tokens after it, and y itself is not penalised.
    check_penalised(options, history, c, 0.0f, -0.8 * 1.75, {{y, {}}});
    check_penalised(options, history, y, 0.0f, 0.0, {{y, {}}});
    // a as a breaker: two tokens after it
    check_penalised(options, history, c, 0.0f, -0.8, {{a, {}}});
    // "y a" as a breaker of two tokens: the same two after it, but y alone is still penalised
    check_penalised(options, history, c, 0.0f, -0.8, {{y, {a}}});
    check_penalised(options, history, y, 0.0f, -0.8, {{y, {a}}});
}

TEST_CASE("dry: a long repetition stays finite") {
    SamplerOptions options = bare();
    options.dry_multiplier = 5.0f;
    options.dry_penalty_last_n = -1;
    options.temperature = 0.0f;
    Sampler sampler = make(options, 10);
    for (int i = 0; i < 4096; ++i) sampler.accept(1);
    std::vector<float> logits(10, -kInf);
    logits[1] = 3.0f;
    CHECK(sampled(sampler, logits) == 1);
    logits[2] = -1e30f;
    CHECK(sampled(sampler, logits) == 2);
}

TEST_CASE("sampler: xtc acts with its probability and does not disturb the final draws") {
    SamplerOptions options = bare(8);
    options.xtc_probability = 0.25f;
    options.xtc_threshold = 0.15f;
    const std::vector<double> p = {0.4, 0.3, 0.2, 0.1};
    std::vector<double> shares;
    for (size_t i = 0; i < 4; ++i) shares.push_back(0.75 * p[i] + 0.25 * (i >= 2 ? p[i] / 0.3 : 0));
    Sampler sampler = make(options, 4);
    CHECK(chi_square(sampler, logs(p), shares, 40'000) < 3.0);

    options.xtc_threshold = 0.45f;  // nothing ever reaches it twice
    Sampler idle = make(options, 4);
    Sampler without = make(bare(8), 4);
    for (int i = 0; i < 200; ++i) REQUIRE(sampled(idle, logs(p)) == sampled(without, logs(p)));
}

TEST_CASE("sampler: a seed repeats its choices, reset starts over, another seed differs") {
    std::mt19937 random(1);
    std::vector<float> logits(1000);
    for (float& x : logits) x = float(3 * uniform(random));
    SamplerOptions options;
    options.seed = 42;
    options.top_k = 0;
    options.repeat_penalty = 1.2f;
    options.dry_multiplier = 0.5f;
    options.xtc_probability = 0.5f;
    options.xtc_threshold = 0.001f;
    for (const int32_t mirostat : {0, 1, 2}) {
        options.mirostat = mirostat;
        const auto run = [&](Sampler& sampler) {
            std::vector<int32_t> tokens;
            for (int i = 0; i < 60; ++i) {
                tokens.push_back(sampled(sampler, logits));
                sampler.accept(tokens.back());
            }
            return tokens;
        };
        Sampler one = make(options, 1000);
        Sampler two = make(options, 1000);
        const std::vector<int32_t> tokens = run(one);
        CHECK(run(two) == tokens);
        CHECK(run(two) != tokens);
        two.reset();
        CHECK(run(two) == tokens);
        SamplerOptions other = options;
        other.seed = 43;
        Sampler three = make(other, 1000);
        CHECK(run(three) != tokens);
    }
}

TEST_CASE("sampler: seed 42 chooses these tokens on every machine") {
    std::vector<float> logits(1000);
    for (size_t i = 0; i < 1000; ++i) logits[i] = float(i * 7919 % 1000) / 128.0f;
    SamplerOptions options;
    options.seed = 42;
    const auto run = [&] {
        Sampler sampler = make(options, 1000);
        std::vector<int32_t> tokens;
        for (int i = 0; i < 8; ++i) tokens.push_back(sampled(sampler, logits));
        return tokens;
    };
    CHECK(run() == std::vector<int32_t>{630, 926, 309, 741, 136, 284, 136, 852});
    options.top_k = 0;
    options.min_p = 0;
    options.typical_p = 0.9f;
    CHECK(run() == std::vector<int32_t>{693, 99, 767, 1, 334, 210, 976, 198});
}

TEST_CASE("sampler: the seed 0xFFFFFFFF is replaced by a random one that can be asked for again") {
    SamplerOptions options = bare(0xFFFFFFFFu);
    Sampler one = make(options, 100);
    Sampler two = make(options, 100);
    CHECK(one.seed() != 0xFFFFFFFFu);
    CHECK(one.seed() != two.seed());
    options.seed = one.seed();
    Sampler again = make(options, 100);
    const std::vector<float> logits(100, 0.0f);
    for (int i = 0; i < 50; ++i) REQUIRE(sampled(one, logits) == sampled(again, logits));
}

TEST_CASE("sampler: mirostat replaces the truncations and raises the surprise to tau") {
    std::vector<float> logits(2000);
    for (size_t i = 0; i < logits.size(); ++i) logits[i] = float(-1.0 * std::log(double(i + 1)));
    double sum = 0;
    for (const float x : logits) sum += std::exp(double(x));
    for (const int32_t version : {1, 2}) {
        std::map<float, double> surprise;
        for (const float tau : {2.0f, 5.0f}) {
            SamplerOptions options;  // top_k 40, top_p 0.95, min_p 0.05 must not matter
            options.seed = 4;
            options.temperature = 1.0f;
            options.mirostat = version;
            options.mirostat_tau = tau;
            Sampler sampler = make(options, logits.size());
            for (int i = 0; i < 2000; ++i) {
                const int32_t token = sampled(sampler, logits);
                sampler.accept(token);
                if (i >= 500)
                    surprise[tau] += -std::log2(std::exp(double(logits[size_t(token)])) / sum) / 1500;
            }
        }
        CAPTURE(version);
        // In bits of the whole distribution, more than of the truncated one that mirostat steers by.
        CHECK(surprise[2.0f] > 2.0);
        CHECK(surprise[2.0f] < 4.5);
        CHECK(surprise[5.0f] > 5.0);
        CHECK(surprise[5.0f] < 7.0);
    }
}

TEST_CASE("sampler: mirostat learns only from the token that was sampled and accepted") {
    SamplerOptions options = bare(4);
    options.mirostat = 2;
    options.mirostat_eta = 1.0f;
    const std::vector<float> logits = logs({0.9, 0.05, 0.03, 0.02});
    Sampler fed = make(options, 4);
    for (int i = 0; i < 100; ++i) fed.accept(2);  // a prompt
    Sampler plain = make(options, 4);
    for (int i = 0; i < 100; ++i) {
        const int32_t token = sampled(plain, logits);
        REQUIRE(sampled(fed, logits) == token);
        plain.accept(token);
        fed.accept(token);
    }
}

TEST_CASE("chain: names, letters, blanks and empty parts are accepted") {
    const auto names = [](std::string_view text) {
        const std::vector<const SamplerStep*> chain = parse_chain(text).value();
        std::string all;
        for (const SamplerStep* step : chain) all += std::string(step->name) + " ";
        return all;
    };
    const std::string all = "penalties dry top_n_sigma top_k typ_p top_p min_p xtc temperature ";
    CHECK(names(SamplerOptions().samplers) == all);
    CHECK(names("edskypmxt") == all);
    CHECK(names("").empty());
    CHECK(names(" top_k ; temperature;;") == "top_k temperature ");
    CHECK(names("dry") == "dry ");
    CHECK(names("xtc") == "xtc ");
    CHECK(names("kt") == "top_k temperature ");
    CHECK(names("typical_p") == "typ_p ");
}

TEST_CASE("chain: an unknown or repeated name is an error that lists the known ones") {
    CHECK(
        parse_chain("top_k;tfs_z").error().message ==
        "samplers names \"tfs_z\"; known are penalties (e), dry (d), top_n_sigma (s), top_k (k), typ_p (y), "
        "top_p (p), min_p (m), xtc (x), temperature (t), by name separated by ';' or by letter");
    CHECK(parse_chain("kz").error().message.starts_with("samplers names \"kz\""));
    CHECK(parse_chain("top_k;xtc;top_k").error().message == "samplers names top_k twice");
    CHECK(parse_chain("kk").error().message == "samplers names top_k twice");
}

TEST_CASE("sampler: options out of range are refused with what is accepted") {
    const auto with = [](auto change) {
        SamplerOptions options;
        change(options);
        return refusal(options);
    };
    CHECK(with([](auto&) {}) == "accepted");
    CHECK(with([](auto& o) { o.temperature = kNan; }) ==
          "temperature is nan; it must be a finite number (0 or less: greedy)");
    CHECK(with([](auto& o) { o.temperature = kInf; }) ==
          "temperature is inf; it must be a finite number (0 or less: greedy)");
    CHECK(with([](auto& o) { o.top_p = 1.5f; }) ==
          "top_p is 1.5; it must be between 0 and 1 (1 turns it off)");
    CHECK(with([](auto& o) { o.min_p = -0.1f; }) ==
          "min_p is -0.1; it must be between 0 and 1 (0 turns it off)");
    CHECK(with([](auto& o) { o.typical_p = kNan; }) ==
          "typical_p is nan; it must be between 0 and 1 (1 turns it off)");
    CHECK(with([](auto& o) { o.repeat_penalty = 0.0f; }).starts_with("repeat_penalty is 0; it must be 1.17"));
    CHECK(with([](auto& o) { o.frequency_penalty = -kInf; }) ==
          "frequency_penalty is -inf; it must be a finite number (0 turns it off)");
    CHECK(with([](auto& o) { o.dynatemp_range = -1.0f; }) ==
          "dynatemp_range is -1; it must be 0 or more, and finite (0 turns it off)");
    CHECK(with([](auto& o) { o.repeat_last_n = -2; }) ==
          "repeat_last_n is -2; it must be -1 or more (-1: the whole context, 0: off)");
    CHECK(with([](auto& o) { o.min_keep = -1; }) == "min_keep is -1; it must be 0 or more");
    CHECK(with([](auto& o) { o.mirostat = 3; }) == "mirostat is 3; it must be 0 (off), 1 or 2");
    CHECK(with([](auto& o) {
              o.logit_bias = {{100, 1.0f}};
          }) == "logit_bias names token 100; the vocabulary has tokens 0 to 99");
    CHECK(with([](auto& o) {
              o.logit_bias = {{-1, 1.0f}};
          }) == "logit_bias names token -1; the vocabulary has tokens 0 to 99");
    CHECK(with([](auto& o) {
              o.logit_bias = {{5, kInf}};
          }) == "logit_bias of token 5 is inf; it must be a number, or -inf to forbid the token");
    CHECK(with([](auto& o) { o.samplers = "nonsense"; }).starts_with("samplers names \"nonsense\""));
    CHECK(Sampler::create({}, {0, 0, {}}).error().message ==
          "a sampler needs a vocabulary, this one has 0 tokens");
    SamplerOptions endless;
    endless.repeat_last_n = -1;
    endless.repeat_penalty = 1.1f;
    CHECK(Sampler::create(endless, {10, 0, {}}).error().message == "repeat_last_n is -1 without a context");
}

TEST_CASE("sampler: min_keep keeps more than one candidate") {
    SamplerOptions options = bare(2);
    options.top_k = 1;
    options.top_p = 0.1f;
    options.min_p = 0.9f;
    options.typical_p = 0.1f;
    options.top_n_sigma = 0.01f;
    options.min_keep = 3;
    Sampler sampler = make(options, 4);
    CHECK(chi_square(sampler, logs({0.4, 0.3, 0.2, 0.1}), {4 / 9.0, 3 / 9.0, 2 / 9.0, 0}, 20'000) < 3.0);
}

TEST_CASE("sampler: a vocabulary of 152064 costs well under a millisecond a token") {
    std::mt19937 random(12);
    std::vector<float> logits(152'064);
    for (float& x : logits) x = float(8 * (uniform(random) + uniform(random) + uniform(random)) - 12);
    struct Case {
        const char* name;
        SamplerOptions options;
    };
    std::vector<Case> cases = {{"greedy", {}},        {"default", {}},          {"penalties, dry, bias", {}},
                               {"top_k 0", {}},       {"top_k 0, typical", {}}, {"bare draw", bare()},
                               {"mirostat 2", bare()}};
    cases[0].options.temperature = 0.0f;
    cases[2].options.repeat_penalty = 1.1f;
    cases[2].options.dry_multiplier = 0.8f;
    cases[2].options.logit_bias = {{5, -kInf}};
    cases[3].options.top_k = 0;
    cases[4].options.top_k = 0;
    cases[4].options.typical_p = 0.5f;
    cases[6].options.mirostat = 2;
    for (Case& c : cases) {
        c.options.seed = 3;
        Sampler sampler = make(c.options, logits.size());
        const auto best = size_t(std::max_element(logits.begin(), logits.end()) - logits.begin());
        double least = 1e9;  // the quietest of 20 runs
        for (int i = 0; i < 20; ++i) {
            const auto start = std::chrono::steady_clock::now();
            const int32_t token = sampled(sampler, logits);
            const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - start;
            least = std::min(least, spent.count());
            sampler.accept(token);
            if (c.options.temperature == 0.0f) CHECK(size_t(token) == best);
        }
        MESSAGE(std::string(c.name) << ": " << least << " us per token");
        CHECK(least < 200'000);  // more than a sanitizer on a busy machine can explain
    }
}
