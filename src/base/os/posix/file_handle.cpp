#include "base/os/file_handle.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace redline::os {

static std::error_code last_fault() {
    return {errno, std::generic_category()};
}

static int flags_of(OpenMode mode) {
    switch (mode) {
        case OpenMode::read:
            return O_RDONLY | O_NONBLOCK;
        case OpenMode::read_stream:
            return O_RDONLY;
        case OpenMode::create:
            return O_WRONLY | O_CREAT | O_EXCL;
        case OpenMode::append:
            return O_WRONLY | O_CREAT | O_APPEND;
        case OpenMode::update:
            return O_RDWR | O_CREAT;
        case OpenMode::update_no_link:
            return O_RDWR | O_CREAT | O_NOFOLLOW;
    }
    return O_RDONLY;
}

// Repeats a call that a signal has interrupted.
template <typename Call>
static auto uninterrupted(const Call& call) {
    while (true)
        if (const auto got = call(); got >= 0 || errno != EINTR) return got;
}

template <typename Number>
static size_t checked(Number got, std::error_code& fault) {
    fault = got < 0 ? last_fault() : std::error_code();
    return got < 0 ? 0 : size_t(got);
}

static FileInfo info_from(int code, const struct stat& info, std::error_code& fault) {
    checked(code, fault);
    if (fault) return {};
    const FileKind kind = S_ISREG(info.st_mode)                              ? FileKind::regular
                          : S_ISDIR(info.st_mode)                            ? FileKind::folder
                          : S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode) ? FileKind::pipe
                                                                             : FileKind::other;
    return {kind, uint64_t(info.st_size), uint64_t(info.st_dev), uint64_t(info.st_ino)};
}

FileHandle FileHandle::open(const std::string& path, OpenMode mode, std::error_code& fault,
                            unsigned permissions) {
    const int handle = ::open(path.c_str(), flags_of(mode) | O_CLOEXEC, permissions);
    checked(handle, fault);
    return FileHandle(handle);
}

FileHandle::FileHandle(FileHandle&& other) noexcept : handle_(std::exchange(other.handle_, -1)) {}

FileHandle& FileHandle::operator=(FileHandle&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
}

FileHandle::~FileHandle() {
    if (handle_ >= 0) ::close(handle_);
}

FileInfo FileHandle::info(std::error_code& fault) const {
    return info_of(handle_, fault);
}

size_t FileHandle::read_at(uint64_t offset, std::span<std::byte> out, std::error_code& fault) const {
    return checked(uninterrupted([&] { return ::pread(handle_, out.data(), out.size(), off_t(offset)); }),
                   fault);
}

size_t FileHandle::write_at(uint64_t offset, std::span<const std::byte> bytes, std::error_code& fault) const {
    return checked(
        uninterrupted([&] { return ::pwrite(handle_, bytes.data(), bytes.size(), off_t(offset)); }), fault);
}

void FileHandle::write(std::span<const std::byte> bytes, std::error_code& fault) const {
    fault.clear();
    while (!bytes.empty() && !fault) {
        const auto put = uninterrupted([&] { return ::write(handle_, bytes.data(), bytes.size()); });
        bytes = bytes.subspan(checked(put, fault));
    }
}

void FileHandle::truncate(std::error_code& fault) const {
    checked(::ftruncate(handle_, 0), fault);
}

void FileHandle::sync(std::error_code& fault) const {
    checked(::fsync(handle_), fault);
}

void FileHandle::close(std::error_code& fault) {
    checked(::close(std::exchange(handle_, -1)), fault);
}

void FileHandle::will_read(uint64_t offset, uint64_t bytes) const {
    ::posix_fadvise(handle_, off_t(offset), off_t(bytes), POSIX_FADV_WILLNEED);
}

void FileHandle::forget(uint64_t offset, uint64_t bytes) const {
    ::posix_fadvise(handle_, off_t(offset), off_t(bytes), POSIX_FADV_DONTNEED);
}

void FileHandle::lock(std::error_code& fault) const {
    checked(uninterrupted([&] { return ::flock(handle_, LOCK_EX); }), fault);
}

bool FileHandle::try_lock(std::error_code& fault) const {
    checked(uninterrupted([&] { return ::flock(handle_, LOCK_EX | LOCK_NB); }), fault);
    const bool locked = !fault;
    if (fault == std::errc::operation_would_block) fault.clear();
    return locked;
}

FileInfo info_of(const std::string& path, std::error_code& fault) {
    struct stat info = {};
    const int code = ::stat(path.c_str(), &info);
    return info_from(code, info, fault);
}

FileInfo info_of(int handle, std::error_code& fault) {
    struct stat info = {};
    const int code = ::fstat(handle, &info);
    return info_from(code, info, fault);
}

size_t read_some(int handle, std::span<char> out, std::error_code& fault) {
    return checked(::read(handle, out.data(), out.size()), fault);
}

bool is_temporary(const std::error_code& fault) {
    return fault == std::errc::interrupted || fault == std::errc::resource_unavailable_try_again;
}

void replace_file(const std::string& from, const std::string& to, std::error_code& fault) {
    checked(::rename(from.c_str(), to.c_str()), fault);
}

void remove_file(const char* path) {
    ::unlink(path);
}

void make_private_folder(const std::string& path) {
    ::mkdir(path.c_str(), 0700);
}

bool open_standard_handles() {
    for (const int handle : {kStandardInput, kStandardOutput, kStandardError})
        if (::fcntl(handle, F_GETFD) < 0 && ::open("/dev/null", O_RDONLY) < 0) return false;
    return true;
}

}  // namespace redline::os
