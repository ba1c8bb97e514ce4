#include "cli/file_claim.h"

#include "cli/user_path.h"
#include "json/json.h"
#include "text/tokens/unicode.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace redline::cli {

namespace {

std::string lock_name(const std::string& path) {
    return path + ".lock";
}

std::string host_name() {
    char name[256] = {};
    return ::gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

// For whoever finds the file locked.
void write_owner(int handle) {
    const Json owner = {
        {"pid", int64_t(::getpid())}, {"host", host_name()}, {"since", int64_t(std::time(nullptr))}};
    const std::string text = owner.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    // Without it the lock holds as well, but says less.
    if (::ftruncate(handle, 0) == 0 && ::pwrite(handle, text.data(), text.size(), 0) < 0) errno = 0;
}

std::string describe_owner(int handle) {
    char text[1024];
    const ssize_t got = ::pread(handle, text, sizeof(text), 0);
    const Json owner = read_json(std::string_view(text, size_t(std::max<ssize_t>(got, 0))));
    if (!owner.is_object() || !owner.value("pid", Json()).is_number_integer()) return "another program";
    std::string who = fmt::format("process {}", owner["pid"].get<int64_t>());
    const Json host = owner.value("host", Json()), since = owner.value("since", Json());
    if (host.is_string() && host.get<std::string>() != host_name())
        who += " on " + printable(host.get<std::string>());
    const std::time_t then = since.is_number_integer() ? since.get<int64_t>() : 0;
    struct tm local = {};
    char day[32] = {};
    if (then > 0 && ::localtime_r(&then, &local) && std::strftime(day, sizeof(day), "%F %H:%M", &local) > 0)
        who += fmt::format(" since {}", day);
    return who;
}

// Who leaves removes the lock file: a handle may be on one that is no longer there.
bool is_at(int handle, const std::string& path) {
    struct stat open = {}, named = {};
    return ::fstat(handle, &open) == 0 && ::stat(path.c_str(), &named) == 0 && open.st_dev == named.st_dev &&
           open.st_ino == named.st_ino;
}

}  // namespace

Result<FileClaim> FileClaim::take(const std::string& path) {
    std::error_code problem;
    const std::string kept = real_path(path);
    if (std::filesystem::is_directory(kept, problem)) return error("{} is a folder, not a file", path);
    constexpr int kTries = 4;  // the owner may be leaving, or writing who it is
    for (int tries = 1;; ++tries) {
        const int handle = ::open(lock_name(kept).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (handle < 0) return error("cannot create {}: {}", lock_name(kept), std::strerror(errno));
        const int code = ::flock(handle, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
        const bool there = is_at(handle, lock_name(kept));
        if (there && code == 0) {
            write_owner(handle);
            return FileClaim(handle, path, kept, "");
        }
        if (there && code != EWOULDBLOCK && code != EINTR)
            return FileClaim(handle, path, kept,
                             fmt::format("{} cannot be locked ({})", path, std::strerror(code)));
        const std::string owner = describe_owner(handle);
        ::close(handle);
        if (tries >= kTries)
            return there ? error("{} is in use by {}", path, owner)
                         : error("{} cannot be locked: it is gone as soon as it is opened", lock_name(kept));
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
    }
}

FileClaim::FileClaim(FileClaim&& other) noexcept
    : handle_(std::exchange(other.handle_, -1)),
      name_(std::move(other.name_)),
      path_(std::move(other.path_)),
      doubt_(std::move(other.doubt_)) {}

FileClaim& FileClaim::operator=(FileClaim&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(name_, other.name_);
    std::swap(path_, other.path_);
    std::swap(doubt_, other.doubt_);
    return *this;
}

// The lock file goes first: who opened it and waits for its lock finds that it is not there any more.
FileClaim::~FileClaim() {
    if (handle_ < 0) return;
    ::unlink(lock_name(path_).c_str());
    ::close(handle_);
}

}  // namespace redline::cli
