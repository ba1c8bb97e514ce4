// Open files as the operating system has them, below base/file.h. A fault is a std::error_code, whose message
// is the system's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>

namespace redline::os {

// Standard input, output and error, on every system.
constexpr int kStandardInput = 0, kStandardOutput = 1, kStandardError = 2;

enum class FileKind : uint8_t { regular, folder, pipe, other };

struct FileInfo {
    FileKind kind = FileKind::other;
    uint64_t size = 0;
    // Device and number: two handles or paths with the same pair are one file.
    uint64_t device = 0, number = 0;
    bool is_same_file(const FileInfo& other) const {
        return device == other.device && number == other.number;
    }
};

enum class OpenMode : uint8_t {
    read,           // a pipe without a writer is not waited for
    read_stream,    // a pipe may be read
    create,         // for writing; the file must not exist
    append,         // for writing at the end; created where it does not exist
    update,         // for reading and writing; created where it does not exist
    update_no_link  // the same, and a link is refused
};

class FileHandle {
public:
    FileHandle() = default;
    // `permissions` are those of a created file, less those that the user's umask removes.
    static FileHandle open(const std::string& path, OpenMode mode, std::error_code& fault,
                           unsigned permissions = 0666);
    FileHandle(FileHandle&& other) noexcept;
    FileHandle& operator=(FileHandle&& other) noexcept;
    ~FileHandle();

    explicit operator bool() const { return handle_ >= 0; }
    int number() const { return handle_; }

    FileInfo info(std::error_code& fault) const;
    // Both return the number of bytes, which may be smaller; a read returns 0 at the end of the file.
    size_t read_at(uint64_t offset, std::span<std::byte> out, std::error_code& fault) const;
    size_t write_at(uint64_t offset, std::span<const std::byte> bytes, std::error_code& fault) const;
    // At the file's position; all bytes, or a fault.
    void write(std::span<const std::byte> bytes, std::error_code& fault) const;
    void truncate(std::error_code& fault) const;
    // Waits until everything is on the disk.
    void sync(std::error_code& fault) const;
    // Reports faults of writes that were still pending; the handle is closed in any case.
    void close(std::error_code& fault);
    // Tell the kernel that the range is about to be read, or will not be needed again.
    void will_read(uint64_t offset, uint64_t bytes) const;
    void forget(uint64_t offset, uint64_t bytes) const;
    // An exclusive lock among processes, held until the handle is closed. lock() waits for it; try_lock() is
    // false when another process has it, and reports a fault where the file cannot be locked at all.
    void lock(std::error_code& fault) const;
    bool try_lock(std::error_code& fault) const;

private:
    explicit FileHandle(int handle) : handle_(handle) {}
    int handle_ = -1;
};

// The file at a path, or open at a handle.
FileInfo info_of(const std::string& path, std::error_code& fault);
FileInfo info_of(int handle, std::error_code& fault);
// Reads from a handle at its position: the number of bytes, 0 at the end. With a handle that does not wait,
// or after a signal, it may be a fault that is_temporary().
size_t read_some(int handle, std::span<char> out, std::error_code& fault);
bool is_temporary(const std::error_code& fault);
// Renames a file; readers of `to` see the old or the new one.
void replace_file(const std::string& from, const std::string& to, std::error_code& fault);
// Removes a file, if it is there. A signal handler may call it.
void remove_file(const char* path);
// Creates a folder that only the user can enter, if it is not there.
void make_private_folder(const std::string& path);
// Opens standard input, output and error where the caller of the program has closed them, so that no other
// file gets their numbers: reading one then gives the end, writing it a fault. False: that is not possible.
bool open_standard_handles();

}  // namespace redline::os
