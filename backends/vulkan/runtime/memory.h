// Device memory through the Vulkan Memory Allocator: buffers by what they are for. The driver's budget is
// asked before each allocation, and memory types are tried in order of preference, so that weights spill over
// heaps.
#pragma once

#include "device.h"
#include "plan/guard.h"

#include <map>

struct VmaAllocator_T;
struct VmaAllocation_T;

namespace redline::vulkan {

// upload and readback are the host's; weights are written by the host where it shares the device's memory,
// and steps (their inputs, which kernels read again and again) where it sees any of the device's memory.
enum class Use : uint8_t { weights, cache, scratch, step, upload, readback };

class Memory;

class Buffer {
public:
    Buffer() = default;
    Buffer(Buffer&& other) noexcept;
    Buffer& operator=(Buffer&& other) noexcept;
    ~Buffer();

    VkBuffer handle() const { return handle_; }
    uint64_t size() const { return size_; }
    uint64_t guard() const;  // bytes behind it
    // Null when the host cannot see it.
    std::byte* mapped() const { return mapped_; }
    // After the host wrote, before it reads.
    Status flush() const;
    Status invalidate() const;

private:
    friend class Memory;
    Memory* memory_ = nullptr;
    VkBuffer handle_ = VK_NULL_HANDLE;
    VmaAllocation_T* allocation_ = nullptr;
    uint64_t size_ = 0;
    std::byte* mapped_ = nullptr;
};

class Memory {
public:
    // `guarded`, for tests: see plan/guard.h.
    static Result<std::unique_ptr<Memory>> create(Device& device, bool guarded);
    // One that takes nothing from the device: it counts what buffers would take there.
    static std::unique_ptr<Memory> counting(const Memory& like);
    ~Memory();
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    // `what` is for the message: "tensor blk.0.ffn_up.weight".
    Result<Buffer> allocate(uint64_t bytes, Use use, std::string_view what);
    bool guarded() const { return guarded_; }
    // Of guarded memory: an error where what is behind a buffer was written, or one of its gaps. There is no
    // guard before a buffer: what shaders count from its begin is never negative.
    Status check_guards() const;
    Status set_gaps(const Buffer& buffer, std::vector<ByteRange> gaps);
    bool unified() const { return device_.report().integrated() && !always_stage; }
    // Whether a buffer for Use::step is mapped, as far as there is room where the host sees the device's
    // memory.
    bool maps_steps() const;
    bool counts_only() const { return !allocator_; }
    // Bytes in buffers now.
    uint64_t allocated() const;

    // For tests: the allocation after this many more fails, once (negative: none).
    std::atomic<int64_t> fail_after{-1};
    bool always_stage = false;  // as on a device with memory of its own that the host does not see

private:
    friend class Buffer;
    // A buffer as the host sees it, with its guard.
    struct Guarded {
        VmaAllocation_T* allocation;
        std::byte* data;
        uint64_t size;
        std::string what;
        std::vector<ByteRange> gaps;
    };
    explicit Memory(Device& device, bool guarded = false) : device_(device), guarded_(guarded) {}
    Result<Buffer> count(const VkBufferCreateInfo& create);
    Error no_room(uint64_t bytes, std::string_view what, VkResult result) const;
    uint32_t types_with_room(uint64_t bytes);

    Device& device_;
    const bool guarded_;
    VmaAllocator_T* allocator_ = nullptr;
    uint64_t counted_ = 0;
    mutable std::mutex guards_mutex_;
    std::map<VkBuffer, Guarded> guards_;
    std::atomic<uint32_t> asked_{0};  // how often the driver was asked for its budget
};

}  // namespace redline::vulkan
