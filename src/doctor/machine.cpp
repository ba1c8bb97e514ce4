#include "doctor/machine.h"

#include "base/os/system.h"
#include "base/system_files.h"
#include "doctor/vulkan_drivers.h"

#include <algorithm>
#include <filesystem>

namespace redline {

const std::vector<std::string> kDoctorVariables = {
    "HSA_OVERRIDE_GFX_VERSION", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL",
    "VK_DRIVER_FILES",          "VK_ICD_FILENAMES",    "VK_ADD_DRIVER_FILES",  "VK_LOADER_DRIVERS_DISABLE",
    "AMD_VULKAN_ICD",           "RADV_DEBUG",          "RADV_PERFTEST",        "MESA_VK_DEVICE_SELECT"};

static std::string without_quotes(std::string text) {
    text.erase(std::remove(text.begin(), text.end(), '"'), text.end());
    return text;
}

static DeviceNode node_at(const std::string& root, const std::string& path) {
    const std::string real = root + path;
    return {path, os::exists(real), os::can_read_and_write(real)};
}

// Reads lines like "1: 2482Mhz *": the clock with the star is the current one, the last one the highest.
static void read_clocks(const std::string& path, GpuState& state) {
    std::string_view text;
    const std::string all = text_of(path);
    for (text = all; !text.empty();) {
        const size_t end = std::min(text.find('\n'), text.size());
        const std::string line(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
        const size_t colon = line.find(':');
        if (colon == std::string::npos) continue;
        const uint64_t mhz = std::strtoull(line.c_str() + colon + 1, nullptr, 10);
        if (mhz == 0) continue;
        state.top_clock_mhz = std::max(mhz, state.top_clock_mhz.value_or(0));
        if (line.find('*') != std::string::npos) state.clock_mhz = mhz;
    }
}

static GpuState state_of(const std::string& root, const KernelGpu& gpu) {
    const std::string device = root + "/sys/class/drm/" + gpu.card + "/device";
    GpuState state;
    state.card = gpu.card;
    state.level = text_of(device + "/power_dpm_force_performance_level");
    state.busy_percent = number_of(device + "/gpu_busy_percent");
    read_clocks(device + "/pp_dpm_sclk", state);
    constexpr std::string_view kEnd = "_fw_version";
    for (const std::string& name : folder_names(device + "/fw_version"))
        if (name.ends_with(kEnd))
            state.firmware[name.substr(0, name.size() - kEnd.size())] =
                std::strtoull(text_of(device + "/fw_version/" + name).c_str(), nullptr, 16);
    return state;
}

// Reads the percentage of a line like "some avg10=99.52 avg60=...".
static std::optional<uint64_t> percent_of_waits(const std::string& path) {
    constexpr std::string_view kKey = "some avg10=";
    const std::string text = text_of(path);
    if (!text.starts_with(kKey)) return {};
    return std::strtoull(text.c_str() + kKey.size(), nullptr, 10);
}

Machine read_machine(const std::string& root) {
    Machine m;
    m.kernel = text_of(root + "/proc/sys/kernel/osrelease");
    if (m.kernel.empty() && root.empty()) m.kernel = os::kernel_release();
    m.system = without_quotes(value_behind(root + "/etc/os-release", "PRETTY_NAME="));
    m.rocm = text_of(root + "/opt/rocm/.info/version");
    m.container = os::exists(root + "/.dockerenv") || os::exists(root + "/run/.containerenv");
    m.root = os::is_administrator();
    m.groups = os::user_groups();
    m.memory = host_memory(root);
    m.swap_total = number_behind(root + "/proc/meminfo", "SwapTotal:").value_or(0) * 1024;
    const uint64_t swap_free = number_behind(root + "/proc/meminfo", "SwapFree:").value_or(0) * 1024;
    m.swap_used = m.swap_total - std::min(m.swap_total, swap_free);
    m.waits_for_core = percent_of_waits(root + "/proc/pressure/cpu");
    m.waits_for_memory = percent_of_waits(root + "/proc/pressure/memory");
    m.gpus = kernel_gpus(root);
    m.ttm_limit = ttm_limit(root);
    m.nodes.push_back(node_at(root, "/dev/kfd"));
    for (const KernelGpu& gpu : m.gpus) {
        m.states.push_back(state_of(root, gpu));
        if (!gpu.render.empty()) m.nodes.push_back(node_at(root, "/dev/dri/" + gpu.render));
    }
    m.lockup_timeout = text_of(root + "/sys/module/amdgpu/parameters/lockup_timeout");
    for (const std::string& path : vulkan_driver_files(root))
        m.vulkan_drivers.push_back(std::filesystem::path(path).filename());
    m.broken_drivers = broken_vulkan_drivers({}, root);
    return m;
}

}  // namespace redline
