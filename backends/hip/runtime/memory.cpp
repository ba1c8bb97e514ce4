#include "memory.h"

#include "memory/budget.h"

#include <algorithm>
#include <cstring>

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
    std::byte* const begin = memory_->guarded() ? data_ - kGuardBytes : data_;
    if (memory_->guarded()) {
        const std::lock_guard lock(memory_->guards_mutex_);
        memory_->guards_.erase(data_);
    }
    if (host_)
        call.release_host(begin);
    else
        call.release(begin);
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
    const uint64_t content = std::max<uint64_t>(bytes, 16),
                   size = content + (guarded() ? 2 * kGuardBytes : 0);
    if (counts_only()) {
        buffer.size_ = content;
        allocated_ += content;
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
    buffer.data_ = static_cast<std::byte*>(data) + (guarded() ? kGuardBytes : 0);
    buffer.size_ = content;
    allocated_ += content;
    if (guarded()) RL_TRY(guard(buffer, what));
    return buffer;
}

Status Memory::fill(const std::byte* at, bool host, uint64_t bytes, std::byte value) {
    auto* const to = const_cast<std::byte*>(at);
    if (host) {
        std::memset(to, int(value), bytes);
        return {};
    }
    const std::vector<std::byte> content(bytes, value);
    RL_TRY(device_.checked(device_.call().copy_in(to, content.data(), bytes, device_.stream()),
                           "writing guards"));
    return device_.synchronize("writing guards");
}

Status Memory::guard(Buffer& buffer, std::string_view what) {
    RL_TRY(fill(buffer.data_ - kGuardBytes, buffer.host_, buffer.size_ + 2 * kGuardBytes, kGuard));
    RL_TRY(fill(buffer.data_, buffer.host_, buffer.size_, kPoison));
    const std::lock_guard lock(guards_mutex_);
    guards_[buffer.data_] = {buffer.size_, buffer.host_, std::string(what), {}};
    return {};
}

Status Memory::set_gaps(const Buffer& buffer, std::vector<ByteRange> gaps) {
    const std::lock_guard lock(guards_mutex_);
    for (const ByteRange& gap : gaps)
        RL_TRY(fill(buffer.data_ + gap.begin, buffer.host_, gap.end - gap.begin, kGuard));
    guards_.at(buffer.data_).gaps = std::move(gaps);
    return {};
}

Status Memory::check_guards() {
    const std::lock_guard lock(guards_mutex_);
    std::vector<std::byte> mirror;
    for (const auto& [data, buffer] : guards_) {
        const auto check = [&](int64_t begin, uint64_t bytes) -> Status {
            if (buffer.host) return check_guard({data + begin, bytes}, begin, buffer.what, buffer.size);
            mirror.resize(bytes);
            RL_TRY(
                device_.checked(device_.call().copy_out(mirror.data(), data + begin, bytes, device_.stream()),
                                "reading guards"));
            RL_TRY(device_.synchronize("reading guards"));
            return check_guard(mirror, begin, buffer.what, buffer.size);
        };
        RL_TRY(check(-int64_t(kGuardBytes), kGuardBytes));
        RL_TRY(check(int64_t(buffer.size), kGuardBytes));
        for (const ByteRange& gap : buffer.gaps) RL_TRY(check(int64_t(gap.begin), gap.end - gap.begin));
    }
    return {};
}

}  // namespace redline::hip
