#include "cli/terminal/folds.h"

#include "cli/terminal/terminal.h"
#include "text/tokens/unicode.h"

#include <fmt/format.h>

#include <algorithm>

namespace redline::cli {

// Longer texts fill a screen.
static constexpr size_t kMostLines = 8;
static constexpr size_t kMostBytes = 800;
static constexpr size_t kMostKept = 16;

static size_t line_count(const std::string& text) {
    return size_t(std::count(text.begin(), text.end(), '\n')) + (text.ends_with('\n') ? 0 : 1);
}

bool Folds::is_long(const std::string& text) {
    return text.size() > kMostBytes || line_count(text) > kMostLines;
}

std::string Folds::fold(const std::string& text, std::string_view how) {
    if (!is_long(text)) return text;
    const size_t lines = line_count(text);
    const std::string size =
        lines > 1 ? fmt::format("{} lines", lines) : fmt::format("{} bytes", text.size());
    std::string mark = fmt::format("[{} {}]", how, size);
    const auto has_mark = [&](const Fold& fold) { return fold.mark == mark; };
    for (int number = 2;; ++number) {
        const auto same = std::find_if(all_.begin(), all_.end(), has_mark);
        if (same == all_.end()) break;
        if (same->text == text) return mark;
        mark = fmt::format("[{} {} #{}]", how, size, number);
    }
    all_.push_back({mark, text});
    return mark;
}

std::string Folds::open(std::string_view line) const {
    std::string out;
    while (!line.empty()) {
        const auto begins = [&](const Fold& fold) { return line.starts_with(fold.mark); };
        const auto fold = std::find_if(all_.begin(), all_.end(), begins);
        out += fold == all_.end() ? line.substr(0, 1) : std::string_view(fold->text);
        line.remove_prefix(fold == all_.end() ? 1 : fold->mark.size());
    }
    return out;
}

std::optional<std::string> Folds::mark_at_end(std::string_view line) const {
    for (const Fold& fold : all_)
        if (line.ends_with(fold.mark)) return fold.mark;
    return {};
}

void Folds::forget_old(std::string_view line) {
    size_t spare = all_.size() - std::min(all_.size(), kMostKept);
    std::erase_if(all_, [&](const Fold& fold) {
        const bool goes = spare > 0 && line.find(fold.mark) == line.npos;
        spare -= goes ? 1 : 0;
        return goes;
    });
}

PastedText take_paste(std::string_view bytes) {
    std::string text;
    for (size_t at = 0; at < bytes.size(); ++at) {
        const bool ends_line = bytes[at] == '\r';
        if (ends_line && bytes.substr(at + 1).starts_with('\n')) ++at;
        text += ends_line ? '\n' : bytes[at];
    }
    PastedText pasted{for_terminal(text), 0};
    // Both have as many characters.
    for (size_t at = 0, shown = 0; at < text.size();) {
        const Utf8Step was = utf8_step(text, at), is = utf8_step(pasted.text, shown);
        pasted.replaced += was.code == is.code ? 0 : 1;
        at += was.bytes;
        shown += is.bytes;
    }
    return pasted;
}

}  // namespace redline::cli
