#include "cli/commands/chat_session.h"

#include "base/file.h"
#include "cli/terminal/terminal.h"
#include "cli/user_path.h"

#include <filesystem>

namespace redline::cli {

std::string journal_of(const std::string& session) {
    return real_path(session) + ".journal";
}

Status check_replaceable(const std::string& path) {
    std::error_code unknown;
    if (!std::filesystem::exists(path, unknown)) return {};
    const File file = RL_TRY(File::open(path));
    std::string begin(7, '\0');
    if (file.size() >= begin.size()) RL_TRY(file.read(0, std::as_writable_bytes(std::span(begin))));
    if (begin == "RLCACHE") return {};
    return error("{} exists and is no saved conversation: remove it or name another file", path);
}

static Result<SessionPlace> keep_in(const std::string& path) {
    SessionPlace place{path, RL_TRY(FileClaim::take(path))};
    if (!place.kept->doubt().empty())
        note(place.kept->doubt() + ": a second chat in it would overwrite what this one says");
    return place;
}

static bool has_conversation(const std::string& path) {
    std::error_code unknown;
    return std::filesystem::exists(path, unknown) || std::filesystem::exists(journal_of(path), unknown);
}

static Result<std::optional<SessionPlace>> choose_place(const std::string& path, LineReader& reader) {
    tell("r: go on from what it holds now, and keep nothing of this chat");
    tell(fmt::format("a file's name: keep this chat there; a new file begins with what {} holds now", path));
    while (true) {
        const Typed answer = RL_TRY(reader.ask("r, a file's name, or Ctrl-D to leave> "));
        if (answer.kind != Typed::Kind::message) return std::optional<SessionPlace>();
        const std::string wanted = user_path(answer.text);
        if (wanted.empty()) continue;
        if (wanted == "r") return std::optional(SessionPlace{path, {}});
        const bool is_new = !has_conversation(wanted);
        const Status replaceable = check_replaceable(wanted);
        Result<SessionPlace> place = replaceable ? keep_in(wanted) : replaceable.error();
        if (!place) {
            fail(place.error());
            continue;
        }
        if (is_new) place->from = path;
        return std::optional(std::move(place).value());
    }
}

Result<std::optional<SessionPlace>> find_session_place(const std::string& path, LineReader& reader) {
    if (path.empty()) return std::optional(SessionPlace());
    Result<SessionPlace> place = keep_in(path);
    if (place) return std::optional(std::move(place).value());
    if (!reader.interactive() || !is_terminal(os::kStandardError))
        return error("{}; --session OTHER keeps this chat in another file", place.error().message);
    fail(place.error());
    return choose_place(path, reader);
}

}  // namespace redline::cli
