// Terminals and pipes at a handle: what is there, waiting for input, and the modes of a terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace redline::os {

bool is_terminal(int handle);
// The columns of a terminal's window; empty where they are not known.
std::optional<size_t> terminal_columns(int handle);
// Writes all of a text, and waits where a pipe is full. A signal handler may call it.
void write_all(int handle, std::string_view text, std::error_code& fault);

// Remembers the modes that standard input's terminal has now. False: it is none.
bool save_terminal_modes();
// Gives it the remembered modes back. A signal handler may call it.
void restore_terminal_modes();

// True when there is input, or its end, within some milliseconds.
bool is_ready(int handle, int milliseconds);
// True when there is input now, and not its end alone.
bool has_input(int handle);

// Waits until there is input or its end, the terminal was closed, or wake() was called.
struct Waited {
    bool input = false;
    bool hung_up = false;
    bool woken = false;
};
Waited wait_for_input(int handle);
// Ends the wait of another thread, or the next one. A signal handler may call it.
void wake();
// Forgets calls of wake() so far.
void forget_wakes();

}  // namespace redline::os
