// The GPUs of this machine as its kernel lists them, independent of drivers for programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace redline {

struct KernelGpu {
    std::string card;  // "card0", of /sys/class/drm
    std::string pci;   // "0000:c3:00.0"
    uint32_t vendor = 0, device = 0, revision = 0;
    std::string driver;  // "amdgpu"
    std::string render;  // "renderD128"; empty: none
    std::string target;  // "gfx1151", by the compute driver; empty: it does not list the device
    // Bytes; absent where the driver does not say. `visible`: the video memory that the CPU can address.
    std::optional<uint64_t> vram_total, vram_used, visible, gtt_total, gtt_used;

    // True when its video memory is a part of the host's that the firmware has set apart.
    bool integrated() const;
};

// Sorted by address. `root` is put before /sys, for tests.
std::vector<KernelGpu> kernel_gpus(const std::string& root = "");
// Finds a GPU by its address, in any case of letters; null: not among them.
const KernelGpu* find_gpu(const std::vector<KernelGpu>& gpus, const std::string& pci);

// "gfx90a" of 90010, the compute driver's gfx_target_version.
std::string target_name(uint64_t version);
// True when GPUs of this target share the host's memory.
bool is_apu_target(const std::string& target);

// The most that the kernel's memory manager lends to GPUs, in bytes; absent: no limit is known.
std::optional<uint64_t> ttm_limit(const std::string& root = "");

}  // namespace redline
