#include "cli/terminal/history_file.h"

#include "base/file.h"
#include "base/file_turn.h"
#include "json/json.h"

#include <cstdlib>
#include <filesystem>
#include <optional>

namespace redline::cli {

// Messages that are kept once the file has twice as many.
static constexpr size_t kMostMessages = 1000;

HistoryFile HistoryFile::of_user() {
    // The specification of these folders wants a path that is not absolute to be ignored.
    const char* state = std::getenv("XDG_STATE_HOME");
    if (state && *state == '/') return HistoryFile(std::string(state) + "/redline/history");
    const char* home = std::getenv("HOME");
    return HistoryFile(home && *home == '/' ? std::string(home) + "/.local/state/redline/history" : "");
}

// A message is a line: a JSON string, since messages may have several lines.
static std::string line_of(const std::string& message) {
    return Json(message).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

static Status shorten(const std::string& path, const std::vector<std::string>& messages) {
    std::string text;
    for (const std::string& message : messages) text += line_of(message);
    AtomicWriter file = RL_TRY(AtomicWriter::create(path, 0600));
    RL_TRY(file.write(std::as_bytes(std::span(text))));
    return file.commit(false);
}

static Result<std::vector<std::string>> read_messages(const std::string& path) {
    std::vector<std::string> messages;
    const std::string text = RL_TRY(read_text_file(path));
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find('\n', at), text.size());
        const auto read = read_json(std::string_view(text).substr(at, end - at));
        if (read.is_string()) messages.push_back(read.get<std::string>());
        at = end + 1;
    }
    return messages;
}

// None where the file system has no locks: a message that is written by another chat just then may be lost.
static std::optional<FileTurn> take_turn(const std::string& path) {
    Result<FileTurn> turn = FileTurn::take(path, 0600);
    return turn ? std::optional(std::move(turn).value()) : std::nullopt;
}

Result<std::vector<std::string>> HistoryFile::load() {
    std::vector<std::string> messages;
    std::error_code unknown;
    if (path_.empty() || !std::filesystem::exists(path_, unknown)) return messages;
    messages = RL_TRY(read_messages(path_));
    if (messages.size() <= 2 * kMostMessages) return messages;
    // Other chats may have added some by then, or have shortened it.
    const std::optional<FileTurn> turn = take_turn(path_);
    messages = RL_TRY(read_messages(path_));
    if (messages.size() <= 2 * kMostMessages) return messages;
    messages.erase(messages.begin(), messages.end() - ptrdiff_t(kMostMessages));
    RL_TRY(shorten(path_, messages));
    return messages;
}

Status HistoryFile::add(const std::string& message) {
    if (path_.empty()) return {};
    std::error_code problem;
    const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
    // The specification's mode for a folder that is made.
    for (std::filesystem::path made; const std::filesystem::path& part : folder) {
        made /= part;
        os::make_private_folder(made.string());
    }
    const std::optional<FileTurn> turn = take_turn(path_);
    std::error_code fault;
    const os::FileHandle handle = os::FileHandle::open(path_, os::OpenMode::append, fault, 0600);
    if (fault) return error("cannot open {}: {}", path_, fault.message());
    const std::string line = line_of(message);
    handle.write(std::as_bytes(std::span(line)), fault);  // whole, among those of other chats
    if (fault) return error("cannot write {}: {}", path_, fault.message());
    return {};
}

}  // namespace redline::cli
