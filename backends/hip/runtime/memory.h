// Device memory by what it is for. On an APU, where the device's share may be small, weights and the cache
// fall back on host memory that the GPU maps, then on managed memory.
#pragma once

#include "device.h"

#include "plan/guard.h"

#include <atomic>

namespace redline::hip {

// `pinned` is the host's, for copies.
enum class Use : uint8_t { weights, cache, scratch, pinned };

class Memory;

class Buffer {
public:
    Buffer() = default;
    Buffer(Buffer&& other) noexcept;
    Buffer& operator=(Buffer&& other) noexcept;
    ~Buffer();

    std::byte* data() const { return data_; }
    uint64_t size() const { return size_; }

private:
    friend class Memory;
    Memory* memory_ = nullptr;
    std::byte* data_ = nullptr;
    uint64_t size_ = 0;
    bool host_ = false;
};

class Memory {
public:
    // guarded, for tests: see plan/guard.h.
    enum class Mode : uint8_t { plain, guarded, counting };
    explicit Memory(Device& device, Mode mode = Mode::plain) : device_(device), mode_(mode) {}
    // One that takes nothing from the device: it counts what buffers would take there.
    static std::unique_ptr<Memory> counting(const Memory& like) {
        return std::make_unique<Memory>(like.device_, Mode::counting);
    }

    // `what` is for the message: "tensor blk.0.ffn_up.weight".
    Result<Buffer> allocate(uint64_t bytes, Use use, std::string_view what);
    bool guarded() const { return mode_ == Mode::guarded; }
    // An error where what is before or behind a buffer was written, or one of its gaps.
    Status check_guards();
    Status set_gaps(const Buffer& buffer, std::vector<ByteRange> gaps);
    // Bytes in buffers now.
    uint64_t allocated() const { return allocated_.load(); }
    bool counts_only() const { return mode_ == Mode::counting; }

private:
    friend class Buffer;
    struct Guarded {
        uint64_t size;
        bool host;
        std::string what;
        std::vector<ByteRange> gaps;
    };
    Error no_room(uint64_t bytes, std::string_view what, Code code);
    Status guard(Buffer& buffer, std::string_view what);
    // Sets bytes of a buffer, which may lie before or behind its content.
    Status fill(const std::byte* at, bool host, uint64_t bytes, std::byte value);

    Device& device_;
    const Mode mode_;
    std::mutex guards_mutex_;
    std::map<const std::byte*, Guarded> guards_;  // by where the buffer begins
    std::atomic<uint64_t> allocated_{0};
};

}  // namespace redline::hip
