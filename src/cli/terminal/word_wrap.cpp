#include "cli/terminal/word_wrap.h"

#include "text/unicode.h"

#include <fmt/format.h>

#include <algorithm>

#include <wchar.h>

namespace redline::cli {

static constexpr size_t kBegin = 64;  // bytes of a line that tell its kind

static bool is_fence(std::string_view line) {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    return line.starts_with("```") || line.starts_with("~~~");
}

static bool is_table(std::string_view line) {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    return line.starts_with('|');
}

static size_t width_of(std::string_view text) {
    size_t width = 0;
    for (size_t at = 0; at < text.size();) {
        const Utf8Step step = utf8_step(text, at);
        width += size_t(std::max(0, ::wcwidth(wchar_t(step.code))));
        at += step.bytes;
    }
    return width;
}

std::string wrapped(std::string_view text, size_t columns) {
    std::string out;
    size_t column = 0;
    for (size_t at = 0; at < text.size();) {
        // A word, and the blanks or the line's end before it.
        const size_t word = std::min(text.find_first_not_of(" \n", at), text.size());
        const size_t end = std::min(text.find_first_of(" \n", word), text.size());
        const std::string_view gap = text.substr(at, word - at);
        const size_t width = width_of(text.substr(word, end - word));
        const size_t line = gap.rfind('\n');
        if (line != gap.npos) {
            column = gap.size() - line - 1 + width;
            out += gap;
        } else if (column > 0 && column + gap.size() + width >= columns) {
            column = width;
            out += '\n';
        } else {
            column += gap.size() + width;
            out += gap;
        }
        out += text.substr(word, end - word);
        at = end;
    }
    return out;
}

std::string WordWrap::put(std::string_view text, size_t columns) {
    if (columns == 0) {
        if (!text.empty()) column_ = text.ends_with('\n') ? 0 : 1;
        return std::string(text);
    }
    // The last column stays free: behind a character there a terminal's cursor is neither here nor there.
    limit_ = std::max<size_t>(columns, 4) - 1;
    std::string out;
    for (size_t at = 0; at < text.size();) {
        const Utf8Step step = utf8_step(text, at);
        const std::string_view letter = text.substr(at, step.bytes);
        at += step.bytes;
        if (letter == "\n") {
            put_line_end(out);
            continue;
        }
        if (begin_.size() < kBegin) begin_ += letter;
        if (in_code_ || is_fence(begin_) || is_table(begin_)) {
            out += letter;
            column_ = 1;
        } else if (letter == " " || letter == "\t") {
            put_blank(out, letter[0]);
        } else {
            put_letter(out, letter, size_t(std::max(0, ::wcwidth(wchar_t(step.code)))));
        }
    }
    return out;
}

void WordWrap::put_line_end(std::string& out) {
    if (is_fence(begin_)) in_code_ = !in_code_;
    begin_.clear();
    break_line(out);
    word_.clear();
    word_width_ = 0;
}

void WordWrap::break_line(std::string& out) {
    out += '\n';
    column_ = 0;
}

void WordWrap::put_blank(std::string& out, char blank) {
    word_.clear();
    word_width_ = 0;
    const size_t next = blank == ' ' ? column_ + 1 : (column_ / 8 + 1) * 8;
    if (next > limit_) return break_line(out);
    out += blank;
    column_ = next;
}

void WordWrap::put_letter(std::string& out, std::string_view letter, size_t width) {
    // Scripts whose characters take two columns have no blanks: a line may end before each.
    const bool alone = width == 2;
    if (column_ + width > limit_) {
        if (!alone && !word_.empty() && word_width_ < column_) {
            out += fmt::format("\x1b[{}D\x1b[K\n{}", word_width_, word_);
            column_ = word_width_;
        } else {
            break_line(out);
            word_.clear();
            word_width_ = 0;
        }
    }
    out += letter;
    column_ += width;
    if (alone) {
        word_.clear();
        word_width_ = 0;
        return;
    }
    word_ += letter;
    word_width_ += width;
}

}  // namespace redline::cli
