// Text on its way to a terminal, as it comes: rows end between words instead of within them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace redline::cli {

// A whole text for a terminal of so many columns.
std::string wrapped(std::string_view text, size_t columns);
// The beginning of a line that takes so many columns at most.
std::string_view clipped(std::string_view line, size_t columns);
// The columns that a character takes on a terminal: none where it joins the one before it.
size_t character_width(char32_t code);

class WordWrap {
public:
    // The text to write for these whole characters on a terminal of so many columns; it may move the cursor,
    // for a word that turns out too long goes to the next row. No line end is added: the row is filled up
    // with blanks and the terminal goes on below, so that what is copied from it has the lines of the text,
    // and only those. Lines of code between ``` and of tables are left to the terminal. With 0 columns: the
    // text as it is.
    std::string put(std::string_view text, size_t columns);
    // At the beginning of a line?
    bool at_start() const { return column_ == 0; }

private:
    void put_line_end(std::string& out);
    void put_blank(std::string& out, char blank);
    void put_letter(std::string& out, std::string_view letter, size_t width);
    void fill_row(std::string& out);
    void end_word();

    size_t columns_ = 0;     // of the terminal
    size_t column_ = 0;      // of the cursor; columns_: behind the last, before the next character
    std::string word_;       // what stands behind the last blank
    size_t word_width_ = 0;  // in columns
    std::string begin_;      // of the line as it came, a few characters: what kind it is
    bool in_code_ = false;   // between fences
};

}  // namespace redline::cli
