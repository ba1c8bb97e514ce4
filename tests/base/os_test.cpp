// The operating system's calls behind src/base/os: files, locks, libraries, memory, processors, waiting.
#include "base/os/child_process.h"
#include "base/os/file_handle.h"
#include "base/os/memory.h"
#include "base/os/processor.h"
#include "base/os/shared_library.h"
#include "base/os/signals.h"
#include "base/os/standard_input.h"
#include "base/os/system.h"
#include "base/os/terminal.h"

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>

using namespace redline;

namespace {

struct Folder {
    std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("redline_os_" + std::to_string(os::process_id()));
    Folder() { std::filesystem::create_directories(path); }
    ~Folder() { std::filesystem::remove_all(path); }
    std::string file(const std::string& name) const { return (path / name).string(); }
};

std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text));
}

std::string content(const os::FileHandle& handle, uint64_t offset = 0) {
    std::array<std::byte, 64> bytes;
    std::error_code fault;
    const size_t got = handle.read_at(offset, bytes, fault);
    REQUIRE_FALSE(fault);
    return {reinterpret_cast<const char*>(bytes.data()), got};
}

}  // namespace

TEST_CASE("os: a created file is new, an appended one grows, and an updated one is read and cut") {
    const Folder folder;
    const std::string name = folder.file("text");
    std::error_code fault;
    {
        os::FileHandle made = os::FileHandle::open(name, os::OpenMode::create, fault);
        REQUIRE_FALSE(fault);
        made.write(bytes_of("one"), fault);
        made.sync(fault);
        made.close(fault);
        CHECK_FALSE(fault);
        CHECK_FALSE(bool(made));
    }
    CHECK_FALSE(bool(os::FileHandle::open(name, os::OpenMode::create, fault)));
    CHECK(fault == std::errc::file_exists);
    os::FileHandle::open(name, os::OpenMode::append, fault).write(bytes_of(", two"), fault);
    CHECK_FALSE(fault);

    const os::FileHandle file = os::FileHandle::open(name, os::OpenMode::update, fault);
    CHECK(content(file) == "one, two");
    CHECK(file.write_at(5, bytes_of("2"), fault) == 1);
    CHECK(content(file, 5) == "2wo");
    CHECK(content(file, 8) == "");
    file.truncate(fault);
    CHECK_FALSE(fault);
    CHECK(file.info(fault).size == 0);
}

TEST_CASE("os: kinds of files are told apart, and a file has the same identity under all of its names") {
    const Folder folder;
    const std::string name = folder.file("a"), other = folder.file("b"), link = folder.file("link");
    std::error_code fault;
    const os::FileHandle a = os::FileHandle::open(name, os::OpenMode::update, fault),
                         b = os::FileHandle::open(other, os::OpenMode::update, fault);
    std::filesystem::create_symlink("a", link);
    CHECK(a.info(fault).kind == os::FileKind::regular);
    CHECK(os::info_of(folder.path.string(), fault).kind == os::FileKind::folder);
    CHECK(os::info_of(link, fault).is_same_file(a.info(fault)));
    CHECK_FALSE(os::info_of(other, fault).is_same_file(a.info(fault)));
    CHECK_FALSE(bool(os::FileHandle::open(link, os::OpenMode::update_no_link, fault)));
    CHECK(bool(fault));

    os::replace_file(other, name, fault);
    CHECK_FALSE(fault);
    CHECK(os::info_of(name, fault).is_same_file(b.info(fault)));
    os::remove_file(name.c_str());
    CHECK(os::info_of(name, fault).size == 0);
    CHECK(fault == std::errc::no_such_file_or_directory);
    CHECK(fault.message() == std::strerror(ENOENT));
}

TEST_CASE("os: a lock has one holder at a time, and closing its handle frees it") {
    const Folder folder;
    std::error_code fault;
    const os::FileHandle second = os::FileHandle::open(folder.file("lock"), os::OpenMode::update, fault);
    {
        const os::FileHandle first = os::FileHandle::open(folder.file("lock"), os::OpenMode::update, fault);
        CHECK(first.try_lock(fault));
        CHECK_FALSE(second.try_lock(fault));
        CHECK_FALSE(fault);
    }
    second.lock(fault);
    CHECK_FALSE(fault);
}

TEST_CASE(
    "os: a library that is missing is told from one that is broken, and lacks no function that it has") {
    const Folder folder;
    os::LibraryFault fault;
    CHECK(os::open_library("libredline-not-there.so.1", fault) == nullptr);
    CHECK(fault.kind == os::LibraryFault::Kind::missing);
    CHECK_FALSE(fault.message.empty());

    std::error_code unwritten;
    os::FileHandle::open(folder.file("broken.so"), os::OpenMode::create, unwritten)
        .write(bytes_of("no library"), unwritten);
    CHECK(os::open_library(folder.file("broken.so").c_str(), fault) == nullptr);
    CHECK(fault.kind == os::LibraryFault::Kind::broken);

    void* const library = os::open_library("libm.so.6", fault, false);
    REQUIRE(library);
    CHECK(os::find_symbol(library, "cos"));
    CHECK(os::find_symbol(library, "redline_not_there") == nullptr);
    os::close_library(library);
}

TEST_CASE("os: pages are zeros, and the peak of memory counts those that were written") {
    constexpr uint64_t kBytes = uint64_t(64) << 20;
    const uint64_t before = os::peak_resident();
    std::error_code fault;
    auto* const pages = static_cast<std::byte*>(os::allocate_pages(kBytes, false, fault));
    REQUIRE(pages);
    CHECK(pages[0] == std::byte(0));
    CHECK(pages[kBytes - 1] == std::byte(0));
    std::memset(pages, 1, kBytes);
    CHECK(os::peak_resident() >= before + kBytes / 2);
    os::free_pages(pages, kBytes);
    CHECK(os::allocate_pages(uint64_t(1) << 60, false, fault) == nullptr);
    CHECK(fault == std::errc::not_enough_memory);
}

TEST_CASE("os: a thread's time grows while it computes, on a processor that it may use") {
    CHECK_FALSE(os::usable_processors().empty());
    const uint64_t begin = os::thread_nanoseconds();
    const int64_t start = os::monotonic_milliseconds();
    while (os::thread_nanoseconds() < begin + 2'000'000) continue;
    CHECK(os::monotonic_milliseconds() >= start + 1);
}

TEST_CASE("os: this process, its user and its machine have names") {
    CHECK(os::process_id() > 0);
    CHECK_FALSE(os::host_name().empty());
    CHECK_FALSE(os::kernel_release().empty());
    CHECK_FALSE(os::user_groups().empty());
    CHECK(os::exists("/"));
    CHECK_FALSE(os::can_read_and_write("/not/there"));
}

TEST_CASE("os: the limit of open files is raised once, and then stays") {
    const uint64_t files = os::raise_open_files();
    CHECK(files > 0);
    CHECK(os::raise_open_files() == files);
}

TEST_CASE("os: wake() ends a wait for input once, before it or during it") {
    const Folder folder;
    std::error_code fault;
    const os::FileHandle quiet = os::FileHandle::open(folder.file("pipe-like"), os::OpenMode::update, fault);
    CHECK_FALSE(os::is_terminal(quiet.number()));
    CHECK_FALSE(os::terminal_columns(quiet.number()));
    os::forget_wakes();
    os::wake();
    CHECK(os::wait_for_input(quiet.number()).woken);
    os::forget_wakes();
    CHECK_FALSE(os::wait_for_input(quiet.number()).woken);  // a file is always ready
    CHECK(os::is_ready(quiet.number(), 0));
}
