#include "memory/budget.h"

#include "base/control_group.h"
#include "base/os/memory.h"
#include "base/system_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace redline {

// Memory left to the system and to the rest of this program.
static constexpr uint64_t kReserve = uint64_t(256) << 20;
static constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

// The memory that this process's control groups still allow; page cache that they can drop counts as free.
static uint64_t group_free(const std::string& root) {
    uint64_t least = kUnlimited;
    for (const std::string& folder : group_folders("memory", root)) {
        const bool v1 = number_of(folder + "/memory.limit_in_bytes").has_value();
        const uint64_t limit =
            number_of(folder + (v1 ? "/memory.limit_in_bytes" : "/memory.max")).value_or(kUnlimited);
        const uint64_t used =
            number_of(folder + (v1 ? "/memory.usage_in_bytes" : "/memory.current")).value_or(0);
        if (limit > (uint64_t(1) << 60)) continue;
        const uint64_t cached =
            number_behind(folder + "/memory.stat", v1 ? "total_inactive_file " : "inactive_file ")
                .value_or(0);
        least = std::min(least, limit > used ? limit - used + std::min(cached, used) : cached);
    }
    return least;
}

HostMemory host_memory(const std::string& root) {
    const auto field = [&](std::string_view name) {
        return number_behind(root + "/proc/meminfo", name).value_or(0) * 1024;
    };
    return {field("MemTotal:"), field("MemAvailable:"), group_free(root)};
}

static uint64_t less(uint64_t bytes, uint64_t taken) {
    return bytes > taken ? bytes - taken : 0;
}

static MemoryBudget least_of(std::vector<MemorySource> sources) {
    MemoryBudget budget{kUnlimited, std::move(sources)};
    for (const MemorySource& source : budget.sources) budget.bytes = std::min(budget.bytes, source.bytes);
    return budget;
}

const MemorySource* MemoryBudget::limit() const {
    for (const MemorySource& source : sources)
        if (source.bytes == bytes) return &source;
    return nullptr;
}

std::string MemoryBudget::text() const {
    return limit() ? fmt::format("{} ({})", format_bytes(bytes), limit()->name) : format_bytes(bytes);
}

MemoryBudget asked_budget(uint64_t bytes) {
    return {bytes, {{"as asked for", bytes}}};
}

MemoryBudget host_budget(const HostMemory& host) {
    std::vector<MemorySource> sources = {{"MemAvailable, less a reserve", less(host.available, kReserve)}};
    if (host.group_limit != kUnlimited)
        sources.push_back({"control group, less a reserve", less(host.group_limit, kReserve)});
    return least_of(std::move(sources));
}

MemoryBudget gpu_budget(const MemorySource& offered, bool unified, const KernelGpu* gpu,
                        std::optional<uint64_t> lent, const HostMemory& host) {
    std::vector<MemorySource> sources = {offered};
    const bool knows_vram = gpu && gpu->vram_total && gpu->vram_used;
    const uint64_t dedicated = knows_vram ? less(*gpu->vram_total, *gpu->vram_used) : 0;
    if (!unified) {
        if (knows_vram) sources.push_back({"free video memory", dedicated});
        return least_of(std::move(sources));
    }
    const std::string plus = dedicated > 0 ? fmt::format("{} set apart + ", format_bytes(dedicated)) : "";
    const auto borrow = [&](std::string_view name, uint64_t bytes) {
        sources.push_back(
            {plus + std::string(name), bytes > kUnlimited - dedicated ? kUnlimited : dedicated + bytes});
    };
    const uint64_t borrowed = gpu ? gpu->gtt_used.value_or(0) : 0;
    if (gpu && gpu->gtt_total) borrow("free GTT", less(*gpu->gtt_total, borrowed));
    if (gpu && lent) borrow("TTM's page limit", less(*lent, borrowed));
    for (const MemorySource& source : host_budget(host).sources) borrow(source.name, source.bytes);
    return least_of(std::move(sources));
}

uint64_t peak_resident() {
    return os::peak_resident();
}

std::string format_bytes(uint64_t bytes) {
    if (bytes >= uint64_t(1) << 30) return fmt::format("{:.2f} GiB", double(bytes) / double(1u << 30));
    if (bytes >= uint64_t(1) << 20) return fmt::format("{:.1f} MiB", double(bytes) / double(1u << 20));
    return fmt::format("{} KiB", (bytes + 1023) / 1024);
}

}  // namespace redline
