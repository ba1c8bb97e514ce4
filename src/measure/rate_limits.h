// Upper limits of what a class of devices can reach. A higher rate is a measurement error: a driver that
// computes nothing returns at once, and so does a clock that stands still.
#pragma once

#include "plan/backend.h"

namespace redline {

struct RateLimits {
    std::string_view of;  // "a graphics card"
    double bytes_per_second, upload_bytes_per_second, operations_per_second;
};
RateLimits rate_limits(const DeviceInfo& device);

}  // namespace redline
