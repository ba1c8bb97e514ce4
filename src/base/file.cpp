#include "base/file.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace redline {

static std::string reason() {
    return std::strerror(errno);
}

Result<File> File::open(const std::string& path) {
    // O_NONBLOCK: a named pipe has to be refused, not waited for.
    const int handle = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (handle < 0) return error("cannot open {}: {}", path, reason());
    File file(handle, path, 0);
    struct stat info = {};
    if (::fstat(handle, &info) != 0) return error("cannot stat {}: {}", path, reason());
    if (S_ISDIR(info.st_mode)) return error("{} is a folder, not a file", path);
    if (!S_ISREG(info.st_mode)) return error("{} is not a regular file", path);
    file.size_ = uint64_t(info.st_size);
    return file;
}

File::File(File&& other) noexcept
    : handle_(std::exchange(other.handle_, -1)), path_(std::move(other.path_)), size_(other.size_) {}

File& File::operator=(File&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(path_, other.path_);
    std::swap(size_, other.size_);
    return *this;
}

File::~File() {
    if (handle_ >= 0) ::close(handle_);
}

Status File::read(uint64_t offset, std::span<std::byte> out) const {
    while (!out.empty()) {
        const ssize_t got = ::pread(handle_, out.data(), out.size(), off_t(offset));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return error("cannot read {} at byte {}: {}", path_, offset, reason());
        if (got == 0)
            return error("{} ends at byte {}, {} more bytes were expected", path_, offset, out.size());
        offset += uint64_t(got);
        out = out.subspan(size_t(got));
    }
    return {};
}

void File::will_read(uint64_t offset, uint64_t bytes) const {
    ::posix_fadvise(handle_, off_t(offset), off_t(bytes), POSIX_FADV_WILLNEED);
}

void File::forget(uint64_t offset, uint64_t bytes) const {
    ::posix_fadvise(handle_, off_t(offset), off_t(bytes), POSIX_FADV_DONTNEED);
}

Result<std::string> read_stream(int handle, const std::string& name, uint64_t limit) {
    std::string text;
    char chunk[1 << 16];
    while (true) {
        const ssize_t got = ::read(handle, chunk, sizeof(chunk));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return error("cannot read {}: {}", name, reason());
        if (got == 0) return text;
        text.append(chunk, size_t(got));
        if (text.size() > limit) return error("{} has more than the {} bytes accepted here", name, limit);
    }
}

Result<std::string> read_text_file(const std::string& path, uint64_t limit) {
    const int handle = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (handle < 0) return error("cannot open {}: {}", path, reason());
    struct stat info = {};
    const bool folder = ::fstat(handle, &info) == 0 && S_ISDIR(info.st_mode);
    Result<std::string> text = folder ? Result<std::string>(error("{} is a folder, not a file", path))
                                      : read_stream(handle, path, limit);
    ::close(handle);
    return text;
}

// The names of partial files. Removing an entry transfers ownership of the name: to a writer, or to the
// signal handler that then removes the file.
static std::atomic<const char*> partial_files[16];
static_assert(std::atomic<const char*>::is_always_lock_free, "a signal handler reads them");

// Stores a copy of the name. When more files are written at a time than there are entries, the handler does
// not remove the rest.
static const char* remember(const std::string& name) {
    const char* copy = ::strdup(name.c_str());
    if (!copy) throw std::bad_alloc();
    for (auto& place : partial_files) {
        const char* none = nullptr;
        if (place.compare_exchange_strong(none, copy)) break;
    }
    return copy;
}

// Frees the name, unless the handler has taken it.
static void forget(const char* name) {
    bool ours = false;
    for (auto& place : partial_files) {
        const char* wanted = name;
        ours |= place.compare_exchange_strong(wanted, nullptr);
    }
    if (ours) ::free(const_cast<char*>(name));
}

void remove_partial_files() {
    for (auto& place : partial_files)
        if (const char* name = place.exchange(nullptr)) ::unlink(name);
}

Result<AtomicWriter> AtomicWriter::create(const std::string& path, unsigned mode) {
    for (int number = 0;; ++number) {
        std::string partial = fmt::format("{}.part{}-{}", path, ::getpid(), number);
        const int handle = ::open(partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (handle >= 0) return AtomicWriter(handle, path, remember(partial));
        if (errno != EEXIST) return error("cannot create {}: {}", path, reason());
    }
}

AtomicWriter::AtomicWriter(AtomicWriter&& other) noexcept
    : handle_(std::exchange(other.handle_, -1)),
      path_(std::move(other.path_)),
      partial_(std::exchange(other.partial_, nullptr)) {}

AtomicWriter::~AtomicWriter() {
    if (handle_ >= 0) ::close(handle_);
    if (!partial_) return;
    ::unlink(partial_);
    forget(partial_);
}

Status AtomicWriter::write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t put = ::write(handle_, bytes.data(), bytes.size());
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return error("cannot write {}: {}", path_, reason());
        bytes = bytes.subspan(size_t(put));
    }
    return {};
}

Status AtomicWriter::commit(bool durable) {
    if (durable && ::fsync(handle_) != 0) return error("cannot write {}: {}", path_, reason());
    const int closed = ::close(std::exchange(handle_, -1));
    if (closed != 0) return error("cannot write {}: {}", path_, reason());
    if (::rename(partial_, path_.c_str()) != 0) return error("cannot write {}: {}", path_, reason());
    forget(std::exchange(partial_, nullptr));
    return {};
}

}  // namespace redline
