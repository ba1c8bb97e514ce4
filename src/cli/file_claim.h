// Which program keeps a file: two that write the same one would lose what the other wrote.
#pragma once

#include "base/os/file_handle.h"
#include "base/result.h"

#include <string>

namespace redline::cli {

// Held while it lives, and by the kernel's doing not a moment longer than its program. The lock is on a file
// beside the one that is kept, FILE.lock, since that one is replaced whenever it is written.
class FileClaim {
public:
    // An error says who keeps the file, or why it cannot be kept there.
    static Result<FileClaim> take(const std::string& path);
    FileClaim(FileClaim&& other) noexcept = default;
    FileClaim& operator=(FileClaim&& other) noexcept;
    ~FileClaim();

    // The file as it was called, and where that leads over links.
    const std::string& name() const { return name_; }
    const std::string& path() const { return path_; }
    // Why another program might write the file all the same: its file system has no locks. Empty: none can.
    const std::string& doubt() const { return doubt_; }

private:
    FileClaim(os::FileHandle handle, std::string name, std::string path, std::string doubt)
        : handle_(std::move(handle)),
          name_(std::move(name)),
          path_(std::move(path)),
          doubt_(std::move(doubt)) {}

    os::FileHandle handle_;  // of the lock file
    std::string name_, path_;
    std::string doubt_;
};

}  // namespace redline::cli
