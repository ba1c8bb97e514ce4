// The most that devices of a class can do. A rate beyond it was not measured: a driver that computes nothing
// is done at once, and so is a clock that stands still.
#pragma once

#include "plan/backend.h"

namespace redline {

struct RateLimits {
    std::string_view of;  // "a graphics card"
    double bytes_per_second, upload_bytes_per_second, operations_per_second;
};
RateLimits rate_limits(const DeviceInfo& device);

}  // namespace redline
