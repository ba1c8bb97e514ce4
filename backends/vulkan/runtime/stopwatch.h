// Times work on the device by its own clock, or by the host's where it has none.
#pragma once

#include "device.h"

#include <span>

namespace redline::vulkan {

class Stopwatch {
public:
    static Result<std::unique_ptr<Stopwatch>> create(Device& device);
    ~Stopwatch();
    Stopwatch(const Stopwatch&) = delete;
    Stopwatch& operator=(const Stopwatch&) = delete;

    // Runs the buffers one after the other, waits, and gives the seconds that they took.
    Result<double> run(std::span<const VkCommandBuffer> buffers);

private:
    explicit Stopwatch(Device& device) : device_(device) {}

    Device& device_;
    VkQueryPool queries_ = VK_NULL_HANDLE;  // null: the device has no clock
    VkCommandBuffer marks_[2] = {};         // before and after
    VkFence fence_ = VK_NULL_HANDLE;
};

}  // namespace redline::vulkan
