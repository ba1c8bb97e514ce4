// Keeps the device busy while it waits for the CPU, where that helps.
#pragma once

#include "backends/shared/keep_awake.h"
#include "recorder.h"

#include <optional>

namespace redline::vulkan {

class KeepBusy {
public:
    KeepBusy(Device& device, Memory& memory, Pipelines& pipelines)
        : device_(device), memory_(memory), pipelines_(pipelines) {}
    ~KeepBusy();
    KeepBusy(const KeepBusy&) = delete;
    KeepBusy& operator=(const KeepBusy&) = delete;

    // Whether shaders of the device read a clock.
    static bool possible(const DeviceReport& report);
    // One subgroup: pipelines are made to require full ones.
    static PipelineSpec pipeline(const Device& device);
    // Work that does nothing for so long, behind all that was submitted before; only what is submitted next
    // waits for it.
    Status submit(double seconds);

    KeepAwake when;

private:
    Status make();

    Device& device_;
    Memory& memory_;
    Pipelines& pipelines_;
    Buffer ticks_;
    std::optional<Recording> recording_;
};

}  // namespace redline::vulkan
