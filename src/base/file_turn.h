// A lock that lets one process at a time change a file.
#pragma once

#include "base/os/file_handle.h"
#include "base/result.h"

#include <string>
#include <utility>

namespace redline {

// Held by one process at a time, as long as the object lives; the kernel releases it when the process ends.
// Other processes wait for it. The lock file is not deleted.
class FileTurn {
public:
    // Locks the file at `path`: the lock is on PATH.lock.
    static Result<FileTurn> take(const std::string& path, unsigned mode = 0666);
    FileTurn(FileTurn&& other) noexcept = default;
    FileTurn& operator=(FileTurn&& other) = delete;

private:
    explicit FileTurn(os::FileHandle handle) : handle_(std::move(handle)) {}
    os::FileHandle handle_;
};

}  // namespace redline
