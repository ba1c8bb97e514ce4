#include "base/os/terminal.h"

#include "base/os/file_handle.h"

#include <atomic>
#include <cerrno>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

namespace redline::os {

static_assert(std::atomic<int>::is_always_lock_free, "a signal handler reads it");
static std::atomic<int> wake_handle = -1;  // an event that wake() writes to
static struct termios saved_modes = {};

bool is_terminal(int handle) {
    return ::isatty(handle) == 1;
}

std::optional<size_t> terminal_columns(int handle) {
    struct winsize size = {};
    if (::ioctl(handle, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return {};
    return size.ws_col;
}

void write_all(int handle, std::string_view text, std::error_code& fault) {
    fault.clear();
    while (!text.empty()) {
        const ssize_t put = ::write(handle, text.data(), text.size());
        if (put >= 0) {
            text.remove_prefix(size_t(put));
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            struct pollfd ready = {handle, POLLOUT, 0};
            ::poll(&ready, 1, -1);
        } else if (errno != EINTR) {
            fault = {errno, std::generic_category()};
            return;
        }
    }
}

bool save_terminal_modes() {
    return ::tcgetattr(kStandardInput, &saved_modes) == 0;
}

void restore_terminal_modes() {
    ::tcsetattr(kStandardInput, TCSADRAIN, &saved_modes);
}

bool is_ready(int handle, int milliseconds) {
    struct pollfd ready = {handle, POLLIN, 0};
    return ::poll(&ready, 1, milliseconds) > 0;
}

bool has_input(int handle) {
    struct pollfd ready = {handle, POLLIN, 0};
    return ::poll(&ready, 1, 0) > 0 && (ready.revents & POLLIN) != 0;
}

Waited wait_for_input(int handle) {
    struct pollfd ready[2] = {{handle, POLLIN, 0}, {wake_handle, POLLIN, 0}};
    ::poll(ready, 2, -1);
    return {ready[0].revents != 0, (ready[0].revents & POLLHUP) != 0, ready[1].revents != 0};
}

void wake() {
    const int before = errno;
    const uint64_t one = 1;
    if (wake_handle >= 0 && ::write(wake_handle, &one, sizeof(one)) < 0) errno = 0;  // it is awake
    errno = before;
}

void forget_wakes() {
    if (wake_handle < 0) wake_handle = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    uint64_t times = 0;
    if (::read(wake_handle, &times, sizeof(times)) < 0) errno = 0;  // there were none
}

}  // namespace redline::os
