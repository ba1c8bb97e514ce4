#include "serve/http/access_log.h"

#include "json/json.h"

#include <chrono>
#include <ctime>

namespace redline::serve {

namespace {

// "2026-11-29T12:00:00.250Z"
std::string time_text(int64_t milliseconds) {
    const std::time_t seconds = std::time_t(milliseconds / 1000);
    std::tm parts = {};
    ::gmtime_r(&seconds, &parts);
    char text[64];
    const size_t length = std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
    return fmt::format("{}.{:03}Z", std::string_view(text, length), milliseconds % 1000);
}

// One word: "-" for an empty text, and %20 for a space.
std::string word(std::string_view text) {
    if (text.empty()) return "-";
    std::string out;
    for (const char c : text) {
        if (c > ' ' && c < 0x7F && c != '%')
            out += c;
        else
            out += fmt::format("%{:02X}", uint8_t(c));
    }
    return out;
}

std::string json_line(const HttpAccess& access, const std::string& time) {
    Json line = {{"time", time},          {"id", access.id},
                 {"peer", access.peer},   {"method", access.method},
                 {"path", access.path},   {"status", access.status},
                 {"bytes", access.bytes}, {"seconds", access.seconds}};
    if (access.prompt_tokens) line["prompt_tokens"] = *access.prompt_tokens;
    if (access.generated_tokens) line["generated_tokens"] = *access.generated_tokens;
    return line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string access_line(const HttpAccess& access, int64_t time, bool json) {
    if (json) return json_line(access, time_text(time));
    const auto count = [](const std::optional<uint64_t>& tokens) {
        return tokens ? std::to_string(*tokens) : "-";
    };
    return fmt::format("{} {} {} {} {} {} {} {:.3f} {} {}\n", time_text(time), word(access.id),
                       word(access.peer), word(access.method), word(access.path), access.status, access.bytes,
                       access.seconds, count(access.prompt_tokens), count(access.generated_tokens));
}

// Addresses of clients are not for everyone.
static constexpr unsigned kPermissions = 0640;

// Lines of a minute at some thousand requests per second.
static constexpr size_t kMostWaiting = size_t(16) << 20;

Result<std::unique_ptr<AccessLog>> AccessLog::open(const std::string& path, bool json, Tell tell) {
    std::error_code fault;
    os::FileHandle file = os::FileHandle::open(path, os::OpenMode::append, fault, kPermissions);
    if (fault)
        return error(
            "cannot append to the log of accesses {}: {}; --log-file takes a file in a folder that "
            "this user may write to",
            path, fault.message());
    std::unique_ptr<AccessLog> log(new AccessLog(std::move(file), path, json, std::move(tell)));
    log->writer_ = std::thread([made = log.get()] { made->loop(); });
    return log;
}

AccessLog::~AccessLog() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
    }
    changed_.notify_one();
    writer_.join();
}

void AccessLog::add(const HttpAccess& access) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const std::string line =
        access_line(access, std::chrono::duration_cast<std::chrono::milliseconds>(now).count(), json_);
    {
        const std::lock_guard lock(mutex_);
        overrun_ = overrun_ || waiting_.size() + line.size() > kMostWaiting;
        if (waiting_.size() + line.size() <= kMostWaiting) waiting_ += line;
    }
    changed_.notify_one();
}

void AccessLog::reopen() {
    {
        const std::lock_guard lock(mutex_);
        old_ = waiting_.size();
        reopens_ = true;
    }
    changed_.notify_one();
}

void AccessLog::loop() {
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [this] { return ending_ || reopens_ || !waiting_.empty(); });
        if (ending_ && !reopens_ && waiting_.empty()) return;
        std::string lines = std::exchange(waiting_, {});
        const size_t old = std::exchange(old_, 0);
        const bool reopens = std::exchange(reopens_, false), overrun = std::exchange(overrun_, false);
        lock.unlock();
        if (reopens) {
            write(lines.substr(0, old));
            lines.erase(0, old);
            open_again();
        }
        write(std::move(lines));
        if (overrun) lost("they come faster than the disk takes them");
        lock.lock();
    }
}

void AccessLog::open_again() {
    std::error_code fault;
    os::FileHandle file = os::FileHandle::open(path_, os::OpenMode::append, fault, kPermissions);
    if (fault)
        return tell_(fmt::format(
            "cannot open the log of accesses {} again: {}; lines still go to the file that it was", path_,
            fault.message()));
    file_ = std::move(file);
    torn_ = told_ = false;
}

void AccessLog::write(std::string lines) {
    if (lines.empty()) return;
    if (torn_) lines.insert(lines.begin(), '\n');
    std::error_code fault;
    file_.write(std::as_bytes(std::span(lines)), fault);
    torn_ = bool(fault);
    if (fault) lost(fault.message());
}

void AccessLog::lost(const std::string& why) {
    if (std::exchange(told_, true)) return;
    tell_(fmt::format("lines of the log of accesses {} are lost: {}; the server goes on", path_, why));
}

}  // namespace redline::serve
