#include "cli/terminal/terminal.h"

#include "base/file.h"
#include "cli/terminal/word_wrap.h"
#include "text/tokens/unicode.h"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

namespace redline::cli {

static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int64_t>::is_always_lock_free,
              "a signal handler writes them");
static std::atomic<bool> watched = false;      // an Interrupts lives
static std::atomic<bool> interrupted = false;  // since it was cleared
static std::atomic<int> last_signal = SIGINT;
static std::atomic<int64_t> interrupted_ms = 0;
static std::atomic<bool> must_redraw = false;
static std::atomic<int> wake_handle = -1;  // an event that signals write to
static struct termios usual_modes = {};    // of standard input
static std::atomic<bool> modes_known = false;

Voice& voice() {
    static Voice the_voice;
    return the_voice;
}

bool is_terminal(int handle) {
    return ::isatty(handle) == 1;
}

bool outputs_meet() {
    struct stat out = {}, err = {};
    return ::fstat(STDOUT_FILENO, &out) == 0 && ::fstat(STDERR_FILENO, &err) == 0 &&
           out.st_dev == err.st_dev && out.st_ino == err.st_ino;
}

// Writes all of it; the errno of what went wrong, else 0.
static int write_all(int handle, std::string_view text) {
    while (!text.empty()) {
        const ssize_t put = ::write(handle, text.data(), text.size());
        if (put >= 0) {
            text.remove_prefix(size_t(put));
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            struct pollfd ready = {handle, POLLOUT, 0};
            ::poll(&ready, 1, -1);
        } else if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

// Signal handlers read it.
static std::atomic<bool> progress_shown = false;
static std::mutex progress_mutex;  // held while the line, or what stands in its place, is written
constexpr std::string_view kEraseLine = "\r\x1b[K";

static void erase_locked() {
    if (progress_shown.exchange(false)) write_all(STDERR_FILENO, kEraseLine);
}

// Nobody can be told when standard error itself cannot be written.
void show(std::string_view text) {
    const std::lock_guard lock(progress_mutex);
    erase_locked();
    write_all(STDERR_FILENO, text);
}

void show_progress(std::string_view line) {
    // The last column stays free: a line that the terminal breaks could not be erased whole.
    const std::string whole = printable(line);
    const std::string_view fitting = clipped(whole, terminal_width(STDERR_FILENO) - 1);
    const std::lock_guard lock(progress_mutex);
    progress_shown = true;
    write_all(STDERR_FILENO, fmt::format("{}{}", kEraseLine, fitting));
}

void erase_progress() {
    const std::lock_guard lock(progress_mutex);
    erase_locked();
}

bool can_show_progress() {
    return !voice().quiet && is_terminal(STDERR_FILENO) && can_move_cursor();
}

bool can_move_cursor() {
    const char* kind = std::getenv("TERM");
    return kind && *kind && std::strcmp(kind, "dumb") != 0 && std::strcmp(kind, "unknown") != 0;
}

static std::string for_screen(std::string_view line) {
    return is_terminal(STDERR_FILENO) ? wrapped(line, terminal_width(STDERR_FILENO)) : std::string(line);
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
    if (fault_ == 0) fault_ = write_all(STDOUT_FILENO, text);
    return open();
}

bool Output::hung_up() const {
    return terminal_ && fault_ == EIO;
}

int Output::finish(int code) const {
    if (open() || fault_ == EPIPE) return code;
    if (hung_up()) return code > 128 ? code : 128 + SIGHUP;
    return fail(error("cannot write standard output: {}", std::strerror(fault_)));
}

static void wake() {
    const int before = errno;
    const uint64_t one = 1;
    if (wake_handle >= 0 && ::write(wake_handle, &one, sizeof(one)) < 0) errno = 0;  // it is awake
    errno = before;
}

// Signal handlers may call it.
void restore_terminal() {
    constexpr std::string_view kUsualPastes = "\x1b[?2004l";
    if (!modes_known) return;
    ::tcsetattr(STDIN_FILENO, TCSADRAIN, &usual_modes);
    write_all(STDERR_FILENO, kUsualPastes);
}

// Signal handlers call both.
static int64_t now_ms() {
    struct timespec time = {};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    return int64_t(time.tv_sec) * 1000 + time.tv_nsec / 1000000;
}

static void set_interrupted(int signal) {
    last_signal = signal;
    interrupted_ms = now_ms();
    interrupted = true;
}

// The first signal sets the flag. A second one ends the program here, for who should see the flag may wait
// for a device that hangs; but not one that comes at once, as timeout(1) signals a process and then its
// group.
static void on_signal(int signal) {
    constexpr int64_t kAtOnceMs = 100;
    if (watched && signal == last_signal && now_ms() - interrupted_ms < kAtOnceMs) return;
    if (watched && !interrupted) {
        set_interrupted(signal);
        wake();
        return;
    }
    remove_partial_files();
    restore_terminal();
    if (progress_shown) write_all(STDERR_FILENO, kEraseLine);
    ::_exit(128 + signal);
}

void catch_signals() {
    struct sigaction action = {};
    action.sa_handler = on_signal;  // without SA_RESTART: a read of the keyboard ends
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        struct sigaction before = {};
        ::sigaction(signal, nullptr, &before);
        // As nohup leaves it, and a shell for what runs in the background.
        if (before.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);
    }
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
    return interrupted && last_signal != SIGINT;
}
void Interrupts::clear() {
    interrupted = false;
}

static void on_window(int) {
    must_redraw = true;
    wake();
}

void watch_window() {
    struct sigaction action = {};
    action.sa_handler = on_window;
    action.sa_flags = SA_RESTART;
    for (const int signal : {SIGWINCH, SIGCONT}) ::sigaction(signal, &action, nullptr);
    modes_known = ::tcgetattr(STDIN_FILENO, &usual_modes) == 0;
}

Event wait_for_event(int handle) {
    static const bool terminal = is_terminal(handle);  // later it may be gone
    if (wake_handle < 0) wake_handle = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    while (true) {
        uint64_t times = 0;
        if (::read(wake_handle, &times, sizeof(times)) < 0) times = 0;
        if (interrupted) return Event::interrupt;
        if (must_redraw.exchange(false)) return Event::redraw;
        struct pollfd ready[2] = {{handle, POLLIN, 0}, {wake_handle, POLLIN, 0}};
        ::poll(ready, 2, -1);
        // A terminal whose window was closed: its shell sends SIGHUP somewhat later than the end of the
        // input.
        const bool gone = terminal && (ready[0].revents & POLLHUP) != 0;
        if (gone && watched && !interrupted) set_interrupted(SIGHUP);
        if (ready[0].revents != 0 && ready[1].revents == 0 && !interrupted) return Event::input;
    }
}

size_t terminal_width(int handle) {
    struct winsize size = {};
    return ::ioctl(handle, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
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
