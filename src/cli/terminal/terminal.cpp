#include "cli/terminal/terminal.h"

#include "base/file.h"
#include "base/os/signals.h"
#include "base/os/terminal.h"
#include "cli/job.h"
#include "cli/terminal/word_wrap.h"
#include "text/tokens/unicode.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <mutex>

namespace redline::cli {

static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int64_t>::is_always_lock_free,
              "a signal handler writes them");
static std::atomic<bool> watched = false;      // an Interrupts lives
static std::atomic<bool> interrupted = false;  // since it was cleared
static std::atomic<int> last_signal = os::kInterruptSignal;
static std::atomic<int64_t> interrupted_ms = 0;
static std::atomic<bool> must_redraw = false;
static std::atomic<bool> modes_known = false;  // those of standard input are saved

Voice& voice() {
    static Voice the_voice;
    return the_voice;
}

// mpirun may show rank 0 a pseudo-terminal, and what it prints goes wherever mpirun's output does.
bool is_terminal(int handle) {
    return os::is_terminal(handle) && (handle == os::kStandardInput || !is_in_job());
}

bool outputs_meet() {
    std::error_code no_out, no_err;
    const os::FileInfo out = os::info_of(os::kStandardOutput, no_out),
                       err = os::info_of(os::kStandardError, no_err);
    return !no_out && !no_err && out.is_same_file(err);
}

// Signal handlers may call it. Nobody can be told when standard error itself cannot be written.
static void write_error(std::string_view text) {
    std::error_code ignored;
    os::write_all(os::kStandardError, text, ignored);
}

// Signal handlers read it.
static std::atomic<bool> progress_shown = false;
static std::mutex progress_mutex;  // held while the line, or what stands in its place, is written
constexpr std::string_view kEraseLine = "\r\x1b[K";

static void erase_locked() {
    if (progress_shown.exchange(false)) write_error(kEraseLine);
}

void show(std::string_view text) {
    const std::lock_guard lock(progress_mutex);
    erase_locked();
    write_error(text);
}

void show_progress(std::string_view line) {
    // The last column stays free: a line that the terminal breaks could not be erased whole.
    const std::string whole = printable(line);
    const std::string_view fitting = clipped(whole, terminal_width(os::kStandardError) - 1);
    const std::lock_guard lock(progress_mutex);
    progress_shown = true;
    write_error(fmt::format("{}{}", kEraseLine, fitting));
}

void erase_progress() {
    const std::lock_guard lock(progress_mutex);
    erase_locked();
}

bool can_show_progress() {
    return !voice().quiet && is_terminal(os::kStandardError) && can_move_cursor();
}

bool can_move_cursor() {
    const char* kind = std::getenv("TERM");
    return kind && *kind && std::strcmp(kind, "dumb") != 0 && std::strcmp(kind, "unknown") != 0;
}

static std::string for_screen(std::string_view line) {
    return is_terminal(os::kStandardError) ? wrapped(line, terminal_width(os::kStandardError))
                                           : std::string(line);
}

void tell(std::string_view line) {
    show(for_screen(line) + "\n");
}

std::string for_terminal(std::string_view text) {
    std::string out;
    for (size_t at = 0; at < text.size();) {
        const Utf8Step step = utf8_step(text, at);
        const char32_t code = step.code;
        const bool character = step.kind == Utf8Step::Kind::character;
        if (!character || (code >= 0x20 && code < 0x7F) || code >= 0xA0 || code == '\n' || code == '\t')
            out += text.substr(at, step.bytes);
        else  // U+2400 and on picture the control characters, U+2421 delete; those above have no pictures
            append_utf8(out, code < 0x20 ? 0x2400 + code : code == 0x7F ? char32_t(0x2421) : 0xFFFD);
        at += step.bytes;
    }
    return out;
}

void say(std::string_view line) {
    if (!voice().quiet && (voice().informs || voice().verbose)) tell(line);
}

void say_detail(std::string_view line) {
    if (voice().verbose) tell(line);
}

int fail(const Error& problem, int code) {
    const bool red = voice().colour;
    show(fmt::format("{}{}{}\n", red ? "\x1b[31m" : "", for_screen("redline: " + printable(problem.message)),
                     red ? "\x1b[0m" : ""));
    return code == kFailed && problem.cause == Cause::no_device ? kNoDevice : code;
}

void note(std::string_view message) {
    if (!voice().quiet) tell(fmt::format("redline: note: {}", printable(message)));
}

bool Output::write(std::string_view text) {
    const std::lock_guard lock(progress_mutex);
    erase_locked();
    if (!fault_) os::write_all(os::kStandardOutput, text, fault_);
    return open();
}

bool Output::hung_up() const {
    return terminal_ && fault_ == std::errc::io_error;
}

int Output::finish(int code) const {
    if (open() || fault_ == std::errc::broken_pipe) return code;
    if (hung_up()) return code > 128 ? code : 128 + os::kHangUpSignal;
    return fail(error("cannot write standard output: {}", fault_.message()));
}

// Signal handlers may call it.
void restore_terminal() {
    constexpr std::string_view kUsualPastes = "\x1b[?2004l";
    if (!modes_known) return;
    os::restore_terminal_modes();
    write_error(kUsualPastes);
}

// Signal handlers call it.
static void set_interrupted(int signal) {
    last_signal = signal;
    interrupted_ms = os::monotonic_milliseconds();
    interrupted = true;
}

// The first signal sets the flag. A second one ends the program here, for who should see the flag may wait
// for a device that hangs; but not one that comes at once, as timeout(1) signals a process and then its
// group.
static void on_signal(int signal) {
    constexpr int64_t kAtOnceMs = 100;
    if (watched && signal == last_signal && os::monotonic_milliseconds() - interrupted_ms < kAtOnceMs) return;
    if (watched && !interrupted) {
        set_interrupted(signal);
        os::wake();
        return;
    }
    remove_partial_files();
    restore_terminal();
    if (progress_shown) write_error(kEraseLine);
    os::exit_now(128 + signal);
}

void catch_signals() {
    os::on_ending_signals(on_signal);
}

Interrupts::Interrupts() {
    interrupted = false;
    watched = true;
}

Interrupts::~Interrupts() {
    watched = false;
}

const std::atomic<bool>* Interrupts::flag() const {
    return &interrupted;
}
bool Interrupts::raised() const {
    return interrupted;
}
int Interrupts::code() const {
    return 128 + last_signal;
}
bool Interrupts::ending() const {
    return interrupted && last_signal != os::kInterruptSignal;
}
void Interrupts::clear() {
    interrupted = false;
}

static void on_window(int) {
    must_redraw = true;
    os::wake();
}

void watch_window() {
    os::on_window_change(on_window);
    modes_known = os::save_terminal_modes();
}

Event wait_for_event(int handle) {
    static const bool terminal = is_terminal(handle);  // later it may be gone
    while (true) {
        os::forget_wakes();
        if (interrupted) return Event::interrupt;
        if (must_redraw.exchange(false)) return Event::redraw;
        const os::Waited waited = os::wait_for_input(handle);
        // A terminal whose window was closed: its shell sends SIGHUP somewhat later than the end of the
        // input.
        const bool gone = terminal && waited.hung_up;
        if (gone && watched && !interrupted) set_interrupted(os::kHangUpSignal);
        if (waited.input && !waited.woken && !interrupted) return Event::input;
    }
}

size_t terminal_width(int handle) {
    return os::terminal_columns(handle).value_or(80);
}

ProgressLine::ProgressLine(std::string what, Counted counted)
    : what_(std::move(what)), counted_(counted), enabled_(can_show_progress()) {}

ProgressLine::~ProgressLine() {
    if (shown_) erase_progress();
}

void ProgressLine::update(uint64_t done, uint64_t total) {
    const Clock::time_point now = Clock::now();
    if (!enabled_ || total == 0 || now - last_ < std::chrono::milliseconds(100)) return;
    last_ = now;
    shown_ = true;
    show_progress(fmt::format("{}  {}", what_, progress_text(done, total, now - start_, counted_)));
}

}  // namespace redline::cli
