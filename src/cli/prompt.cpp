#include "cli/prompt.h"

#include "base/file.h"
#include "cli/sampling_options.h"
#include "cli/terminal.h"

#include <cerrno>
#include <cstring>

#include <unistd.h>

namespace redline::cli {

static constexpr uint64_t kMostText = uint64_t(1) << 30;

Result<std::string> read_standard_input() {
    std::string text;
    char chunk[1 << 16];
    while (true) {
        const ssize_t got = ::read(STDIN_FILENO, chunk, sizeof(chunk));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EBADF) return text;
        if (got < 0) return error("cannot read standard input: {}", std::strerror(errno));
        if (got == 0) return text;
        text.append(chunk, size_t(got));
        if (text.size() > kMostText)
            return error("standard input has more than the {} bytes accepted here", kMostText);
    }
}

static std::string without_last_line_end(std::string text) {
    if (text.ends_with('\n')) text.pop_back();
    if (text.ends_with('\r')) text.pop_back();
    return text;
}

Result<std::optional<std::string>> gather_prompt(const PromptSource& source) {
    std::optional<std::string> prompt;
    const auto add = [&](const std::string& part) { prompt = prompt ? *prompt + "\n" + part : part; };
    if (source.has_text) add(source.escapes ? unescape(source.text) : source.text);
    if (!source.file.empty() && source.file != "-")
        add(without_last_line_end(RL_TRY(read_text_file(source.file, kMostText))));
    if (source.file == "-" || (source.file.empty() && !is_terminal(STDIN_FILENO))) {
        const std::string input = without_last_line_end(RL_TRY(read_standard_input()));
        if (!input.empty() || source.file == "-") add(input);
    }
    return prompt;
}

}  // namespace redline::cli
