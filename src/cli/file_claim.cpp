#include "cli/file_claim.h"

#include "base/os/system.h"
#include "cli/user_path.h"
#include "json/json.h"
#include "text/tokens/unicode.h"

#include <array>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <thread>

namespace redline::cli {

namespace {

std::string lock_name(const std::string& path) {
    return path + ".lock";
}

// For whoever finds the file locked.
void write_owner(const os::FileHandle& handle) {
    const Json owner = {
        {"pid", os::process_id()}, {"host", os::host_name()}, {"since", int64_t(std::time(nullptr))}};
    const std::string text = owner.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    // Without it the lock holds as well, but says less.
    std::error_code ignored;
    handle.truncate(ignored);
    if (!ignored) handle.write_at(0, std::as_bytes(std::span(text)), ignored);
}

std::string describe_owner(const os::FileHandle& handle) {
    std::array<char, 1024> text;
    std::error_code ignored;
    const size_t got = handle.read_at(0, std::as_writable_bytes(std::span(text)), ignored);
    const Json owner = read_json(std::string_view(text.data(), got));
    if (!owner.is_object() || !owner.value("pid", Json()).is_number_integer()) return "another program";
    std::string who = fmt::format("process {}", owner["pid"].get<int64_t>());
    const Json host = owner.value("host", Json()), since = owner.value("since", Json());
    if (host.is_string() && host.get<std::string>() != os::host_name())
        who += " on " + printable(host.get<std::string>());
    const std::time_t then = since.is_number_integer() ? since.get<int64_t>() : 0;
    struct tm local = {};
    char day[32] = {};
    if (then > 0 && ::localtime_r(&then, &local) && std::strftime(day, sizeof(day), "%F %H:%M", &local) > 0)
        who += fmt::format(" since {}", day);
    return who;
}

// Who leaves removes the lock file: a handle may be on one that is no longer there.
bool is_at(const os::FileHandle& handle, const std::string& path) {
    std::error_code unknown, missing;
    const os::FileInfo open = handle.info(unknown), named = os::info_of(path, missing);
    return !unknown && !missing && open.is_same_file(named);
}

}  // namespace

Result<FileClaim> FileClaim::take(const std::string& path) {
    std::error_code problem;
    const std::string kept = real_path(path);
    if (std::filesystem::is_directory(kept, problem)) return error("{} is a folder, not a file", path);
    constexpr int kTries = 4;  // the owner may be leaving, or writing who it is
    for (int tries = 1;; ++tries) {
        std::error_code fault;
        os::FileHandle handle =
            os::FileHandle::open(lock_name(kept), os::OpenMode::update_no_link, fault, 0600);
        if (fault) return error("cannot create {}: {}", lock_name(kept), fault.message());
        const bool locked = handle.try_lock(fault);
        const bool there = is_at(handle, lock_name(kept));
        if (there && locked) {
            write_owner(handle);
            return FileClaim(std::move(handle), path, kept, "");
        }
        if (there && fault)
            return FileClaim(std::move(handle), path, kept,
                             fmt::format("{} cannot be locked ({})", path, fault.message()));
        const std::string owner = describe_owner(handle);
        std::error_code ignored;
        handle.close(ignored);
        if (tries >= kTries)
            return there ? error("{} is in use by {}", path, owner)
                         : error("{} cannot be locked: it is gone as soon as it is opened", lock_name(kept));
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
    }
}

FileClaim& FileClaim::operator=(FileClaim&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(name_, other.name_);
    std::swap(path_, other.path_);
    std::swap(doubt_, other.doubt_);
    return *this;
}

// The lock file goes first: who opened it and waits for its lock finds that it is not there any more.
FileClaim::~FileClaim() {
    if (!handle_) return;
    os::remove_file(lock_name(path_).c_str());
}

}  // namespace redline::cli
