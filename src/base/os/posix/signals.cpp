#include "base/os/signals.h"

#include <csignal>
#include <ctime>
#include <initializer_list>

#include <unistd.h>

namespace redline::os {

static_assert(SIGHUP == kHangUpSignal && SIGINT == kInterruptSignal);

void on_ending_signals(SignalHandler handler) {
    struct sigaction action = {};
    action.sa_handler = handler;  // without SA_RESTART: a read of the keyboard ends
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        struct sigaction before = {};
        ::sigaction(signal, nullptr, &before);
        // nohup ignores signals, and a shell does for programs in the background.
        if (before.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);
    }
}

void on_window_change(SignalHandler handler) {
    struct sigaction action = {};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    for (const int signal : {SIGWINCH, SIGCONT}) ::sigaction(signal, &action, nullptr);
}

void ignore_broken_pipes() {
    std::signal(SIGPIPE, SIG_IGN);
}

void suspend() {
    ::kill(0, SIGTSTP);
}

void exit_now(int code) {
    ::_exit(code);
}

int64_t monotonic_milliseconds() {
    struct timespec time = {};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    return int64_t(time.tv_sec) * 1000 + time.tv_nsec / 1000000;
}

}  // namespace redline::os
