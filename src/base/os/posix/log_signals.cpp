#include "base/os/log_signals.h"

#include <csignal>

namespace redline::os {

void on_hang_up(SignalHandler handler) {
    struct sigaction action = {};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    ::sigaction(SIGHUP, &action, nullptr);
}

void ignore_file_size_signals() {
    std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace redline::os
