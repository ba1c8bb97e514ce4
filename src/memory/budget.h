// How much memory may be planned with, from several sources since none of them is right everywhere.
#pragma once

#include <cstdint>
#include <string>

namespace redline {

struct HostMemory {
    uint64_t total = 0;
    uint64_t available = 0;    // what the kernel says can be had without swapping
    uint64_t group_limit = 0;  // what the control groups still allow; UINT64_MAX when unlimited
    uint64_t budget() const;   // the least of them, with a reserve left to the system
};

HostMemory host_memory();
// The most memory that this process has had resident so far, in bytes.
uint64_t peak_resident();
// "3.82 GiB", "512.0 MiB".
std::string format_bytes(uint64_t bytes);

}  // namespace redline
