#include "text/tokens/pretokenize.h"
#include "json/json.h"
#include "support/material.h"
#include "support/text_support.h"

#include <doctest/doctest.h>

using namespace redline;
using namespace redline::test;

TEST_CASE("pre-tokenizer: every pattern cuts as the models' expressions do") {
    const Json patterns = parse_json(read_file(golden("text/pretokenize.json")));
    CHECK(patterns.size() >= 20);
    for (const auto& row : patterns.items()) {
        const std::string& name = row.key();
        CAPTURE(name);
        const Result<Pretokenizer> pretokenizer = Pretokenizer::of_pattern(name);
        REQUIRE(pretokenizer.ok());
        for (const auto& entry : row.value()) {
            const auto want = entry.get<std::vector<std::string>>();
            std::string text;
            for (const std::string& piece : want) text += piece;
            std::vector<std::string> got;
            pretokenizer.value().split(text, [&](std::string_view piece) { got.emplace_back(piece); });
            CAPTURE(text);
            CHECK(got == want);
        }
    }
}

TEST_CASE("pre-tokenizer: every name compiles, and cutting loses nothing and adds nothing") {
    std::mt19937 random(11);
    const std::string text = random_text(random, 3000);
    for (const std::string& name : Pretokenizer::names()) {
        CAPTURE(name);
        const Result<Pretokenizer> pretokenizer = Pretokenizer::create(name);
        REQUIRE(pretokenizer.ok());
        std::string joined;
        size_t empty = 0;
        pretokenizer.value().split(text, [&](std::string_view piece) {
            joined += piece;
            if (piece.empty()) ++empty;
        });
        CHECK(joined == text);
        CHECK(empty == 0);
    }
}

TEST_CASE("pre-tokenizer: no pattern takes more than linear time on long runs") {
    const std::pair<const char*, const char*> kRuns[] = {
        {"a", ""},       {"A", "a"},   {" ", ""},  {" ", "a"},    {" ", "!"},    {" ", "🦙"},
        {"\n", ""},      {" \n", "a"}, {"1", "_"}, {"1", ""},     {"!", ""},     {"字", "A"},
        {"\u0301", "!"}, {"a ", ""},   {"'s", ""}, {"\x01", "a"}, {"IMGIMG", ""}};
    for (const std::string& name : Pretokenizer::pattern_names()) {
        const Result<Pretokenizer> pretokenizer = Pretokenizer::of_pattern(name);
        REQUIRE(pretokenizer.ok());
        for (const auto& run : kRuns) {
            const std::string unit = run.first;
            const std::string tail = run.second;
            std::string text;
            while (text.size() < 200'000) text += unit;
            text += tail;
            const double start = cpu_seconds();
            pretokenizer.value().split(text, [](std::string_view) {});
            const double seconds = cpu_seconds() - start;
            CAPTURE(name);
            CAPTURE(printable(unit));
            CAPTURE(tail);
            // About 0.05 s; quadratic time would be some 10 s.
            CHECK(seconds < 2.0);
        }
    }
}
