// Device memory by what it is for. On an APU, where the device's share may be small, weights and the cache
// fall back on host memory that the GPU maps, then on managed memory.
#pragma once

#include "device.h"

#include <atomic>
#include <cstddef>

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
    // `counts_only`: it takes nothing from the device and counts what buffers would take.
    explicit Memory(Device& device, bool counts_only = false) : device_(device), counts_only_(counts_only) {}

    // `what` is for the message: "tensor blk.0.ffn_up.weight".
    Result<Buffer> allocate(uint64_t bytes, Use use, std::string_view what);
    // Bytes in buffers now.
    uint64_t allocated() const { return allocated_.load(); }
    bool counts_only() const { return counts_only_; }

private:
    friend class Buffer;
    Error no_room(uint64_t bytes, std::string_view what, Code code);

    Device& device_;
    const bool counts_only_;
    std::atomic<uint64_t> allocated_{0};
};

}  // namespace redline::hip
