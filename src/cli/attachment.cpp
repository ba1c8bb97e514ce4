#include "cli/attachment.h"

#include "base/file.h"
#include "text/tokens/unicode.h"

#include <algorithm>

namespace redline::cli {

static constexpr uint64_t kMostFile = uint64_t(1) << 26;
static constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

static Status check_text(const std::string& text, const std::string& name) {
    if (text.empty()) return error("{} is empty", name);
    if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
        return error("{} is UTF-16: iconv -f UTF-16 -t UTF-8 makes it a text that can be read", name);
    const size_t zero = text.find('\0');
    if (zero != text.npos) return error("{} is no text: its byte {} is 0", name, zero);
    for (size_t at = 0; at < text.size();) {
        const Utf8Step step = utf8_step(text, at);
        if (step.kind != Utf8Step::Kind::character)
            return error(
                "{} is no UTF-8: its byte {} is 0x{:02X}; iconv -f ENCODING -t UTF-8 converts a text", name,
                at, static_cast<unsigned char>(text[at]));
        at += step.bytes;
    }
    return {};
}

Result<Attachment> read_attachment(const std::string& path, const std::string& name) {
    RL_TRY(File::open(path));  // it refuses folders, and pipes that nobody may ever write
    Attachment file{name, RL_TRY(read_text_file(path, kMostFile)), {}};
    RL_TRY(check_text(file.text, name));
    if (file.text.starts_with(kByteOrderMark)) {
        file.text.erase(0, kByteOrderMark.size());
        file.changes = "without its byte order mark";
    }
    std::string lines;
    for (size_t at = 0; at < file.text.size(); ++at)
        if (!std::string_view(file.text).substr(at).starts_with("\r\n")) lines += file.text[at];
    if (lines.size() < file.text.size()) {
        file.changes += fmt::format("{}with line feeds for its CRLF", file.changes.empty() ? "" : ", ");
        file.text = std::move(lines);
    }
    if (file.text.ends_with('\n')) file.text.pop_back();
    return file;
}

// Longer than any row of backticks in the text.
static std::string fence_for(const std::string& text) {
    size_t longest = 2, now = 0;
    for (const char c : text) {
        now = c == '`' ? now + 1 : 0;
        longest = std::max(longest, now);
    }
    return std::string(longest + 1, '`');
}

std::string with_attachments(std::span<const Attachment> files, const std::string& message) {
    std::string out;
    for (const Attachment& file : files) {
        const std::string fence = fence_for(file.text);
        out += fmt::format("{}:\n{}\n{}\n{}\n\n", file.name, fence, file.text, fence);
    }
    return out + message;
}

}  // namespace redline::cli
