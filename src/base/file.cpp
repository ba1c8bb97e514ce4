#include "base/file.h"

#include "base/os/system.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace redline {

Result<File> File::open(const std::string& path) {
    std::error_code fault;
    File file(os::FileHandle::open(path, os::OpenMode::read, fault), path, 0);
    if (fault) return error("cannot open {}: {}", path, fault.message());
    const os::FileInfo info = file.handle_.info(fault);
    if (fault) return error("cannot stat {}: {}", path, fault.message());
    if (info.kind == os::FileKind::folder) return error("{} is a folder, not a file", path);
    if (info.kind != os::FileKind::regular) return error("{} is not a regular file", path);
    file.size_ = info.size;
    return file;
}

Status File::read(uint64_t offset, std::span<std::byte> out) const {
    while (!out.empty()) {
        std::error_code fault;
        const size_t got = handle_.read_at(offset, out, fault);
        if (fault) return error("cannot read {} at byte {}: {}", path_, offset, fault.message());
        if (got == 0)
            return error("{} ends at byte {}, {} more bytes were expected", path_, offset, out.size());
        offset += got;
        out = out.subspan(got);
    }
    return {};
}

void File::will_read(uint64_t offset, uint64_t bytes) const {
    handle_.will_read(offset, bytes);
}

void File::forget(uint64_t offset, uint64_t bytes) const {
    handle_.forget(offset, bytes);
}

Result<std::string> read_stream(int handle, const std::string& name, uint64_t limit) {
    std::string text;
    std::array<char, 1 << 16> chunk;
    while (true) {
        std::error_code fault;
        const size_t got = os::read_some(handle, chunk, fault);
        if (fault == std::errc::interrupted) continue;
        if (fault) return error("cannot read {}: {}", name, fault.message());
        if (got == 0) return text;
        text.append(chunk.data(), got);
        if (text.size() > limit) return error("{} has more than the {} bytes accepted here", name, limit);
    }
}

Result<std::string> read_text_file(const std::string& path, uint64_t limit) {
    std::error_code fault;
    const os::FileHandle handle = os::FileHandle::open(path, os::OpenMode::read_stream, fault);
    if (fault) return error("cannot open {}: {}", path, fault.message());
    if (handle.info(fault).kind == os::FileKind::folder) return error("{} is a folder, not a file", path);
    return read_stream(handle.number(), path, limit);
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
        if (const char* name = place.exchange(nullptr)) os::remove_file(name);
}

Result<AtomicWriter> AtomicWriter::create(const std::string& path, unsigned mode) {
    for (int number = 0;; ++number) {
        const std::string partial = fmt::format("{}.part{}-{}", path, os::process_id(), number);
        std::error_code fault;
        os::FileHandle handle = os::FileHandle::open(partial, os::OpenMode::create, fault, mode);
        if (!fault) return AtomicWriter(std::move(handle), path, remember(partial));
        if (fault != std::errc::file_exists) return error("cannot create {}: {}", path, fault.message());
    }
}

AtomicWriter::AtomicWriter(AtomicWriter&& other) noexcept
    : handle_(std::move(other.handle_)),
      path_(std::move(other.path_)),
      partial_(std::exchange(other.partial_, nullptr)) {}

AtomicWriter::~AtomicWriter() {
    if (!partial_) return;
    std::error_code ignored;
    if (handle_) handle_.close(ignored);
    os::remove_file(partial_);
    forget(partial_);
}

Status AtomicWriter::write(std::span<const std::byte> bytes) {
    std::error_code fault;
    handle_.write(bytes, fault);
    if (fault) return error("cannot write {}: {}", path_, fault.message());
    return {};
}

Status AtomicWriter::commit(bool durable) {
    std::error_code fault;
    if (durable) handle_.sync(fault);
    if (!fault) handle_.close(fault);
    if (!fault) os::replace_file(partial_, path_, fault);
    if (fault) return error("cannot write {}: {}", path_, fault.message());
    forget(std::exchange(partial_, nullptr));
    return {};
}

}  // namespace redline
