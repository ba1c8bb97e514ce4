// Trees of kernel files of machines that people run models on. Sizes and ids are public figures; the trees
// were written by hand after the kernel's documentation, not recorded.
#pragma once

#include "support/tree.h"

#include <fmt/format.h>

#include <cstdint>

namespace redline::test {

constexpr uint64_t kMiB = uint64_t(1) << 20, kGiB = uint64_t(1) << 30;

struct GpuFiles {
    std::string card = "card0", render = "renderD128", pci = "0000:c3:00.0", driver = "amdgpu";
    std::string vendor = "0x1002", device, revision = "0xc1";
    uint64_t target = 0;  // as gfx_target_version; 0: the compute driver does not know it
    uint64_t vram = 0, vram_used = 0, visible = 0, gtt = 0, gtt_used = 0;
};

inline void add_gpu(Files& files, const GpuFiles& gpu) {
    const std::string device = "/sys/class/drm/" + gpu.card + "/device";
    files[device + "/vendor"] = gpu.vendor + "\n";
    files[device + "/device"] = gpu.device + "\n";
    files[device + "/revision"] = gpu.revision + "\n";
    files[device + "/uevent"] =
        fmt::format("DRIVER={}\nPCI_CLASS=30000\nPCI_SLOT_NAME={}\n", gpu.driver, gpu.pci);
    if (!gpu.render.empty()) files[device + "/drm/" + gpu.render + "/dev"] = "226:128\n";
    if (gpu.driver == "amdgpu") {
        files[device + "/mem_info_vram_total"] = fmt::format("{}\n", gpu.vram);
        files[device + "/mem_info_vram_used"] = fmt::format("{}\n", gpu.vram_used);
        files[device + "/mem_info_vis_vram_total"] =
            fmt::format("{}\n", gpu.visible ? gpu.visible : gpu.vram);
        files[device + "/mem_info_gtt_total"] = fmt::format("{}\n", gpu.gtt);
        files[device + "/mem_info_gtt_used"] = fmt::format("{}\n", gpu.gtt_used);
    }
    if (gpu.target == 0) return;
    const uint64_t bus = std::stoul(gpu.pci.substr(5, 2), nullptr, 16);
    const std::string nodes = "/sys/class/kfd/kfd/topology/nodes/";
    files[nodes + "0/properties"] = "cpu_cores_count 16\nsimd_count 0\ngfx_target_version 0\n";
    files[nodes + "1/properties"] =
        fmt::format("cpu_cores_count 0\nsimd_count 80\ngfx_target_version {}\nlocation_id {}\ndomain 0\n",
                    gpu.target, bus << 8);
}

// `total` is what is left of the memory beside what the firmware sets apart.
inline Files host_files(uint64_t total, uint64_t available, uint64_t ttm_limit = 0) {
    Files files = {
        {"/proc/meminfo", fmt::format("MemTotal:       {} kB\nMemFree:        1000 kB\nMemAvailable:   {} "
                                      "kB\nSwapTotal:      0 kB\nSwapFree:       0 kB\n",
                                      total / 1024, available / 1024)},
        {"/proc/self/cgroup", "0::/\n"}};
    if (ttm_limit > 0)
        files["/sys/module/ttm/parameters/pages_limit"] = fmt::format("{}\n", ttm_limit / 4096);
    return files;
}

inline Files steam_deck(uint64_t set_apart) {
    const uint64_t total = 16 * kGiB - set_apart;
    Files files = host_files(total, total - 3 * kGiB, total / 2);
    add_gpu(files, {.pci = "0000:04:00.0",
                    .device = "0x163f",
                    .revision = "0xae",
                    .vram = set_apart,
                    .vram_used = 300 * kMiB,
                    .gtt = total / 2,
                    .gtt_used = 200 * kMiB});
    return files;
}

inline Files strix_halo(uint64_t set_apart) {
    const uint64_t total = 128 * kGiB - set_apart;
    Files files = host_files(total, total - 4 * kGiB, total / 2);
    add_gpu(files, {.device = "0x1586",
                    .target = 110501,
                    .vram = set_apart,
                    .vram_used = 200 * kMiB,
                    .gtt = total / 2,
                    .gtt_used = 100 * kMiB});
    return files;
}

inline Files rx_7900_xtx() {
    Files files = host_files(64 * kGiB, 50 * kGiB, 32 * kGiB);
    add_gpu(files, {.pci = "0000:03:00.0",
                    .device = "0x744c",
                    .revision = "0xc8",
                    .target = 110000,
                    .vram = 24 * kGiB,
                    .vram_used = 1 * kGiB,
                    .gtt = 32 * kGiB});
    return files;
}

inline Files mi300x() {
    Files files = host_files(2048 * kGiB, 2000 * kGiB, 1024 * kGiB);
    add_gpu(files, {.pci = "0000:05:00.0",
                    .device = "0x74a1",
                    .revision = "0x00",
                    .target = 90402,
                    .vram = 192 * kGiB,
                    .vram_used = 1 * kGiB,
                    .gtt = 1024 * kGiB});
    return files;
}

// A container that may use 8 GiB of the host's memory, without devices.
inline Files container() {
    Files files = host_files(128 * kGiB, 100 * kGiB);
    files["/sys/fs/cgroup/memory.max"] = fmt::format("{}\n", 8 * kGiB);
    files["/sys/fs/cgroup/memory.current"] = fmt::format("{}\n", 3 * kGiB);
    files["/sys/fs/cgroup/memory.stat"] = fmt::format("anon 1\ninactive_file {}\n", 1 * kGiB);
    files["/run/.containerenv"] = "";
    return files;
}

}  // namespace redline::test
