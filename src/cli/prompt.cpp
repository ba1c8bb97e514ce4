#include "cli/prompt.h"

#include "base/file.h"
#include "cli/options/sampling_options.h"
#include "cli/terminal/terminal.h"

#include <fcntl.h>
#include <unistd.h>

namespace redline::cli {

static constexpr uint64_t kMostText = uint64_t(1) << 30;

Result<std::string> read_standard_input() {
    if (::fcntl(STDIN_FILENO, F_GETFD) < 0) return std::string();  // closed
    return read_stream(STDIN_FILENO, "standard input", kMostText);
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
