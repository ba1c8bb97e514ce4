// A line of a terminal that tells how far something is, in place of the one before it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace redline::cli {

// Not where standard error is no terminal or cannot move its cursor, nor when little is to be said.
bool can_show_progress();
// For who has asked can_show_progress(). The line is cut to the terminal's columns.
void show_progress(std::string_view line);
// Whatever is written by terminal.h's functions erases the line first.
void erase_progress();

// "0.4 kB", "98.1 MB", "2.70 GB": in the unit that fits, of 1000, as hubs and file managers have it.
std::string decimal_size(uint64_t bytes);
// "45 %  1.21 of 2.70 GB  1.90 GB/s", both in the unit of the total, or "45 %  950 of 2112 tokens  310
// tok/s".
enum class Counted : uint8_t { bytes, tokens };
std::string progress_text(uint64_t done, uint64_t total, std::chrono::duration<double> time,
                          Counted counted = Counted::bytes);

}  // namespace redline::cli
