// The writers of a file take turns, by a lock on a file beside it.
#pragma once

#include "base/result.h"

#include <string>
#include <utility>

namespace redline {

// Held by one process at a time, for as long as the object lives, and by the kernel's doing not a moment
// longer than its process. Who wants it meanwhile waits. The lock file stays.
class FileTurn {
public:
    // Of the file at `path`: the lock is on PATH.lock.
    static Result<FileTurn> take(const std::string& path, unsigned mode = 0666);
    FileTurn(FileTurn&& other) noexcept : handle_(std::exchange(other.handle_, -1)) {}
    FileTurn& operator=(FileTurn&& other) = delete;
    ~FileTurn();

private:
    explicit FileTurn(int handle) : handle_(handle) {}
    int handle_;
};

}  // namespace redline
