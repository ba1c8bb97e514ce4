// The memory that may be planned with, from several sources, since none of them is right everywhere.
#pragma once

#include "memory/gpus.h"

namespace redline {

struct HostMemory {
    uint64_t total = 0;
    uint64_t available = 0;    // the kernel's estimate of memory available without swapping
    uint64_t group_limit = 0;  // the rest that control groups allow; UINT64_MAX when unlimited
};

// `root` is put before /proc and /sys, for tests.
HostMemory host_memory(const std::string& root = "");

// One source's number of bytes that can be planned with.
struct MemorySource {
    std::string name;
    uint64_t bytes = 0;
};
// The minimum of all sources that apply to a device.
struct MemoryBudget {
    uint64_t bytes = 0;
    std::vector<MemorySource> sources;

    // The source with the minimum; null: there is none.
    const MemorySource* limit() const;
    // "24.0 GiB (free video memory)".
    std::string text() const;
};
// A budget that the user asked for, whatever is available.
MemoryBudget asked_budget(uint64_t bytes);
MemoryBudget host_budget(const HostMemory& host);
// `offered` is the free memory by the driver's interface. `gpu` is the kernel's view of the device, null
// where it has none; `lent` is ttm_limit(). For a device that shares the host's memory (`unified`) the memory
// that the firmware has set apart for it and the memory that it may borrow from the host are added, since
// they are different; a source that bounds only the borrowed part has the other added to it.
MemoryBudget gpu_budget(const MemorySource& offered, bool unified, const KernelGpu* gpu,
                        std::optional<uint64_t> lent, const HostMemory& host);
// The most memory that this process has had resident so far, in bytes.
uint64_t peak_resident();
// "3.82 GiB", "512.0 MiB".
std::string format_bytes(uint64_t bytes);

}  // namespace redline
