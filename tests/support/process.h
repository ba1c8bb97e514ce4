// Runs the program as a user's shell does: arguments, standard input, and what came back.
#pragma once

#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace redline::test {

struct Launch {
    std::vector<std::string> arguments;
    std::optional<std::string> input;  // none: standard input is closed
    bool close_output = false;
    std::string output_path;  // standard output goes there; empty: it is returned
    // Called with what was read of standard output so far; true: the signal is sent, once.
    std::function<bool(const std::string&)> interrupt_when;
    int signal = SIGINT;
    size_t close_after = 0;  // > 0: the reader of standard output goes away after so many bytes
    std::vector<std::string> environment;
};

struct Outcome {
    int code = -1;  // of the exit; -SIGNAL when a signal ended it
    std::string out;
    std::string err;
};

namespace process_detail {

[[noreturn]] inline void become(const Launch& launch, int in, int out, int err) {
    if (in >= 0)
        ::dup2(in, 0);
    else
        ::close(0);
    ::dup2(out, 1);
    ::dup2(err, 2);
    if (launch.close_output) ::close(1);
    for (int handle = 3; handle < 256; ++handle) ::close(handle);
    for (const int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_DFL);
    for (const std::string& variable : launch.environment) ::putenv(const_cast<char*>(variable.c_str()));
    std::vector<char*> pointers;
    for (const std::string& argument : launch.arguments)
        pointers.push_back(const_cast<char*>(argument.c_str()));
    pointers.push_back(nullptr);
    ::execv(pointers[0], pointers.data());
    ::_exit(127);
}

// Appends what can be read; false at the end.
inline bool drain(int handle, std::string& into) {
    char chunk[4096];
    const ssize_t got = ::read(handle, chunk, sizeof(chunk));
    if (got > 0) into.append(chunk, size_t(got));
    return got > 0;
}

}  // namespace process_detail

inline Outcome launch(const Launch& what) {
    using namespace process_detail;
    std::fflush(nullptr);
    int in[2] = {-1, -1}, out[2], err[2];
    if ((what.input && ::pipe(in) != 0) || ::pipe(out) != 0 || ::pipe(err) != 0) return {};
    if (!what.output_path.empty()) {
        ::close(out[1]);
        out[1] = ::open(what.output_path.c_str(), O_WRONLY);
    }
    const pid_t child = ::fork();
    if (child == 0) become(what, in[0], out[1], err[1]);
    ::close(out[1]);
    ::close(err[1]);
    if (what.input) {
        ::close(in[0]);
        std::signal(SIGPIPE, SIG_IGN);
        if (::write(in[1], what.input->data(), what.input->size()) < 0) std::perror("input of the program");
        ::close(in[1]);
    }

    Outcome outcome;
    bool interrupted = false, killed = false;
    bool out_open = true, err_open = true;
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(120);
    while (out_open || err_open) {
        struct pollfd ready[2] = {{out_open ? out[0] : -1, POLLIN, 0}, {err_open ? err[0] : -1, POLLIN, 0}};
        ::poll(ready, 2, 1000);
        if (ready[0].revents != 0) out_open = drain(out[0], outcome.out);
        if (ready[1].revents != 0) err_open = drain(err[0], outcome.err);
        if (out_open && what.close_after > 0 && outcome.out.size() >= what.close_after) {
            out_open = false;
            ::close(std::exchange(out[0], -1));
        }
        if (!interrupted && what.interrupt_when && what.interrupt_when(outcome.out)) {
            interrupted = true;
            ::kill(child, what.signal);
        }
        if (!killed && std::chrono::steady_clock::now() > limit) {
            killed = true;
            ::kill(child, SIGKILL);
        }
    }
    if (out[0] >= 0) ::close(out[0]);
    ::close(err[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    return outcome;
}

}  // namespace redline::test
