// How fast the device reads its memory, measured.
#pragma once

#include "memory.h"
#include "pipelines.h"

namespace redline::vulkan {

// Bytes per second, over at most `most` bytes that are allocated for it.
Result<double> read_bandwidth(Device& device, Memory& memory, Pipelines& pipelines, uint64_t most);

}  // namespace redline::vulkan
