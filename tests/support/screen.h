// A small model of a terminal's screen: shows a program's output as a user sees it. Unknown control sequences
// are kept in unknown(), so that a test can report them.
#pragma once

#include "text/tokens/unicode.h"

#include <algorithm>
#include <clocale>
#include <cwchar>
#include <string>
#include <string_view>
#include <vector>

namespace redline::test {

class Screen {
public:
    Screen(int rows, int columns)
        : rows_(rows), columns_(columns), cells_(size_t(rows), blank_row()), goes_on_(size_t(rows), false) {
        std::setlocale(LC_CTYPE, "C.UTF-8");  // wcwidth knows nothing else by the standard's locale
    }

    void write(std::string_view bytes) {
        held_ += bytes;
        size_t at = 0;
        while (at < held_.size()) {
            const size_t taken = held_[at] == '\x1b' ? escape(at) : character(at);
            if (taken == 0) break;  // the rest of it has not arrived yet
            at += taken;
        }
        held_.erase(0, at);
    }

    // Lines are not rewrapped, as on an xterm.
    void resize(int rows, int columns) {
        columns_ = columns;
        for (Row& row : cells_) row.resize(size_t(columns), Cell{" "});
        while (int(cells_.size()) > rows && y_ > 0) scroll();
        cells_.resize(size_t(rows), blank_row());
        goes_on_.resize(size_t(rows), false);
        rows_ = rows;
        x_ = std::min(x_, columns - 1);
    }

    // A line without the blanks at its end.
    std::string line(int row) const {
        std::string text;
        for (const Cell& cell : cells_[size_t(row)]) text += cell.text;
        text.erase(text.find_last_not_of(' ') + 1);
        return text;
    }
    // All lines down to the last that is not empty, including scrolled ones.
    std::string text() const {
        std::string all = gone_;
        for (int row = 0; row < rows_; ++row) all += line(row) + "\n";
        all.erase(all.find_last_not_of('\n') + 1);
        return all;
    }
    // The text as a terminal copies it: a line that the terminal broke into rows is one line.
    std::string copied() const {
        std::string all = gone_copied_;
        for (int row = 0; row < rows_; ++row) all += copied_row(row);
        all.erase(all.find_last_not_of('\n') + 1);
        return all;
    }
    std::string cursor_line() const { return line(y_); }
    int column() const { return x_; }
    int rows() const { return rows_; }
    int columns() const { return columns_; }
    bool dim_seen() const { return dim_seen_; }
    bool colour_seen() const { return colour_seen_; }
    bool pastes_bracketed() const { return pastes_bracketed_; }
    const std::string& unknown() const { return unknown_; }

private:
    struct Cell {
        std::string text;  // empty: the right half of a wide character
    };
    using Row = std::vector<Cell>;

    Row blank_row() const { return Row(size_t(columns_), Cell{" "}); }
    Row& row() { return cells_[size_t(y_)]; }

    std::string copied_row(int row) const {
        if (!goes_on_[size_t(row)]) return line(row) + "\n";
        std::string text;
        for (const Cell& cell : cells_[size_t(row)]) text += cell.text;
        return text;
    }

    void scroll() {
        gone_ += line(0) + "\n";
        gone_copied_ += copied_row(0);
        cells_.erase(cells_.begin());
        cells_.push_back(blank_row());
        goes_on_.erase(goes_on_.begin());
        goes_on_.push_back(false);
        y_ = std::max(0, y_ - 1);
    }
    void line_feed() {
        if (y_ + 1 == rows_) scroll();
        ++y_;
        if (y_ == rows_) y_ = rows_ - 1;
    }

    size_t character(size_t at) {
        const auto byte = static_cast<unsigned char>(held_[at]);
        wraps_ = wraps_ && (byte >= 0x20);
        if (byte < 0x20) {
            control(char(byte));
            return 1;
        }
        const Utf8Step step = utf8_step(held_, at);
        if (step.kind == Utf8Step::Kind::cut) return 0;
        if (step.kind == Utf8Step::Kind::invalid) unknown_ += " invalid UTF-8";
        put(held_.substr(at, step.bytes), std::max(0, ::wcwidth(wchar_t(step.code))));
        return step.bytes;
    }

    void control(char code) {
        if (code == '\r') x_ = 0;
        if (code == '\n') {
            goes_on_[size_t(y_)] = false;
            line_feed();
        }
        if (code == '\b') x_ = std::max(0, x_ - 1);
        if (code == '\t') x_ = std::min(columns_ - 1, (x_ / 8 + 1) * 8);
    }

    void put(std::string text, int width) {
        if (width == 0) {
            if (x_ > 0) row()[size_t(x_ - 1)].text += text;
            return;
        }
        if (wraps_ || x_ + width > columns_) {
            goes_on_[size_t(y_)] = true;
            x_ = 0;
            line_feed();
        }
        wraps_ = false;
        if (inserts_) {
            row().insert(row().begin() + x_, size_t(width), Cell{" "});
            row().resize(size_t(columns_));
        }
        row()[size_t(x_)].text = std::move(text);
        for (int i = 1; i < width; ++i) row()[size_t(x_ + i)].text.clear();
        x_ += width;
        if (x_ < columns_) return;
        x_ = columns_ - 1;
        wraps_ = true;
    }

    size_t escape(size_t at) {
        if (at + 1 >= held_.size()) return 0;
        const char kind = held_[at + 1];
        if (kind == '(') return at + 2 < held_.size() ? 3 : 0;  // a character set
        if (kind != '[') {
            if (kind != '=' && kind != '>') unknown_ += fmt_code(held_.substr(at, 2));
            return 2;
        }
        const size_t end = held_.find_first_not_of("0123456789;?", at + 2);
        if (end == std::string::npos) return 0;
        sequence(held_.substr(at + 2, end - at - 2), held_[end]);
        return end + 1 - at;
    }

    static std::string fmt_code(std::string code) {
        code.erase(0, 1);
        return " ESC" + code;
    }

    void sequence(const std::string& parameters, char kind) {
        wraps_ = wraps_ && kind == 'm';
        const int number = std::max(1, std::atoi(parameters.c_str()));
        switch (kind) {
            case 'A':
                y_ = std::max(0, y_ - number);
                break;
            case 'B':
                y_ = std::min(rows_ - 1, y_ + number);
                break;
            case 'C':
                x_ = std::min(columns_ - 1, x_ + number);
                break;
            case 'D':
                x_ = std::max(0, x_ - number);
                break;
            case 'G':
                x_ = std::min(columns_, number) - 1;
                break;
            case 'H':
                move_to(parameters);
                break;
            case 'K':
            case 'J':
                erase(parameters, kind == 'J');
                break;
            case 'P':
                row().erase(row().begin() + x_, row().begin() + std::min(columns_, x_ + number));
                row().resize(size_t(columns_), Cell{" "});
                break;
            case '@':
                row().insert(row().begin() + x_, size_t(number), Cell{" "});
                row().resize(size_t(columns_));
                break;
            case 'h':
            case 'l':
                set_mode(parameters, kind == 'h');
                break;
            case 'm':
                dim_seen_ |= parameters == "2";
                colour_seen_ |= parameters.size() == 2 && parameters[0] == '3';
                break;
            default:
                unknown_ += " ESC[" + parameters + kind;
        }
    }

    void move_to(const std::string& parameters) {
        const size_t split = std::min(parameters.find(';'), parameters.size());
        y_ = std::clamp(std::atoi(parameters.c_str()), 1, rows_) - 1;
        x_ = std::clamp(std::atoi(parameters.substr(std::min(split + 1, parameters.size())).c_str()), 1,
                        columns_) -
             1;
    }

    void erase(const std::string& parameters, bool below) {
        const bool all = parameters == "2";
        if (!parameters.empty() && parameters != "0" && !all) unknown_ += " ESC[" + parameters + "J or K";
        for (int x = all ? 0 : x_; x < columns_; ++x) row()[size_t(x)].text = " ";
        for (int y = all ? 0 : y_ + 1; below && y < rows_; ++y) cells_[size_t(y)] = blank_row();
    }

    void set_mode(const std::string& parameters, bool on) {
        if (parameters == "4")
            inserts_ = on;
        else if (parameters == "?2004")
            pastes_bracketed_ = on;
        else if (parameters != "?1" && parameters != "?25" && parameters != "?1034")
            unknown_ += " mode " + parameters;
    }

    int rows_, columns_;
    int x_ = 0, y_ = 0;
    std::vector<Row> cells_;
    std::vector<bool> goes_on_;  // rows that continue on the next one
    std::string held_;
    std::string gone_, gone_copied_;  // text that scrolled away, for text() and copied()
    std::string unknown_;
    bool wraps_ = false;  // the last column is written: the next character begins a line
    bool inserts_ = false;
    bool dim_seen_ = false, colour_seen_ = false, pastes_bracketed_ = false;
};

}  // namespace redline::test
