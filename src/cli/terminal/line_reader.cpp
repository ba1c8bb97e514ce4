#include "cli/terminal/line_reader.h"

#include "cli/terminal/terminal.h"

#include <cerrno>
#include <cstring>

#include <unistd.h>

namespace redline::cli {

static constexpr size_t kMostLine = size_t(1) << 26;

LineReader::LineReader() : interactive_(is_terminal(STDIN_FILENO)) {}

Result<Typed> LineReader::read_line(const char* prompt) {
    if (interactive_) show(voice().colour ? fmt::format("\x1b[32m{}\x1b[0m", prompt) : prompt);
    while (true) {
        const size_t end = held_.find('\n');
        if (end != std::string::npos || (ended_ && !held_.empty())) {
            std::string line = held_.substr(0, end);
            held_.erase(0, end == std::string::npos ? end : end + 1);
            if (line.ends_with('\r')) line.pop_back();
            return Typed{Typed::Kind::message, std::move(line)};
        }
        if (ended_) return Typed{Typed::Kind::end, {}};
        if (held_.size() > kMostLine) return error("a line of input has more than {} bytes", kMostLine);
        char chunk[1 << 14];
        const ssize_t got = ::read(STDIN_FILENO, chunk, sizeof(chunk));
        if (got < 0 && errno == EINTR) return Typed{Typed::Kind::interrupted, {}};
        if (got < 0 && errno != EBADF) return error("cannot read standard input: {}", std::strerror(errno));
        ended_ = got <= 0;
        if (got > 0) held_.append(chunk, size_t(got));
    }
}

Result<Typed> LineReader::read() {
    constexpr std::string_view kFence = "\"\"\"";
    Typed all = RL_TRY(read_line("> "));
    if (all.kind != Typed::Kind::message) return all;
    if (all.text.starts_with(kFence)) {
        all.text.erase(0, kFence.size());
        while (!all.text.ends_with(kFence)) {
            const Typed more = RL_TRY(read_line("... "));
            if (more.kind == Typed::Kind::interrupted) return more;
            if (more.kind == Typed::Kind::end) return all;
            all.text += "\n" + more.text;
        }
        all.text.erase(all.text.size() - kFence.size());
        if (all.text.starts_with('\n')) all.text.erase(0, 1);
        if (all.text.ends_with('\n')) all.text.pop_back();
        return all;
    }
    while (all.text.ends_with('\\')) {
        const Typed more = RL_TRY(read_line("... "));
        if (more.kind == Typed::Kind::interrupted) return more;
        all.text.back() = '\n';
        if (more.kind == Typed::Kind::end) return all;
        all.text += more.text;
    }
    return all;
}

}  // namespace redline::cli
