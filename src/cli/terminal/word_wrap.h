// Text on its way to a terminal, as it comes: lines are broken between words instead of within them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace redline::cli {

// A whole text for a terminal of so many columns.
std::string wrapped(std::string_view text, size_t columns);

class WordWrap {
public:
    // What to write for these whole characters on a terminal of so many columns; it may move the cursor, for
    // a word that turns out too long goes to the next line. Lines of code between ``` and of tables are left
    // to the terminal. With 0 columns: the text as it is.
    std::string put(std::string_view text, size_t columns);
    // At the beginning of a line?
    bool at_start() const { return column_ == 0; }

private:
    void put_line_end(std::string& out);
    void put_blank(std::string& out, char blank);
    void put_letter(std::string& out, std::string_view letter, size_t width);
    void break_line(std::string& out);

    size_t limit_ = 0;       // columns to use
    size_t column_ = 0;      // of the cursor
    std::string word_;       // what stands behind the last blank
    size_t word_width_ = 0;  // in columns
    std::string begin_;      // of the line as it came, a few characters: what kind it is
    bool in_code_ = false;   // between fences
};

}  // namespace redline::cli
