#include "base/os/child_process.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace redline::os {

namespace {

constexpr size_t kMostOutput = size_t(4) << 20;
using Clock = std::chrono::steady_clock;

struct Pipe {
    int read = -1, write = -1;
    Pipe() = default;
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;
    ~Pipe() {
        close_end(read);
        close_end(write);
    }
    Status open() {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) return error("cannot open a pipe: {}", std::strerror(errno));
        read = ends[0];
        write = ends[1];
        return {};
    }
    static void close_end(int& handle) {
        if (handle >= 0) ::close(handle);
        handle = -1;
    }
};

Result<pid_t> spawn(const std::vector<std::string>& arguments, const Pipe& out, const Pipe& err) {
    std::vector<std::string> words = {"redline"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, out.write, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, err.write, STDERR_FILENO);
    pid_t child = 0;
    const int failed = ::posix_spawn(&child, "/proc/self/exe", &actions, nullptr, pointers.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) return error("cannot start this program once more: {}", std::strerror(failed));
    return child;
}

// Appends output that is there. False: its end was reached.
bool take(int handle, std::string& text) {
    std::array<char, 65536> buffer;
    const ssize_t got = ::read(handle, buffer.data(), buffer.size());
    if (got < 0) return errno == EINTR || errno == EAGAIN;
    text.append(buffer.data(), std::min(size_t(got), kMostOutput - std::min(kMostOutput, text.size())));
    return got > 0;
}

}  // namespace

Result<ChildOutcome> run_self(const std::vector<std::string>& arguments, double most_seconds,
                              const std::atomic<bool>* cancel) {
    constexpr int kLookMs = 100;
    const auto begin = Clock::now();
    const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
    Pipe out, err;
    RL_TRY(out.open());
    RL_TRY(err.open());
    const pid_t child = RL_TRY(spawn(arguments, out, err));
    Pipe::close_end(out.write);
    Pipe::close_end(err.write);
    ChildOutcome outcome;
    bool ended = false;
    while (out.read >= 0 || err.read >= 0) {
        pollfd ready[2] = {{out.read, POLLIN, 0}, {err.read, POLLIN, 0}};
        ::poll(ready, 2, kLookMs);
        if (ready[0].revents != 0 && !take(out.read, outcome.out)) Pipe::close_end(out.read);
        if (ready[1].revents != 0 && !take(err.read, outcome.err)) Pipe::close_end(err.read);
        outcome.timed_out = outcome.timed_out || seconds() > most_seconds;
        if (!ended && (outcome.timed_out || (cancel && *cancel))) {
            ::kill(child, SIGKILL);
            ended = true;
        }
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    outcome.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    outcome.seconds = seconds();
    return outcome;
}

}  // namespace redline::os
