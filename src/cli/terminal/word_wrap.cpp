#include "cli/terminal/word_wrap.h"

#include "text/tokens/unicode.h"

#include <fmt/format.h>

#include <algorithm>
#include <clocale>

#include <wchar.h>

namespace redline::cli {

static constexpr size_t kBegin = 64;       // bytes of a line that tell its kind
static constexpr size_t kMostWord = 4096;  // bytes: more columns than any row has

static bool is_fence(std::string_view line) {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    return line.starts_with("```") || line.starts_with("~~~");
}

static bool is_table(std::string_view line) {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    return line.starts_with('|');
}

size_t character_width(char32_t code) {
    // The standard's locale knows widths of ASCII only.
    static const bool known = std::setlocale(LC_CTYPE, "C.UTF-8") != nullptr;
    return known ? size_t(std::max(0, ::wcwidth(wchar_t(code)))) : 1;
}

std::string_view clipped(std::string_view line, size_t columns) {
    size_t width = 0, at = 0;
    while (at < line.size()) {
        const Utf8Step step = utf8_step(line, at);
        width += character_width(step.code);
        if (width > columns) break;
        at += step.bytes;
    }
    return line.substr(0, at);
}

static size_t width_of(std::string_view text) {
    size_t width = 0;
    for (size_t at = 0; at < text.size();) {
        const Utf8Step step = utf8_step(text, at);
        width += character_width(step.code);
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
    columns_ = std::max<size_t>(columns, 4);
    if (column_ > columns_) column_ %= columns_;  // the window became narrower
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
            put_letter(out, letter, character_width(step.code));
        }
    }
    return out;
}

void WordWrap::put_line_end(std::string& out) {
    if (is_fence(begin_)) in_code_ = !in_code_;
    begin_.clear();
    out += '\n';
    column_ = 0;
    end_word();
}

void WordWrap::end_word() {
    word_.clear();
    word_width_ = 0;
}

// Behind a character in the last column the terminal itself goes on in the next row, and knows that both are
// one line. The column is named, for terminals disagree on the columns of an emoji.
void WordWrap::fill_row(std::string& out) {
    out += fmt::format("\x1b[K\x1b[{}G ", columns_);
    column_ = columns_;
}

void WordWrap::put_blank(std::string& out, char blank) {
    end_word();
    if (column_ == columns_) column_ = 0;
    const size_t next = blank == ' ' ? column_ + 1 : (column_ / 8 + 1) * 8;
    if (blank == '\t' && next >= columns_) return fill_row(out);  // a tab goes no further than the row
    out += blank;
    column_ = next;
}

void WordWrap::put_letter(std::string& out, std::string_view letter, size_t width) {
    const bool joins = width == 0;
    if (column_ == columns_ && !joins) column_ = 0;
    // Scripts whose characters take two columns have no blanks: a row may end before each.
    if (width == 2) {
        out += letter;
        column_ = column_ + width > columns_ ? width : column_ + width;
        return end_word();
    }
    // The last column is left to words that fill a row: from there a cursor does not surely move back.
    const bool fills_row = !word_.empty() && word_width_ >= column_;
    if (!joins && !fills_row && column_ + width >= columns_) {
        if (word_width_ > 0) out += fmt::format("\x1b[{}D", word_width_);
        fill_row(out);
        out += word_;
        column_ = word_width_;
    }
    out += letter;
    column_ += width;
    if (word_.size() < kMostWord) word_ += letter;
    word_width_ += width;
}

}  // namespace redline::cli
