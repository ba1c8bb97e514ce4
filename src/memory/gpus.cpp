#include "memory/gpus.h"

#include "base/system_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

namespace redline {

namespace fs = std::filesystem;

static constexpr uint32_t kAmd = 0x1002;
static constexpr uint64_t kPage = 4096;

bool is_apu_target(const std::string& target) {
    static const char* const kApus[] = {"gfx902",  "gfx909",  "gfx90c",  "gfx1013", "gfx1033",
                                        "gfx1035", "gfx1036", "gfx1037", "gfx1103", "gfx1150",
                                        "gfx1151", "gfx1152", "gfx1153"};
    return std::find(std::begin(kApus), std::end(kApus), target) != std::end(kApus);
}

bool KernelGpu::integrated() const {
    if (!target.empty()) return is_apu_target(target);
    // The ids of common APUs, for systems without the compute driver.
    static constexpr uint32_t kApus[] = {0x15d8, 0x15dd, 0x1636, 0x1638, 0x164c, 0x15e7, 0x163f,
                                         0x1435, 0x1681, 0x164d, 0x164e, 0x15bf, 0x15c8, 0x1900,
                                         0x1901, 0x150e, 0x1586, 0x1114, 0x13c0};
    return vendor == kAmd && std::find(std::begin(kApus), std::end(kApus), device) != std::end(kApus);
}

std::string target_name(uint64_t version) {
    return version == 0 ? ""
                        : fmt::format("gfx{}{:x}{:x}", version / 10000, version / 100 % 100, version % 100);
}

// The targets of the compute driver's GPUs, by PCI address.
static std::vector<std::pair<std::string, std::string>> compute_targets(const std::string& root) {
    std::vector<std::pair<std::string, std::string>> targets;
    for (const std::string& node : folder_names(root + "/sys/class/kfd/kfd/topology/nodes")) {
        const std::string path = root + "/sys/class/kfd/kfd/topology/nodes/" + node + "/properties";
        const uint64_t version = number_behind(path, "gfx_target_version").value_or(0);
        if (version == 0) continue;  // a CPU
        const uint64_t domain = number_behind(path, "domain").value_or(0);
        const uint64_t place = number_behind(path, "location_id").value_or(0);
        targets.emplace_back(
            fmt::format("{:04x}:{:02x}:{:02x}.{:x}", domain, place >> 8 & 0xff, place >> 3 & 0x1f, place & 7),
            target_name(version));
    }
    return targets;
}

static uint32_t id_in(const std::string& path) {
    return uint32_t(std::strtoul(text_of(path).c_str(), nullptr, 16));
}

static std::string render_node(const std::string& device) {
    for (const std::string& name : folder_names(device + "/drm"))
        if (name.starts_with("renderD")) return name;
    return "";
}

std::vector<KernelGpu> kernel_gpus(const std::string& root) {
    const auto targets = compute_targets(root);
    std::vector<KernelGpu> gpus;
    for (const std::string& card : folder_names(root + "/sys/class/drm")) {
        // "card0-DP-1" is a connector of a screen.
        if (!card.starts_with("card") || card.find('-') != std::string::npos) continue;
        const std::string device = root + "/sys/class/drm/" + card + "/device";
        KernelGpu gpu;
        gpu.card = card;
        gpu.pci = value_behind(device + "/uevent", "PCI_SLOT_NAME=");
        gpu.driver = value_behind(device + "/uevent", "DRIVER=");
        gpu.vendor = id_in(device + "/vendor");
        gpu.device = id_in(device + "/device");
        gpu.revision = id_in(device + "/revision");
        if (gpu.pci.empty() || gpu.vendor == 0) continue;
        gpu.render = render_node(device);
        for (const auto& [pci, target] : targets)
            if (pci == gpu.pci) gpu.target = target;
        gpu.vram_total = number_of(device + "/mem_info_vram_total");
        gpu.vram_used = number_of(device + "/mem_info_vram_used");
        gpu.visible = number_of(device + "/mem_info_vis_vram_total");
        gpu.gtt_total = number_of(device + "/mem_info_gtt_total");
        gpu.gtt_used = number_of(device + "/mem_info_gtt_used");
        gpus.push_back(std::move(gpu));
    }
    std::sort(gpus.begin(), gpus.end(), [](const KernelGpu& a, const KernelGpu& b) { return a.pci < b.pci; });
    return gpus;
}

const KernelGpu* find_gpu(const std::vector<KernelGpu>& gpus, const std::string& pci) {
    const auto same = [](char a, char b) { return std::tolower(uint8_t(a)) == std::tolower(uint8_t(b)); };
    for (const KernelGpu& gpu : gpus)
        if (!pci.empty() && std::equal(gpu.pci.begin(), gpu.pci.end(), pci.begin(), pci.end(), same))
            return &gpu;
    return nullptr;
}

std::optional<uint64_t> ttm_limit(const std::string& root) {
    const std::optional<uint64_t> pages = number_of(root + "/sys/module/ttm/parameters/pages_limit");
    if (!pages || *pages == 0) return {};
    return *pages > UINT64_MAX / kPage ? UINT64_MAX : *pages * kPage;
}

}  // namespace redline
