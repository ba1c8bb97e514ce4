#include "support/text_support.h"

#include <doctest/doctest.h>

using namespace redline;
using namespace redline::test;

TEST_CASE("text stream: random cuts never split a character, and the text is that of one piece") {
    std::mt19937 random(29);
    for (int round = 0; round < 300; ++round) {
        std::string bytes = random_text(random, 20);
        if (round % 2 == 1)
            for (int i = 0; i < 5 && !bytes.empty(); ++i)
                bytes[random() % bytes.size()] = char(random() % 256);
        TextStream stream;
        std::string out;
        for (size_t at = 0; at < bytes.size();) {
            const size_t count = 1 + random() % 5;
            const std::string part = stream.push(std::string_view(bytes).substr(at, count));
            CHECK(is_valid_utf8(part));
            out += part;
            at += count;
        }
        out += stream.finish();
        CHECK(out == to_valid_utf8(bytes));
    }
    TextStream stream;
    CHECK(stream.push("\xF0\x9F\xA6") == "");
    CHECK(stream.push("x") == "\uFFFDx");
    CHECK(stream.push("\xE2") == "");
    CHECK(stream.finish() == "\uFFFD");
    CHECK(stream.finish() == "");
}

TEST_CASE("stop matcher: finds stops across pieces, holds back what may become one") {
    StopMatcher matcher({"<|im_end|>", "STOP", ""});
    CHECK(matcher.push("hello <|im") == "hello ");
    CHECK(matcher.push("_x ST") == "<|im_x ");
    CHECK(matcher.push("OP more") == "");
    CHECK(matcher.matched());
    CHECK(matcher.match() == "STOP");
    CHECK(matcher.push("x") == "");
    CHECK(matcher.finish() == "");
    StopMatcher self({"aab"});
    CHECK(self.push("aaaa") == "aa");
    CHECK(self.push("b") == "");
    CHECK(self.matched());
    StopMatcher held({"abc"});
    CHECK(held.push("xab") == "x");
    CHECK(held.finish() == "ab");
    StopMatcher none({});
    CHECK(none.push("anything") == "anything");
}

TEST_CASE("stop matcher: the result does not depend on how the text is cut") {
    std::mt19937 random(31);
    for (int round = 0; round < 2000; ++round) {
        std::vector<std::string> stops;
        for (uint32_t i = 0; i < 1 + random() % 3; ++i) {
            std::string stop(1 + random() % 5, 'a');
            for (char& c : stop) c = "ab"[random() % 2];
            stops.push_back(stop);
        }
        std::string text(random() % 24, 'a');
        for (char& c : text) c = "abc"[random() % 3];
        // The stop that is complete first; of those the one that begins first.
        size_t end = text.size() + 1;
        size_t begin = text.size();
        for (const std::string& stop : stops)
            if (const size_t at = text.find(stop); at != text.npos) {
                const size_t stop_end = at + stop.size();
                if (stop_end < end || (stop_end == end && at < begin)) {
                    end = stop_end;
                    begin = at;
                }
            }
        StopMatcher matcher(stops);
        std::string out;
        for (size_t at = 0; at < text.size();) {
            const size_t count = 1 + random() % 4;
            out += matcher.push(std::string_view(text).substr(at, count));
            CHECK(out.size() <= begin);
            at += count;
        }
        CHECK(matcher.matched() == (end <= text.size()));
        out += matcher.finish();
        CHECK(out == text.substr(0, begin));
    }
}

TEST_CASE("printable: control characters never reach the terminal") {
    CHECK(printable("a\n\t\x1b[0m") == "a\\n\\t\\x1b[0m");
    CHECK(printable("\xC2\x9B"
                    "31m") == "\\xc2\\x9b31m");
    CHECK(printable("é🦙\\") == "é🦙\\\\");
    CHECK(printable("\xFF\xE2\x82") == "\\xff\\xe2\\x82");
    CHECK(printable("a\u202Eb") == "a\\u202eb");
}
