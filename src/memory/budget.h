// How much memory may be planned with, from several sources since none of them is right everywhere.
#pragma once

#include "memory/gpus.h"

namespace redline {

struct HostMemory {
    uint64_t total = 0;
    uint64_t available = 0;    // what the kernel says can be had without swapping
    uint64_t group_limit = 0;  // what the control groups still allow; UINT64_MAX when unlimited
};

// `root` stands before /proc and /sys, for tests.
HostMemory host_memory(const std::string& root = "");

// One opinion of how many bytes can be planned with.
struct MemorySource {
    std::string name;
    uint64_t bytes = 0;
};
// The least of what all sources say that apply to a device.
struct MemoryBudget {
    uint64_t bytes = 0;
    std::vector<MemorySource> sources;

    // The source that says least; null: none does.
    const MemorySource* limit() const;
    // "24.0 GiB (free video memory)".
    std::string text() const;
};
// So many as someone asked for, whatever there is.
MemoryBudget asked_budget(uint64_t bytes);
MemoryBudget host_budget(const HostMemory& host);
// `offered` is what the driver's interface says is free. `gpu` is the kernel's view of the device, null where
// it has none; `lent` is ttm_limit(). Of a device that shares the host's memory (`unified`), what the
// firmware has set apart for it and what it may borrow from the host are added, since they are different
// memory; sources that bound the borrowed part count with the part set apart on top.
MemoryBudget gpu_budget(const MemorySource& offered, bool unified, const KernelGpu* gpu,
                        std::optional<uint64_t> lent, const HostMemory& host);
// The most memory that this process has had resident so far, in bytes.
uint64_t peak_resident();
// "3.82 GiB", "512.0 MiB".
std::string format_bytes(uint64_t bytes);

}  // namespace redline
