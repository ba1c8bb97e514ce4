// The messages that are kept from one chat to the next, whose windows write the same file.
#include "cli/terminal/history_file.h"

#include "base/file_turn.h"
#include "support/models.h"

#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

using namespace redline;
using namespace redline::test;
using cli::HistoryFile;

namespace {

struct HistoryFolder {
    std::string path = (std::filesystem::temp_directory_path() / "redline_history_XXXXXX").string();
    HistoryFolder() { REQUIRE(::mkdtemp(path.data())); }
    ~HistoryFolder() { std::filesystem::remove_all(path); }
};

std::string text_of(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

}  // namespace

TEST_CASE("history: a file that grows long is shortened, and what another window adds meanwhile stays") {
    const HistoryFolder folder;
    const std::string path = folder.path + "/state/history";
    HistoryFile window(path);
    std::atomic<bool> stops = false;
    std::atomic<int> rounds = 0;
    // Another window begins again and again, which shortens a long file.
    std::thread other([&] {
        HistoryFile theirs(path);
        while (!stops) {
            for (int i = 0; i < 2100; ++i) must(theirs.add("theirs"));
            CHECK(theirs.load().ok());
            ++rounds;
        }
    });
    // Each is looked for at once, long before so many others have come that it is rightly forgotten.
    size_t lost = 0;
    for (int i = 0; rounds < 12; ++i) {
        const std::string mine = fmt::format("mine {}", i);
        must(window.add(mine));
        lost += text_of(path).find("\"" + mine + "\"") == std::string::npos ? 1 : 0;
    }
    stops = true;
    other.join();
    CHECK(lost == 0);
}

TEST_CASE("history: who shortens the file waits for who writes to it") {
    const HistoryFolder folder;
    const std::string path = folder.path + "/history";
    HistoryFile window(path);
    for (int i = 0; i < 2001; ++i) must(window.add(fmt::format("{}", i)));
    std::atomic<bool> shortened = false;
    std::thread other;
    {
        const FileTurn turn = must(FileTurn::take(path, 0600));
        other = std::thread([&] {
            HistoryFile theirs(path);
            CHECK(must(theirs.load()).size() == 1000);
            shortened = true;
        });
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        CHECK_FALSE(shortened);
        std::ofstream(path, std::ios::app) << "\"last\"\n";
    }
    other.join();
    CHECK(must(window.load()).back() == "last");
}
