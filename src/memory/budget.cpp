#include "memory/budget.h"

#include "base/control_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include <sys/resource.h>

namespace redline {

// Left to the system and to the rest of this program.
static constexpr uint64_t kReserve = uint64_t(256) << 20;
static constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

uint64_t HostMemory::budget() const {
    const uint64_t least = std::min(available, group_limit);
    return least > kReserve ? least - kReserve : 0;
}

static uint64_t meminfo(std::string_view field) {
    std::ifstream in("/proc/meminfo");
    std::string name;
    uint64_t kib = 0;
    std::string rest;
    while (in >> name >> kib && std::getline(in, rest))
        if (name == field) return kib * 1024;
    return 0;
}

static uint64_t number_in(const std::string& path, uint64_t otherwise) {
    std::ifstream in(path);
    uint64_t value = 0;
    return in >> value ? value : otherwise;  // "max" does not parse
}

// What the control groups of this process leave; page cache that they can drop counts as free.
static uint64_t group_free() {
    uint64_t least = kUnlimited;
    for (const std::string& folder : group_folders("memory")) {
        const bool v1 = std::ifstream(folder + "/memory.limit_in_bytes").good();
        const uint64_t limit =
            number_in(folder + (v1 ? "/memory.limit_in_bytes" : "/memory.max"), kUnlimited);
        const uint64_t used = number_in(folder + (v1 ? "/memory.usage_in_bytes" : "/memory.current"), 0);
        if (limit > (uint64_t(1) << 60)) continue;
        uint64_t cached = 0;
        std::ifstream stat(folder + "/memory.stat");
        std::string name;
        for (uint64_t value = 0; stat >> name >> value;)
            if (name == (v1 ? "total_inactive_file" : "inactive_file")) cached = value;
        least = std::min(least, limit > used ? limit - used + std::min(cached, used) : cached);
    }
    return least;
}

HostMemory host_memory() {
    return {meminfo("MemTotal:"), meminfo("MemAvailable:"), group_free()};
}

uint64_t peak_resident() {
    struct rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    return uint64_t(usage.ru_maxrss) * 1024;
}

std::string format_bytes(uint64_t bytes) {
    if (bytes >= uint64_t(1) << 30) return fmt::format("{:.2f} GiB", double(bytes) / double(1u << 30));
    if (bytes >= uint64_t(1) << 20) return fmt::format("{:.1f} MiB", double(bytes) / double(1u << 20));
    return fmt::format("{} KiB", (bytes + 1023) / 1024);
}

}  // namespace redline
