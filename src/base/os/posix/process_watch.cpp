#include "base/os/process_watch.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

namespace redline::os {

std::optional<ProcessWatch> ProcessWatch::open(int64_t process) {
#ifdef SYS_pidfd_open
    const long handle = ::syscall(SYS_pidfd_open, pid_t(process), 0u);
    if (handle >= 0) return ProcessWatch(int(handle));
#else
    static_cast<void>(process);
#endif
    return {};
}

ProcessWatch::~ProcessWatch() {
    if (handle_ >= 0) ::close(handle_);
}

ProcessWatch::ProcessWatch(ProcessWatch&& other) noexcept : handle_(std::exchange(other.handle_, -1)) {}

ProcessWatch& ProcessWatch::operator=(ProcessWatch&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
}

bool ProcessWatch::ended() const {
    pollfd one{handle_, POLLIN, 0};
    return ::poll(&one, 1, 0) > 0;
}

void end_waits_promptly() {
    ::prctl(PR_SET_TIMERSLACK, 1000ul);  // nanoseconds; 50 000 is usual
}

std::string machine_of_processes() {
    std::string name;
    char text[64] = "";
    if (const int file = ::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC); file >= 0) {
        const ssize_t bytes = ::read(file, text, sizeof(text) - 1);
        ::close(file);
        if (bytes > 0) name.assign(text, size_t(bytes));
    }
    struct stat space = {};
    if (name.empty() || ::stat("/proc/self/ns/pid", &space) != 0)
        return "process " + std::to_string(::getpid());  // alone
    return name.substr(0, name.find('\n')) + " " + std::to_string(space.st_ino);
}

}  // namespace redline::os
