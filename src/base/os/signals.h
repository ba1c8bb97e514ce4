// Signals: requests to end the program, and changes of the terminal's window.
#pragma once

#include <cstdint>

namespace redline::os {

// The numbers of two signals; a program that one ends has the exit code 128 and the number.
constexpr int kHangUpSignal = 1, kInterruptSignal = 2;

// Handlers run on any thread at any time: they may only call functions that say that signal handlers may.
using SignalHandler = void (*)(int signal);
// Ctrl-C, a request to terminate, and the end of the terminal; those that the caller of the program ignores
// stay ignored. A read of the keyboard ends when one comes.
void on_ending_signals(SignalHandler handler);
// A window that changes its size, and a program that is continued after it was suspended.
void on_window_change(SignalHandler handler);
// A reader that goes away then shows as a fault of a write.
void ignore_broken_pipes();
// Suspends the program, as Ctrl-Z does, until it is continued.
void suspend();
// Ends the program at once. A signal handler may call it, as the next.
[[noreturn]] void exit_now(int code);
int64_t monotonic_milliseconds();

}  // namespace redline::os
