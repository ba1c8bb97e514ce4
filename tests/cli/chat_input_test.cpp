// Texts on their way into a message: pastes, long lines, and files.
#include "cli/attachment.h"
#include "cli/terminal/folds.h"
#include "support/models.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

using namespace redline;
using namespace redline::cli;
using namespace redline::test;

namespace {

std::string written(const std::string& name, const std::string& text) {
    static const std::string folder = [] {
        std::string made = (std::filesystem::temp_directory_path() / "redline_input_XXXXXX").string();
        return std::string(::mkdtemp(made.data()));
    }();
    const std::string path = folder + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
}

std::string lines(int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += fmt::format("line {}\n", i);
    return text;
}

}  // namespace

TEST_CASE("a paste: every system's line ends are ours, and what steers a terminal is a sign") {
    for (const auto& [pasted, want, replaced] :
         {std::tuple<std::string, std::string, size_t>{"one\r\ntwo\rthree\nfour\r\n\r\n",
                                                       "one\ntwo\nthree\nfour\n\n", 0},
          {"a\tb", "a\tb", 0},
          {std::string("a\0b", 3), "a\u2400b", 1},
          {"\x1b[31mred\x1b[0m\x7f", "\u241b[31mred\u241b[0m\u2421", 3},
          {"\xC2\x9B"
           "31m \u00e9",
           "\uFFFD31m \u00e9", 1},
          {"\r", "\n", 0},
          {"", "", 0}}) {
        const PastedText taken = take_paste(pasted);
        CHECK(taken.text == want);
        CHECK(taken.replaced == replaced);
    }
}

TEST_CASE("folds: a long text stands as a mark, which opens to it and to nothing else") {
    Folds folds;
    CHECK(folds.fold("two\nlines", "pasted") == "two\nlines");
    const std::string mark = folds.fold(lines(120), "pasted");
    CHECK(mark == "[pasted 120 lines]");
    CHECK(folds.fold(lines(120), "pasted") == mark);
    std::string other = lines(120);
    other[0] = 'L';
    const std::string second = folds.fold(other, "pasted");
    CHECK(second == "[pasted 120 lines #2]");
    CHECK(folds.fold(std::string(5000, 'q'), "message of") == "[message of 5000 bytes]");
    CHECK(folds.open("see " + mark + " and " + second + "!") == "see " + lines(120) + " and " + other + "!");
    // A mark that is changed is what it looks like.
    CHECK(folds.open("[pasted 120 line]") == "[pasted 120 line]");
    CHECK(folds.mark_at_end("see " + second) == second);
    CHECK_FALSE(folds.mark_at_end(mark + ".").has_value());
}

TEST_CASE("folds: a mark that was deleted can come back, until many later ones have come") {
    Folds folds;
    const std::string first = folds.fold(lines(100), "pasted"), second = folds.fold(lines(101), "pasted");
    folds.forget_old("");
    CHECK(folds.open(first + second) == lines(100) + lines(101));
    for (int count = 102; count < 117; ++count) folds.fold(lines(count), "pasted");
    // One more than are kept: the oldest goes, but for one in the line.
    folds.forget_old("again " + first);
    CHECK(folds.open(first + second) == lines(100) + second);
    folds.fold(lines(117), "pasted");
    folds.forget_old("");
    CHECK(folds.open(first) == first);
    CHECK(folds.open("[pasted 102 lines]") == lines(102));
}

TEST_CASE("a file for a message: its text is fenced by its name, whatever is in it") {
    const std::string path = written("notes.md", "\xEF\xBB\xBFone\r\n```\ncode\n```\n");
    const Attachment file = must(read_attachment(path, "notes.md"));
    CHECK(file.text == "one\n```\ncode\n```");
    CHECK(file.changes == "without its byte order mark, with line feeds for its CRLF");
    const Attachment plain = must(read_attachment(written("a b.txt", "x\r\xC3\xA9"), "a b.txt"));
    CHECK(plain.text == "x\r\u00e9");
    CHECK(plain.changes.empty());
    CHECK(with_attachments(std::vector{file, plain}, "Compare.") ==
          "notes.md:\n````\none\n```\ncode\n```\n````\n\na b.txt:\n```\nx\r\u00e9\n```\n\nCompare.");
    CHECK(with_attachments({}, "Hi") == "Hi");
}

TEST_CASE("a file for a message: what is no text is refused, with what would make it one") {
    const std::string pipe = written("pipe", "");
    std::filesystem::remove(pipe);
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    for (const auto& [path, words] : {std::pair<std::string, std::string>{written("none", ""), "is empty"},
                                      {written("image", std::string("PNG\0x", 5)), "its byte 3 is 0"},
                                      {written("latin", "caf\xE9 au lait"), "its byte 3 is 0xE9"},
                                      {written("cut", "caf\xC3"), "its byte 3 is 0xC3"},
                                      {written("wide",
                                               "\xFF\xFE"
                                               "a\x01"),
                                       "is UTF-16: iconv"},
                                      {written("x", "y") + "z", "No such file"},
                                      {std::filesystem::temp_directory_path(), "is a folder"},
                                      {pipe, "is not a regular file"}}) {
        const Result<Attachment> refused = read_attachment(path, path);
        REQUIRE_FALSE(refused.ok());
        CHECK_MESSAGE(refused.error().message.find(words) != std::string::npos, refused.error().message);
    }
}
