#include "base/file_turn.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace redline {

Result<FileTurn> FileTurn::take(const std::string& path, unsigned mode) {
    const std::string name = path + ".lock";
    const int handle = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, mode);
    if (handle < 0) return error("{}: {}", name, std::strerror(errno));
    FileTurn turn(handle);
    while (::flock(handle, LOCK_EX) != 0)
        if (errno != EINTR) return error("{}: {}", name, std::strerror(errno));
    return turn;
}

FileTurn::~FileTurn() {
    if (handle_ >= 0) ::close(handle_);
}

}  // namespace redline
