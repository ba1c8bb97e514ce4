// The terminal that all commands share: standard output with its faults, messages and colours, progress,
// Ctrl-C.
#pragma once

#include "base/os/file_handle.h"
#include "cli/command.h"
#include "cli/terminal/progress.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace redline::cli {

// How much is said on standard error, and how. Set once, by the options.
struct Voice {
    bool quiet = false;    // errors only
    bool verbose = false;  // details of interest to the curious
    bool informs = true;   // what say() is given is heard; else only with `verbose`, unlike notes
    bool colour = false;
};
Voice& voice();

// One line to standard error, unless quiet; details only when verbose. On a terminal it is broken between
// words.
void say(std::string_view line);
void say_detail(std::string_view line);
// The same whether quiet or not: what a user asked for.
void tell(std::string_view line);
// Text to standard error as it is.
void show(std::string_view text);
bool is_terminal(int handle);
// True where standard output and standard error end in the same terminal, pipe or file.
bool outputs_meet();
// By TERM, which is dumb, unknown or not set where a terminal knows no such thing.
bool can_move_cursor();
// Control characters but line ends and tabs become visible signs, so that a model cannot steer the terminal.
std::string for_terminal(std::string_view text);

// Standard output, unbuffered. A reader that went away (EPIPE) is no error; a full disk is.
class Output {
public:
    // False when nothing more can be written.
    bool write(std::string_view text);
    bool open() const { return !fault_; }
    // The exit code of a command that would end with `code`: 1 when the output could not be written, which is
    // said, and that of SIGHUP where the terminal is gone.
    int finish(int code = kDone) const;
    // True where standard output was a terminal that is gone, as when its window was closed.
    bool hung_up() const;

private:
    bool terminal_ = is_terminal(os::kStandardOutput);  // at the beginning
    std::error_code fault_;
};

// From here on Ctrl-C, SIGTERM and SIGHUP end the program with 128 and their number, without partial files.
// For main().
void catch_signals();

// While one of these lives, they set a flag instead; a second one, before the flag is cleared, ends the
// program.
class Interrupts {
public:
    Interrupts();
    ~Interrupts();
    Interrupts(const Interrupts&) = delete;
    Interrupts& operator=(const Interrupts&) = delete;

    const std::atomic<bool>* flag() const;
    bool raised() const;
    int code() const;     // the exit code after the last signal: 130 after Ctrl-C
    bool ending() const;  // raised, and not by Ctrl-C: the whole program is to end
    void clear();
};

// The end of a wait for a user: something to read (or its end), a signal that Interrupts::raised() tells
// of, or a screen that has to be drawn again.
enum class Event : uint8_t { input, interrupt, redraw };
Event wait_for_event(int handle);
// From here on a window that changes its size, and a program that is continued after Ctrl-Z, are such events;
// and what ends the program gives the terminal the modes back that it has now.
void watch_window();
void restore_terminal();
// The columns of the terminal at a handle; 80 where that is not known.
size_t terminal_width(int handle);

// "loading MODEL" and progress_text() on one line of a terminal; silent elsewhere.
class ProgressLine {
public:
    explicit ProgressLine(std::string what, Counted counted = Counted::bytes);
    ~ProgressLine();
    void update(uint64_t done, uint64_t total);

private:
    using Clock = std::chrono::steady_clock;
    std::string what_;
    Counted counted_;
    bool enabled_;
    bool shown_ = false;
    Clock::time_point start_ = Clock::now();
    Clock::time_point last_ = {};
};

}  // namespace redline::cli
