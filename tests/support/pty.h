// Runs the program on a pseudo-terminal, types, and looks at the screen.
#pragma once

#include "support/process.h"
#include "support/screen.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>

namespace redline::test {

class Terminal {
public:
    explicit Terminal(const Launch& what, int rows = 24, int columns = 80) : screen_(rows, columns) {
        std::fflush(nullptr);
        struct winsize size = {};
        size.ws_row = static_cast<unsigned short>(rows);
        size.ws_col = static_cast<unsigned short>(columns);
        child_ = ::forkpty(&handle_, nullptr, nullptr, &size);
        if (child_ == 0) become(what);
        ::fcntl(handle_, F_SETFL, O_NONBLOCK);
    }
    Terminal(const Terminal&) = delete;
    ~Terminal() {
        if (child_ > 0 && !ended_) {
            ::kill(child_, SIGKILL);
            ::waitpid(child_, nullptr, 0);
        }
        if (handle_ >= 0) ::close(handle_);
    }

    // Types keys in one go. Keys for which the terminal has no room are written while the program reads.
    void type(std::string_view keys) {
        while (!keys.empty() && read_for(0)) {
            const ssize_t put = ::write(handle_, keys.data(), std::min<size_t>(keys.size(), 1024));
            if (put > 0) keys.remove_prefix(size_t(put));
            if (put < 0) read_for(5);
        }
    }
    void paste(const std::string& text) { type("\x1b[200~" + text + "\x1b[201~"); }
    void resize(int rows, int columns) {
        struct winsize size = {};
        size.ws_row = static_cast<unsigned short>(rows);
        size.ws_col = static_cast<unsigned short>(columns);
        screen_.resize(rows, columns);
        ::ioctl(handle_, TIOCSWINSZ, &size);
    }

    // Waits until it is so, for 20 seconds at most.
    bool wait(const std::function<bool()>& so) {
        const auto limit = Clock::now() + std::chrono::seconds(20);
        while (!so()) {
            if (Clock::now() > limit) return false;
            if (!read_for(20) && !so()) return false;
        }
        return true;
    }
    bool wait_for(const std::string& text) {
        return wait([&] { return screen_.text().find(text) != std::string::npos; });
    }
    // Waits until the cursor stands in a line with this text, and behind it.
    bool wait_for_line(const std::string& text) {
        return wait([&] { return screen_.cursor_line() == text; });
    }
    // Reads the output that comes while nothing is typed.
    void settle(int ms = 150) {
        const auto limit = Clock::now() + std::chrono::milliseconds(ms);
        while (Clock::now() < limit && read_for(10)) {
        }
    }

    // Closes the terminal like a window: it is gone for the program, whose end is then awaited.
    int hang_up() {
        ::close(std::exchange(handle_, -1));
        closed_ = true;
        return finish();
    }

    // The exit code once the program has ended; -SIGNAL when a signal ended it.
    int finish() {
        if (!wait([&] { return closed_; })) return -1000;
        int status = 0;
        ::waitpid(child_, &status, 0);
        ended_ = true;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }
    // True when lines are edited and echoed by the system, as a shell's user expects after the program.
    bool is_cooked() const {
        struct termios modes = {};
        ::tcgetattr(handle_, &modes);
        return (modes.c_lflag & ICANON) && (modes.c_lflag & ECHO) && (modes.c_lflag & ISIG);
    }
    const Screen& screen() const { return screen_; }
    const std::string& bytes() const { return bytes_; }
    pid_t child() const { return child_; }

private:
    using Clock = std::chrono::steady_clock;

    [[noreturn]] static void become(const Launch& what) {
        for (int handle = 3; handle < 256; ++handle) ::close(handle);
        for (const int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_DFL);
        ::setenv("TERM", "xterm", 1);
        for (const char* name : {"NO_COLOR", "LC_ALL", "LC_CTYPE", "LANG", "COLUMNS", "LINES"})
            ::unsetenv(name);
        for (const std::string& variable : what.environment) ::putenv(const_cast<char*>(variable.c_str()));
        std::vector<char*> pointers;
        for (const std::string& argument : what.arguments)
            pointers.push_back(const_cast<char*>(argument.c_str()));
        pointers.push_back(nullptr);
        ::execv(pointers[0], pointers.data());
        ::_exit(127);
    }

    // False: the program has closed the terminal.
    bool read_for(int ms) {
        struct pollfd ready = {handle_, POLLIN, 0};
        if (closed_ || ::poll(&ready, 1, ms) <= 0) return !closed_;
        char chunk[4096];
        const ssize_t got = ::read(handle_, chunk, sizeof(chunk));
        if (got > 0) {
            screen_.write({chunk, size_t(got)});
            bytes_.append(chunk, size_t(got));
        } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
            closed_ = true;  // EIO: nobody has the other end any more
        }
        return !closed_;
    }

    Screen screen_;
    std::string bytes_;
    int handle_ = -1;
    pid_t child_ = -1;
    bool closed_ = false;
    bool ended_ = false;
};

}  // namespace redline::test
