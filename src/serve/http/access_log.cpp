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

Result<AccessLog> AccessLog::open(const std::string& path, bool json) {
    constexpr unsigned kPermissions = 0640;  // addresses of clients are not for everyone
    std::error_code fault;
    os::FileHandle file = os::FileHandle::open(path, os::OpenMode::append, fault, kPermissions);
    if (fault)
        return error(
            "cannot append to the log of accesses {}: {}; --log-file takes a file in a folder that "
            "this user may write to",
            path, fault.message());
    return AccessLog(std::move(file), path, json);
}

Status AccessLog::write(const HttpAccess& access) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    std::string line =
        access_line(access, std::chrono::duration_cast<std::chrono::milliseconds>(now).count(), json_);
    if (torn_) line.insert(line.begin(), '\n');
    std::error_code fault;
    file_.write(std::as_bytes(std::span(line)), fault);
    torn_ = bool(fault);
    if (!fault || told_) return {};
    told_ = true;
    return error("lines of the log of accesses {} are lost: {}; the server goes on", path_, fault.message());
}

}  // namespace redline::serve
