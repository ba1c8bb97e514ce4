// Answers on a terminal: rows end between words, however the text was cut into pieces, and lines stay whole.
#include "cli/terminal/word_wrap.h"

#include "support/screen.h"

#include <doctest/doctest.h>

using redline::cli::WordWrap;
using redline::test::Screen;

namespace {

// The screen when the text comes in pieces of so many characters.
Screen screen_of(std::string_view text, int columns, size_t piece) {
    Screen screen(50, columns);
    WordWrap wrap;
    size_t at = 0;
    while (at < text.size()) {
        size_t end = std::min(text.size(), at + piece);
        while (end < text.size() && (uint8_t(text[end]) & 0xC0) == 0x80) ++end;
        std::string out = wrap.put(text.substr(at, end - at), size_t(columns));
        // Line ends become those of a terminal's driver.
        for (size_t n = out.find('\n'); n != out.npos; n = out.find('\n', n + 2)) out.insert(n, 1, '\r');
        screen.write(out);
        at = end;
    }
    CHECK(screen.unknown() == "");
    return screen;
}

void check(std::string_view text, int columns, const std::string& want) {
    for (const size_t piece : {1, 2, 3, 7, 1000}) CHECK(screen_of(text, columns, piece).text() == want);
}

// Without the blanks that fill rows.
std::string words_of(const std::string& text) {
    std::string out;
    for (const char c : text)
        if (c != ' ' || !out.ends_with(' ')) out += c;
    return out;
}

}  // namespace

TEST_CASE("word wrap: lines end between words, long words where they must") {
    check("the quick brown fox jumps", 12, "the quick\nbrown fox\njumps");
    check("one\n\ntwo three", 10, "one\n\ntwo three");
    check("two three4", 10, "two\nthree4");
    check("a abcdefghijklmnopqrst b", 8, "a\nabcdefgh\nijklmnop\nqrst b");
    check("a  b", 80, "a  b");
}

TEST_CASE("word wrap: code and tables are left as they are") {
    check("so:\n```\nint a = b + c + d;\n```\nand then more text", 12,
          "so:\n```\nint a = b +\nc + d;\n```\nand then\nmore text");
    check("| a | b | c | d |\nx y", 40, "| a | b | c | d |\nx y");
}

TEST_CASE("word wrap: wide characters take two columns, and may stand at any end of a line") {
    check("日本語日本語", 8, "日本語日\n本語");
    check("ab 日本", 6, "ab 日\n本");
    check("été déjà vu", 9, "été déjà\nvu");
    check("e\u0301e\u0301 ab", 8, "e\u0301e\u0301 ab");
}

TEST_CASE("word wrap: what is copied from the terminal has the lines of the text and no others") {
    for (const std::string text :
         {"the quick brown fox jumps over\nthe lazy dog, again", "a abcdefghijklmnopqrstuvwxyzabcdef b c",
          "日本語日本語日本語 日本", "été déjà vu, e\u0301e\u0301 encore une fois"})
        for (const size_t piece : {1, 3, 1000}) CHECK(words_of(screen_of(text, 12, piece).copied()) == text);
    // Words of a row that they fill are not even set apart.
    CHECK(screen_of("https://example.org/a/long/path", 12, 1).copied() == "https://example.org/a/long/path");
    CHECK(screen_of("abcde abcde abcde", 6, 1).copied() == "abcde abcde abcde");
}

TEST_CASE(
    "word wrap: a tab at the end of a row, and characters that a terminal counts differently, do no harm") {
    check("abcdefg\tabc", 8, "abcdefg\nabc");
    check("a\tb", 20, "a       b");
    // The end of a row is named, not counted.
    WordWrap wrap;
    CHECK(wrap.put("one two three four five", 16).find("\x1b[16G") != std::string::npos);
}

TEST_CASE("word wrap: a line is clipped to columns, not to bytes") {
    CHECK(redline::cli::clipped("日本語", 5) == "日本");
    CHECK(redline::cli::clipped("e\u0301e\u0301x", 2) == "e\u0301e\u0301");
    CHECK(redline::cli::clipped("abc", 10) == "abc");
}

TEST_CASE("word wrap: without columns the text is as it was") {
    WordWrap wrap;
    CHECK(wrap.put("a long line of text", 0) == "a long line of text");
    CHECK_FALSE(wrap.at_start());
    CHECK(wrap.put("\n", 0) == "\n");
    CHECK(wrap.at_start());
}
