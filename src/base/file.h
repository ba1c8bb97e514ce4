// An open file read by position, and an atomic writer. A File has no read position, so several threads can
// read it.
#pragma once

#include "base/os/file_handle.h"
#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace redline {

class File {
public:
    static Result<File> open(const std::string& path);
    const std::string& path() const { return path_; }
    uint64_t size() const { return size_; }
    // Fills `out` from `offset`; a short file (it may have shrunk since open) is an error.
    Status read(uint64_t offset, std::span<std::byte> out) const;
    // Tell the kernel that the range is about to be read, or will not be needed again.
    void will_read(uint64_t offset, uint64_t bytes) const;
    void forget(uint64_t offset, uint64_t bytes) const;

private:
    File(os::FileHandle handle, std::string path, uint64_t size)
        : handle_(std::move(handle)), path_(std::move(path)), size_(size) {}

    os::FileHandle handle_;
    std::string path_;
    uint64_t size_ = 0;
};

// Reads small files as a whole (prompts, templates), also pipes and devices; refuses more than `limit` bytes.
Result<std::string> read_text_file(const std::string& path, uint64_t limit = uint64_t(1) << 30);
// Reads an open handle to its end; `name` is for errors.
Result<std::string> read_stream(int handle, const std::string& name, uint64_t limit);

// Writes to a file beside the target, which commit() renames over it, so that readers see the old or the new
// file, never half of one.
class AtomicWriter {
public:
    // `mode` has the permissions of the file, less those that the user's umask removes.
    static Result<AtomicWriter> create(const std::string& path, unsigned mode = 0666);
    AtomicWriter(AtomicWriter&& other) noexcept;
    ~AtomicWriter();  // without commit(): removes the partial file

    Status write(std::span<const std::byte> bytes);
    // `durable` waits until the file is on the disk; without it a crash of the system may lose parts of it.
    Status commit(bool durable = true);

private:
    AtomicWriter(os::FileHandle handle, std::string path, const char* partial)
        : handle_(std::move(handle)), path_(std::move(path)), partial_(partial) {}

    os::FileHandle handle_;
    std::string path_;
    const char* partial_ = nullptr;  // on the heap, owned by this writer
};

// Removes the partial files of all existing writers. A signal handler may call it before it ends the program.
void remove_partial_files();

}  // namespace redline
