// The sampler's memory of the conversation: counts of a window, and DRY's search for repetitions.
#include "sample/history.h"
#include "sample/arithmetic.h"
#include "sample/dry.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <vector>

using namespace redline;

TEST_CASE("history: counts equal a recount of the window") {
    std::mt19937 random(2);
    for (const size_t window : {1, 2, 7, 64}) {
        TokenCounts counts(window, 20);
        std::deque<int32_t> recent;
        for (int i = 0; i < 500; ++i) {
            const int32_t token = int32_t(uniform(random) * 21) - 1;
            counts.push(token);
            recent.push_back(token);
            if (recent.size() > window) recent.pop_front();
            std::set<int32_t> known;
            for (const int32_t t : recent)
                if (t >= 0) known.insert(t);
            REQUIRE(std::set<int32_t>(counts.distinct().begin(), counts.distinct().end()) == known);
            REQUIRE(counts.distinct().size() == known.size());
            for (int32_t t = 0; t < 20; ++t)
                REQUIRE(counts.count(t) == std::count(recent.begin(), recent.end(), t));
        }
        counts.clear();
        CHECK(counts.distinct().empty());
    }
}

TEST_CASE("dry: matches equal a naive search") {
    std::mt19937 random(3);
    for (int round = 0; round < 400; ++round) {
        const size_t window = 1 + size_t(uniform(random) * 60);
        const int32_t letters = 1 + int32_t(uniform(random) * 4);
        const int32_t shortest = int32_t(uniform(random) * 4);
        DryHistory dry(window, {{0, {}}});
        std::deque<int32_t> h;
        for (size_t i = 0; i < 70; ++i) {
            const int32_t token = uniform(random) < 0.02 ? 0 : 1 + int32_t(uniform(random) * letters);
            dry.push(token);
            h.push_back(token);
            if (h.size() > window) h.pop_front();
        }
        const size_t size = h.size();
        size_t limit = 0;
        while (limit < size && h[size - 1 - limit] != 0) ++limit;
        std::map<int32_t, int32_t> longest;
        for (size_t end = 1; end < size; ++end) {
            size_t length = 0;
            while (length < end && h[end - 1 - length] == h[size - 1 - length]) ++length;
            const int32_t capped = int32_t(std::min(length, limit));
            if (capped < shortest || h[end] == 0 || int64_t(limit) < shortest) continue;
            longest[h[end]] = std::max(longest[h[end]], capped);
        }
        std::vector<DryMatch> want;
        for (const auto& [token, length] : longest) want.push_back({token, length});
        const auto got = dry.matches(shortest);
        CAPTURE(round);
        REQUIRE(std::vector<DryMatch>(got.begin(), got.end()) == want);
    }
}

TEST_CASE("dry: breakers are the tokens that contain a string, or end with its beginning") {
    const std::vector<std::string> texts = {"a", "\n", "x\n\n", "<|", "foo<", "|im", "im>", "b<|im>c", ""};
    const auto text = [&](int32_t id) { return texts[size_t(id)]; };
    const auto encode = [](std::string_view rest) {
        return std::vector<int32_t>{int32_t(rest.size()) + 100, int32_t(rest.size())};
    };
    const std::vector<std::string> strings = {"\n", "<|im>"};
    const auto breakers = make_dry_breakers(strings, int32_t(texts.size()), text, encode);
    REQUIRE(breakers.ok());
    CHECK(breakers.value() ==
          std::vector<DryBreaker>{{1, {}}, {2, {}}, {3, {103, 3}}, {4, {104, 4}}, {7, {}}});

    const std::vector<std::string> empty = {""};
    CHECK(make_dry_breakers(empty, 1, text, encode).error().message == "a dry sequence breaker is empty");
    const std::vector<std::string> wide = {std::string(41, 'x')};
    CHECK(make_dry_breakers(wide, 1, text, encode).error().message.find("has 41 bytes; 40 are allowed") !=
          std::string::npos);
}
