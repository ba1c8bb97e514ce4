// A line of a terminal that tells how far something is, in place of the one before it.
#pragma once

#include <string_view>

namespace redline::cli {

// Not where standard error is no terminal or cannot move its cursor, nor when little is to be said.
bool can_show_progress();
// For who has asked can_show_progress(). The line is cut to the terminal's columns.
void show_progress(std::string_view line);
// Whatever is written by terminal.h's functions erases the line first.
void erase_progress();

}  // namespace redline::cli
