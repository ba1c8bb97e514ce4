#include "memory.h"

#include "memory/budget.h"

#include <algorithm>

namespace redline::hip {

Buffer::Buffer(Buffer&& other) noexcept {
    *this = std::move(other);
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(host_, other.host_);
    return *this;
}

Buffer::~Buffer() {
    if (!data_) return;
    const Functions& call = memory_->device_.call();
    if (host_)
        call.release_host(data_);
    else
        call.release(data_);
    memory_->allocated_ -= size_;
}

Error Memory::no_room(uint64_t bytes, std::string_view what, Code code) {
    size_t free = 0, total = 0;
    device_.call().memory_info(&free, &total);
    return error("cannot allocate {} for {} on {}: {}; {} of {} are free and {} are in use here",
                 format_bytes(bytes), what, device_.report().name, device_.call().error_name(code),
                 format_bytes(free), format_bytes(total), format_bytes(allocated()));
}

Result<Buffer> Memory::allocate(uint64_t bytes, Use use, std::string_view what) {
    constexpr unsigned kPortable = 1, kMapped = 2, kAttachGlobal = 1;
    const Functions& call = device_.call();
    Buffer buffer;
    const uint64_t size = std::max<uint64_t>(bytes, 16);
    if (counts_only_) {
        buffer.size_ = size;
        allocated_ += size;
        return buffer;
    }
    void* data = nullptr;
    buffer.host_ = use == Use::pinned;
    Code code = buffer.host_ ? call.allocate_host(&data, size, kPortable) : call.allocate(&data, size);
    const bool may_spill = device_.report().integrated && (use == Use::weights || use == Use::cache);
    if (code == kOutOfMemory && may_spill) {
        call.last_error();
        code = call.allocate_host(&data, size, kPortable | kMapped);
        buffer.host_ = code == kSuccess;
        if (code == kOutOfMemory) {
            call.last_error();
            code = call.allocate_managed(&data, size, kAttachGlobal);
        }
    }
    if (code == kOutOfMemory) {
        call.last_error();  // or later calls report it
        return no_room(bytes, what, code);
    }
    RL_TRY(device_.checked(code, fmt::format("allocating {} for {}", format_bytes(bytes), what)));
    buffer.memory_ = this;
    buffer.data_ = static_cast<std::byte*>(data);
    buffer.size_ = size;
    allocated_ += size;
    return buffer;
}

}  // namespace redline::hip
