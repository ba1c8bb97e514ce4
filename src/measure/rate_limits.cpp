#include "measure/rate_limits.h"

namespace redline {

namespace {

// The fastest upload of weights is over NVLink-C2C: 450 GB/s each way (GH200 data sheet, 2023).
constexpr double kMostUpload = 1e12;

// Two sockets of Xeon Max have 3.3 TB/s of HBM2e (Intel's data sheet, 2023), but two of EPYC 9684X hold all
// timed data in their caches. 256 cores of Xeon 6 reach some 2e15 operations in tiles of int8.
constexpr RateLimits kProcessor{"a CPU", 1e13, kMostUpload, 5e15};

// The widest LPDDR5X beside one chip has 0.82 TB/s (M3 Ultra, 2025), Strix Halo 0.26 TB/s.
constexpr RateLimits kIntegrated{"an integrated GPU", 1e12, kMostUpload, 2e15};

// MI355X and B200 have 8 TB/s of HBM3E, and 1e16 operations in 4 bits (data sheets of 2025).
constexpr RateLimits kCard{"a graphics card", 1e13, kMostUpload, 2e16};

}  // namespace

RateLimits rate_limits(const DeviceInfo& device) {
    if (device.threads > 0 || device.on_cpu) return kProcessor;
    // MI300A shares its memory with the host, and has 5.3 TB/s of HBM3.
    const bool has_hbm = device.detail.find("gfx942") != std::string::npos;
    return device.unified && !has_hbm ? kIntegrated : kCard;
}

}  // namespace redline
