// Each truncation against a naive implementation of its formula, on random logits with ties and forbidden
// tokens.
#include "sample/candidates.h"
#include "sample/arithmetic.h"
#include "sample/mirostat.h"
#include "support/logits.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

using namespace redline;
using namespace redline::test;

namespace {

struct Entry {
    int32_t id;
    double logit;
    double p;
    bool operator==(const Entry& other) const { return id == other.id && logit == other.logit; }
};
using Entries = std::vector<Entry>;

// Best first, p filled in.
Entries naive(const std::vector<float>& logits) {
    Entries entries;
    for (size_t i = 0; i < logits.size(); ++i)
        if (logits[i] != -kInf) entries.push_back({int32_t(i), double(logits[i]), 0});
    std::stable_sort(entries.begin(), entries.end(), [](auto& a, auto& b) { return a.logit > b.logit; });
    double sum = 0;
    for (Entry& e : entries) sum += e.p = std::exp(e.logit - entries[0].logit);
    for (Entry& e : entries) e.p /= sum;
    return entries;
}

Entries first(Entries entries, size_t count) {
    entries.resize(std::min(entries.size(), count));
    return entries;
}

Entries naive_top_p(const Entries& all, double p, size_t min_keep) {
    double mass = 0;
    for (size_t i = 0; i < all.size(); ++i) {
        mass += all[i].p;
        if (mass >= p - 1e-7 && i + 1 >= min_keep) return first(all, i + 1);
    }
    return all;
}

Entries naive_min_p(const Entries& all, double p, size_t min_keep) {
    size_t count = 0;
    while (count < all.size() && (all[count].logit >= all[0].logit + std::log(p) || count < min_keep))
        ++count;
    return first(all, std::max<size_t>(count, 1));
}

double naive_entropy(const Entries& all) {
    double h = 0;
    for (const Entry& e : all) h -= e.p > 0 ? e.p * std::log(e.p) : 0;
    return h;
}

Entries best_first(Entries entries) {
    std::sort(entries.begin(), entries.end(),
              [](auto& a, auto& b) { return a.logit != b.logit ? a.logit > b.logit : a.id < b.id; });
    return entries;
}

Entries naive_typical(Entries all, double p, size_t min_keep) {
    const double h = naive_entropy(all);
    const auto far = [h](const Entry& e) { return std::abs(-std::log(e.p) - h); };
    std::stable_sort(all.begin(), all.end(), [&](auto& a, auto& b) { return far(a) < far(b); });
    double mass = 0;
    for (size_t i = 0; i < all.size(); ++i) {
        mass += all[i].p;
        if (mass > p && i + 1 >= min_keep) return best_first(first(all, i + 1));
    }
    return best_first(all);
}

Entries naive_top_n_sigma(const Entries& all, double n, size_t min_keep) {
    double mean = 0;
    for (const Entry& e : all) mean += e.logit / double(all.size());
    double variance = 0;
    for (const Entry& e : all) variance += (e.logit - mean) * (e.logit - mean) / double(all.size());
    size_t count = 0;
    const double floor = all[0].logit - n * std::sqrt(variance);
    while (count < all.size() && (all[count].logit >= floor || count < min_keep)) ++count;
    return first(all, std::max<size_t>(count, 1));
}

Entries naive_xtc(const Entries& all, double threshold, size_t min_keep) {
    size_t reaching = 0;
    while (reaching < all.size() && all[reaching].p >= threshold) ++reaching;
    if (reaching < 2 || all.size() - (reaching - 1) < min_keep) return all;
    return Entries(all.begin() + std::ptrdiff_t(reaching) - 1, all.end());
}

Entries kept(Candidates& candidates) {
    Entries entries;
    for (const Candidate& c : candidates.list()) entries.push_back({c.id, c.logit, 0});
    return best_first(entries);
}

// Logits of several shapes; many equal ones when `coarse`, and some forbidden.
std::vector<float> random_logits(std::mt19937& random, size_t size) {
    const double spread = 0.1 + 8 * uniform(random);
    const bool coarse = uniform(random) < 0.5;
    const double forbidden = uniform(random) < 0.5 ? 0.0 : uniform(random);
    std::vector<float> logits(size);
    for (float& x : logits) {
        const double value = spread * (uniform(random) + uniform(random) + uniform(random) - 1.5);
        x = uniform(random) < forbidden ? -kInf : float(coarse ? std::round(value * 4) / 4 : value);
    }
    logits[size_t(uniform(random) * double(size))] = float(spread);
    return logits;
}

// Both ways in: straight from the array of logits, and from a sorted list.
void compare(const char* name, const std::function<void(Candidates&, size_t)>& truncate,
             const std::function<Entries(const Entries&, size_t)>& expected) {
    std::mt19937 random(7);
    Candidates candidates;
    REQUIRE(candidates.reserve(3000));
    for (const size_t size : {1, 2, 3, 15, 16, 17, 31, 33, 100, 257, 1000, 1500}) {
        for (int round = 0; round < 15; ++round) {
            const std::vector<float> logits = random_logits(random, size);
            const size_t min_keep = round % 3 == 0 ? size_t(uniform(random) * 8) : 0;
            const Entries want = expected(naive(logits), min_keep);
            for (const bool sorted : {false, true}) {
                REQUIRE(candidates.begin(logits));
                if (sorted) candidates.sort();
                truncate(candidates, min_keep);
                const Entries got = kept(candidates);
                CAPTURE(name);
                CAPTURE(size);
                CAPTURE(round);
                CAPTURE(sorted);
                CAPTURE(min_keep);
                REQUIRE(got.size() == want.size());
                REQUIRE(got == want);
            }
        }
    }
}

std::vector<int32_t> ids_after(const std::vector<double>& probabilities,
                               const std::function<void(Candidates&)>& truncate) {
    const std::vector<float> logits = logs(probabilities);
    Candidates candidates;
    REQUIRE(candidates.begin(logits));
    truncate(candidates);
    std::vector<int32_t> ids;
    for (const Entry& e : kept(candidates)) ids.push_back(e.id);
    return ids;
}

using Ids = std::vector<int32_t>;

}  // namespace

TEST_CASE("candidates: truncations keep what their formulas say on small distributions") {
    const std::vector<double> rising = {0.1, 0.2, 0.3, 0.4};
    const std::vector<double> falling = {0.4, 0.3, 0.2, 0.1};
    CHECK(ids_after(rising, [](Candidates& c) { c.keep_top_p(0.7, 0); }) == Ids{3, 2});
    CHECK(ids_after(rising, [](Candidates& c) { c.keep_top_p(double(0.7f), 0); }) == Ids{3, 2});
    CHECK(ids_after(rising, [](Candidates& c) { c.keep_top_p(0.8, 0); }) == Ids{3, 2, 1});
    CHECK(ids_after(rising, [](Candidates& c) { c.keep_top_p(0.0, 0); }) == Ids{3});
    CHECK(ids_after(rising, [](Candidates& c) { c.keep_top_p(0.0, 3); }) == Ids{3, 2, 1});
    CHECK(ids_after({0.97, 0.01, 0.01, 0.01}, [](Candidates& c) { c.keep_typical(0.5, 0); }) == Ids{0});
    CHECK(ids_after(rising, [](Candidates& c) { c.keep_min_p(double(0.26f), 0); }) == Ids{3, 2, 1});
    CHECK(ids_after(rising, [](Candidates& c) { c.keep_min_p(1.0, 0); }) == Ids{3});
    CHECK(ids_after(falling, [](Candidates& c) { c.drop_top_choices(double(0.09f), 0); }) == Ids{3});
    CHECK(ids_after(falling, [](Candidates& c) { c.drop_top_choices(double(0.19f), 0); }) == Ids{2, 3});
    CHECK(ids_after(falling, [](Candidates& c) { c.drop_top_choices(double(0.09f), 2); }) == Ids{0, 1, 2, 3});
    CHECK(ids_after(falling, [](Candidates& c) { c.drop_top_choices(0.35, 0); }) == Ids{0, 1, 2, 3});
    CHECK(ids_after({0.25, 0.25, 0.25, 0.25}, [](Candidates& c) { c.keep_top_k(2); }) == Ids{0, 1});
}

TEST_CASE("candidates: every truncation equals its naive version") {
    for (const size_t k : {1, 2, 7, 40, 700}) {
        compare(
            "top_k", [k](Candidates& c, size_t) { c.keep_top_k(k); },
            [k](const Entries& all, size_t) { return first(all, k); });
    }
    for (const double p : {0.0, 0.03, 0.5, 0.9, 0.95, 0.999}) {
        CAPTURE(p);
        compare(
            "top_p", [p](Candidates& c, size_t n) { c.keep_top_p(p, n); },
            [p](const Entries& all, size_t n) { return naive_top_p(all, p, n); });
        compare(
            "min_p", [p](Candidates& c, size_t n) { c.keep_min_p(p, n); },
            [p](const Entries& all, size_t n) { return naive_min_p(all, p, n); });
        compare(
            "xtc", [p](Candidates& c, size_t n) { c.drop_top_choices(p / 3, n); },
            [p](const Entries& all, size_t n) { return naive_xtc(all, p / 3, n); });
    }
    for (const double n : {0.01, 0.5, 1.0, 3.0}) {
        compare(
            "top_n_sigma", [n](Candidates& c, size_t min_keep) { c.keep_top_n_sigma(n, min_keep); },
            [n](const Entries& all, size_t min_keep) { return naive_top_n_sigma(all, n, min_keep); });
    }
}

TEST_CASE("candidates: typical_p equals its naive version") {
    // Distinct logits: with equal distances to the entropy the order hangs on the last bit of a logarithm.
    std::mt19937 random(11);
    Candidates candidates;
    for (int round = 0; round < 300; ++round) {
        std::vector<float> logits(size_t(1 + round * 3));
        for (float& x : logits) x = float(6 * (uniform(random) + uniform(random)));
        const double p = uniform(random);
        const size_t min_keep = size_t(uniform(random) * 5);
        REQUIRE(candidates.begin(logits));
        candidates.keep_typical(p, min_keep);
        CAPTURE(round);
        REQUIRE(kept(candidates) == naive_typical(naive(logits), p, min_keep));
    }
}

TEST_CASE("candidates: top_k is right when the logits rise, fall, or are all equal") {
    Candidates candidates;
    std::vector<float> logits(50'000);
    for (const float slope : {1.0f, -1.0f, 0.0f}) {
        for (size_t i = 0; i < logits.size(); ++i) logits[i] = slope * float(i);
        REQUIRE(candidates.begin(logits));
        candidates.keep_top_k(100);
        REQUIRE(kept(candidates) == first(naive(logits), 100));
    }
}

TEST_CASE("candidates: NaN and +inf are an error that counts them, -inf alone is not") {
    Candidates candidates;
    std::vector<float> logits(1000, 0.5f);
    logits[777] = std::nanf("");
    logits[999] = std::nanf("");
    logits[801] = kInf;
    const Status status = candidates.begin(logits);
    REQUIRE_FALSE(status.ok());
    CHECK(status.error().message == "of 1000 logits 2 are NaN and 1 are +inf, the first at token 777");
    std::fill(logits.begin(), logits.end(), -kInf);
    CHECK(candidates.begin(logits));
    CHECK(candidates.best() == -1);
    candidates.keep_top_k(40);
    candidates.keep_top_p(0.9, 2);
    candidates.keep_typical(0.9, 2);
    candidates.keep_min_p(0.1, 2);
    candidates.keep_top_n_sigma(1, 2);
    candidates.drop_top_choices(0.1, 0);
    candidates.scale(0.5);
    CHECK(candidates.entropy() == 0.0);
    CHECK(candidates.list().empty());
}

TEST_CASE("candidates: entropy and draw follow the softmax") {
    const std::vector<float> logits = logs({0.1, 0.2, 0.3, 0.4});
    Candidates candidates;
    REQUIRE(candidates.begin(logits));
    CHECK(candidates.entropy() == doctest::Approx(naive_entropy(naive(logits))).epsilon(1e-9));
    CHECK(candidates.draw(0.0).id == 0);
    CHECK(candidates.draw(0.0999).id == 0);
    CHECK(candidates.draw(0.1001).id == 1);
    CHECK(candidates.draw(0.2999).id == 1);
    CHECK(candidates.draw(0.5999).id == 2);
    CHECK(candidates.draw(0.6001).id == 3);
    CHECK(candidates.draw(std::nextafter(1.0, 0.0)).id == 3);
    CHECK(candidates.draw(0.5).probability == doctest::Approx(0.3).epsilon(1e-6));
}

TEST_CASE("arithmetic: the exponential is within 1e-12 of std::exp") {
    double worst = 0;
    for (double x = 0; x > -700; x -= 0.00713)
        worst = std::max(worst, std::abs(exp_nonpositive(x) / std::exp(x) - 1));
    CHECK(worst < 1e-12);
    CHECK(exp_nonpositive(0) == 1.0);
    CHECK(exp_nonpositive(-1e300) > 0.0);
    CHECK(exp_nonpositive(-1e300) < 1e-300);
}

TEST_CASE("arithmetic: uniform numbers are in [0, 1), with mean 1/2 and variance 1/12") {
    std::mt19937 random(1);
    double sum = 0;
    double squares = 0;
    for (int i = 0; i < 100'000; ++i) {
        const double u = uniform(random);
        REQUIRE((u >= 0 && u < 1));
        sum += u;
        squares += u * u;
    }
    CHECK(std::abs(sum / 1e5 - 0.5) < 0.005);
    CHECK(std::abs(squares / 1e5 - 1.0 / 3) < 0.005);
}

TEST_CASE("mirostat: the mean surprise settles near tau, with both versions") {
    std::mt19937 random(5);
    for (const int version : {1, 2}) {
        for (const double tau : {2.0, 4.0}) {
            Mirostat mirostat{version, tau, 0.1};
            Candidates candidates;
            double surprise = 0;
            std::vector<float> logits(5000);
            for (int step = 0; step < 3000; ++step) {
                for (size_t i = 0; i < logits.size(); ++i)
                    logits[i] = float(-1.1 * std::log(double(i + 1)) + 0.3 * uniform(random));
                REQUIRE(candidates.begin(logits));
                const auto drawn = mirostat.choose(candidates, logits.size(), uniform(random));
                mirostat.learn(drawn.probability);
                if (step >= 1000) surprise -= std::log2(drawn.probability) / 2000;
            }
            CAPTURE(version);
            CHECK(surprise == doctest::Approx(tau).epsilon(0.05));
        }
    }
}

TEST_CASE("mirostat: version 2 keeps the tokens up to mu bits, and at least the best") {
    const std::vector<float> logits = logs({0.125, 0.5, 0.25, 0.125});
    Candidates candidates;
    const auto ids = [&](double mu) {
        REQUIRE(candidates.begin(logits));
        candidates.keep_surprise_below(mu);
        Ids found;
        for (const Entry& e : kept(candidates)) found.push_back(e.id);
        return found;
    };
    CHECK(ids(3.1) == Ids{1, 2, 0, 3});
    CHECK(ids(2.9) == Ids{1, 2});
    CHECK(ids(1.5) == Ids{1});
    CHECK(ids(0.5) == Ids{1});
    CHECK(ids(-100) == Ids{1});
}

TEST_CASE("mirostat: version 1 survives one token, equal logits and a steep slope") {
    for (const std::vector<float>& logits :
         {std::vector<float>{1.0f}, std::vector<float>(500, 2.0f), std::vector<float>{1e30f, -1e30f, 0.0f}}) {
        for (const double mu : {-50.0, 0.0, 5.0, 1e6}) {
            Candidates candidates;
            REQUIRE(candidates.begin(logits));
            const Mirostat mirostat{1, 5.0, 0.1, mu};
            const auto drawn = mirostat.choose(candidates, logits.size(), 0.99);
            CHECK(drawn.id >= 0);
            CHECK(drawn.probability > 0);
        }
    }
}
