// Claims on a file among programs that want the same one.
#include "cli/file_claim.h"

#include "support/models.h"

#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include <sys/wait.h>
#include <unistd.h>

using namespace redline;
using namespace redline::cli;
using namespace redline::test;

namespace {

struct Folder {
    std::filesystem::path path;
    Folder() {
        std::string name = (std::filesystem::temp_directory_path() / "redline_claim_XXXXXX").string();
        path = ::mkdtemp(name.data());
    }
    ~Folder() { std::filesystem::remove_all(path); }
};

}  // namespace

TEST_CASE("a claim: one holder at a time, by whatever name the file is called, and the next is told who") {
    const Folder folder;
    const std::string file = folder.path / "talk", link = folder.path / "link";
    std::filesystem::create_symlink("talk", link);
    std::ofstream(file) << "x";
    {
        const FileClaim held = must(FileClaim::take(file));
        CHECK(held.doubt().empty());
        for (const std::string& name : {file, link}) {
            const Result<FileClaim> second = FileClaim::take(name);
            REQUIRE_FALSE(second.ok());
            CHECK(second.error().message.starts_with(
                fmt::format("{} is in use by process {} since 20", name, ::getpid())));
        }
        // The file is replaced while it is held, as it is whenever it is written.
        std::filesystem::rename(link, file);
        CHECK_FALSE(FileClaim::take(file).ok());
    }
    CHECK(must(FileClaim::take(file)).path() == file);
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);
    const Result<FileClaim> nowhere = FileClaim::take(folder.path / "none" / "talk");
    REQUIRE_FALSE(nowhere.ok());
    CHECK(nowhere.error().message.starts_with("cannot create " +
                                              (folder.path / "none" / "talk.lock").string()));
    CHECK_FALSE(FileClaim::take(folder.path).ok());
}

TEST_CASE("a claim: a program that is killed gives it up, and of many that want it at once one has it") {
    const Folder folder;
    const std::string file = folder.path / "talk";
    int ready[2];
    REQUIRE(::pipe(ready) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
        const Result<FileClaim> held = FileClaim::take(file);
        const char said = held ? 'y' : 'n';
        if (::write(ready[1], &said, 1) == 1) ::pause();
        ::_exit(1);
    }
    char said = 0;
    REQUIRE(::read(ready[0], &said, 1) == 1);
    CHECK(said == 'y');
    CHECK(FileClaim::take(file).error().message.find(fmt::format("process {}", child)) != std::string::npos);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    CHECK(FileClaim::take(file).ok());

    // Each adds one to a number in the file, which only holds where no two are inside.
    constexpr int kPrograms = 8, kTimes = 25;
    std::ofstream(file) << 0;
    for (int i = 0; i < kPrograms; ++i) {
        if (::fork() != 0) continue;
        for (int done = 0; done < kTimes;) {
            const Result<FileClaim> held = FileClaim::take(file);
            if (!held) continue;
            int number = -1;
            std::ifstream(file) >> number;
            std::ofstream(file + ".new") << number + 1;
            std::filesystem::rename(file + ".new", file);
            ++done;
        }
        ::_exit(0);
    }
    for (int i = 0; i < kPrograms; ++i) ::waitpid(-1, nullptr, 0);
    int number = -1;
    std::ifstream(file) >> number;
    CHECK(number == kPrograms * kTimes);
}
