#include "doctor/findings.h"

#include "doctor/known.h"
#include "doctor/links.h"

#include <algorithm>
#include <charconv>

namespace redline {

namespace {

using Findings = std::vector<Finding>;

constexpr uint32_t kAmd = 0x1002;
constexpr uint64_t kGiB = uint64_t(1) << 30;

std::string name_of(const KernelGpu& gpu) {
    std::string name = fmt::format("{} ({:04x}:{:04x}", gpu.pci, gpu.vendor, gpu.device);
    for (const KnownGpu& known : kKnownGpus)
        if (gpu.vendor == kAmd && gpu.device == known.device) name += fmt::format(", {}", known.name);
    return name + (gpu.target.empty() ? ")" : fmt::format(", {})", gpu.target));
}

const BackendView* view_of(const Machine& m, std::string_view backend) {
    for (const BackendView& view : m.backends)
        if (view.backend == backend) return &view;
    return nullptr;
}

std::string fact(const DeviceListing& device, std::string_view name) {
    for (const DeviceListing::Fact& fact : device.facts)
        if (fact.name == name)
            if (const auto* text = std::get_if<std::string>(&fact.value)) return *text;
    return "";
}

const DeviceListing* listed_as(const BackendView& view, const KernelGpu& gpu) {
    for (const DeviceListing& device : view.devices)
        if (fact(device, "PCI address") == gpu.pci) return &device;
    return nullptr;
}

const DeviceNode* node_of(const Machine& m, const std::string& path) {
    for (const DeviceNode& node : m.nodes)
        if (node.path == path) return &node;
    return nullptr;
}

bool in_group(const Machine& m, std::string_view name) {
    return std::find(m.groups.begin(), m.groups.end(), name) != m.groups.end();
}

bool amd(const KernelGpu& gpu) {
    return gpu.vendor == kAmd;
}

// (major, minor) of "6.12.9-amd64"; zeros when it does not begin with two numbers.
std::pair<int, int> two_numbers(const std::string& version) {
    int major = 0, minor = 0;
    const char* end = version.data() + version.size();
    const auto first = std::from_chars(version.data(), end, major);
    if (first.ec == std::errc() && first.ptr != end && *first.ptr == '.')
        std::from_chars(first.ptr + 1, end, minor);
    return {major, minor};
}

// ---- the checks ----

Findings gpus_there(const Machine& m) {
    Findings out;
    for (const KernelGpu& gpu : m.gpus) {
        if (!amd(gpu)) {
            out.push_back({Severity::note, "gpu",
                           fmt::format("the kernel knows GPU {}, driver {}", name_of(gpu), gpu.driver), ""});
            continue;
        }
        if (gpu.driver != "amdgpu") {
            out.push_back({Severity::problem, "gpu",
                           fmt::format("GPU {} has the kernel driver {}, not amdgpu", name_of(gpu),
                                       gpu.driver.empty() ? "none" : gpu.driver),
                           "load amdgpu (sudo modprobe amdgpu); if it is missing, install the distribution's "
                           "linux-modules-extra or a newer kernel"});
            continue;
        }
        out.push_back(
            {Severity::good, "gpu",
             fmt::format(
                 "GPU {}: {} of video memory{}", name_of(gpu), format_bytes(gpu.vram_total.value_or(0)),
                 gpu.integrated() ? fmt::format(" set apart, {} GTT", format_bytes(gpu.gtt_total.value_or(0)))
                                  : ""),
             ""});
    }
    const bool reached = std::any_of(m.backends.begin(), m.backends.end(), [](const BackendView& view) {
        return view.backend != "cpu" &&
               std::any_of(view.devices.begin(), view.devices.end(),
                           [](const DeviceListing& device) { return device.preferred; });
    });
    // Some drivers' GPUs are not graphics devices of the kernel.
    if (!m.gpus.empty() || reached) return out;
    if (m.container)
        return {{Severity::note, "gpu",
                 "this container sees no GPU: /dev/dri is not in it, and models run on the CPU",
                 "if the host has one, start the container with --device /dev/dri --device /dev/kfd "
                 "--group-add keep-groups (podman) or "
                 "--group-add "
                 "with the numbers of the host's groups render and video (docker)"}};
    return {{Severity::note, "gpu", "the kernel knows no GPU: models run on the CPU", ""}};
}

Findings permissions(const Machine& m) {
    Findings out;
    for (const DeviceNode& node : m.nodes) {
        if (!node.exists || node.usable) continue;
        std::string groups;
        for (const char* group : {"render", "video"})
            if (!in_group(m, group)) groups += (groups.empty() ? "" : ",") + std::string(group);
        out.push_back(
            {Severity::problem, "permissions",
             fmt::format("{} cannot be opened for reading and writing by this user", node.path),
             groups.empty() ? "the user is in the groups render and video already: log in again, or look "
                              "at the rules in /etc/udev"
             : m.container  ? "give the container the host's group of this file (--group-add)"
                            : fmt::format("sudo usermod -aG {} \"$USER\", then log in again", groups)});
    }
    return out;
}

Findings seen_by_vulkan(const Machine& m) {
    const BackendView* vulkan = view_of(m, "vulkan");
    Findings out;
    if (!vulkan) {
        if (!m.gpus.empty())
            out.push_back({Severity::problem, "vulkan", "this build of redline has no Vulkan",
                           "build it with -DRL_VULKAN=ON, or take the package"});
        return out;
    }
    const auto any_hardware = std::any_of(vulkan->devices.begin(), vulkan->devices.end(),
                                          [](const DeviceListing& d) { return d.preferred; });
    for (const DeviceListing& device : vulkan->devices)
        if (!device.missing.empty())
            out.push_back(
                {Severity::problem, "vulkan",
                 fmt::format("{} ({}) cannot be used: it lacks {}", device.name, device.id, device.missing),
                 "install a newer driver (Mesa 22.3 or later for AMD GPUs)"});
        else if (device.preferred)
            out.push_back(
                {Severity::good, "vulkan",
                 fmt::format("Vulkan sees {} ({}, {})", device.name, device.id, fact(device, "driver")), ""});
    for (const KernelGpu& gpu : m.gpus) {
        if (!amd(gpu) || gpu.driver != "amdgpu" || listed_as(*vulkan, gpu)) continue;
        // Drivers that do not report an address: any GPU may be this one.
        if (any_hardware && m.gpus.size() == 1) continue;
        const DeviceNode* node = node_of(m, "/dev/dri/" + gpu.render);
        const bool radv =
            std::any_of(m.vulkan_drivers.begin(), m.vulkan_drivers.end(), [](const std::string& file) {
                return file.starts_with("radeon_icd") || file.starts_with("amd_icd");
            });
        std::string why = vulkan->error.empty() ? "the loader lists other devices only" : vulkan->error;
        std::string remedy = "run vulkaninfo --summary; its messages name the driver that fails to load";
        if (node && node->exists && !node->usable) {
            why = node->path + " cannot be opened";
            remedy = "see permissions";
        } else if (node && !node->exists) {
            why = node->path + " is not there";
            remedy = m.container ? "start the container with --device /dev/dri"
                                 : "look for amdgpu's messages in dmesg";
        } else if (!radv) {
            why = "no Vulkan driver for AMD is installed";
            remedy = "install mesa-vulkan-drivers (Debian, Ubuntu, Fedora) or vulkan-radeon (Arch)";
        }
        for (const char* variable : {"VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_LOADER_DRIVERS_DISABLE"})
            if (m.environment.count(variable)) {
                why = fmt::format("{} is set to {}", variable, m.environment.at(variable));
                remedy = fmt::format("unset {}", variable);
            }
        out.push_back({Severity::problem, "vulkan",
                       fmt::format("Vulkan does not see GPU {}: {}", name_of(gpu), why), remedy});
    }
    return out;
}

Findings seen_by_hip(const Machine& m) {
    const BackendView* hip = view_of(m, "hip");
    Findings out;
    for (const KernelGpu& gpu : m.gpus) {
        if (!amd(gpu) || gpu.driver != "amdgpu") continue;
        const DeviceListing* device = hip ? listed_as(*hip, gpu) : nullptr;
        if (device && device->missing.empty()) {
            out.push_back(
                {Severity::good, "hip",
                 fmt::format("HIP sees {} ({}, {})", device->name, device->id, fact(*device, "runtime")),
                 ""});
        } else if (device) {
            out.push_back({Severity::warning, "hip",
                           fmt::format("HIP cannot use {}: it lacks {}", device->name, device->missing),
                           "use --device vulkan"});
        } else if (!hip) {
            out.push_back({Severity::note, "hip",
                           "this build of redline has no HIP: AMD GPUs are used through Vulkan",
                           "take the package, or build with -DRL_HIP=ON, to have both"});
        } else {
            const DeviceNode* node = node_of(m, "/dev/kfd");
            const bool closed = node && node->exists && !node->usable;
            const bool absent = !node || !node->exists;
            out.push_back({closed ? Severity::problem : Severity::note, "hip",
                           fmt::format("HIP does not see GPU {}: {}", name_of(gpu),
                                       closed               ? "/dev/kfd cannot be opened"
                                       : absent             ? "/dev/kfd is not there"
                                       : hip->error.empty() ? "its runtime lists other devices only"
                                                            : hip->error),
                           closed ? "see permissions"
                           : absent && m.container
                               ? "start the container with --device /dev/kfd, or use Vulkan"
                               : "Vulkan serves it without ROCm; for HIP install ROCm's runtime "
                                 "(rocm-hip-runtime or libamdhip64)"});
        }
    }
    return out;
}

Findings environment(const Machine& m) {
    Findings out;
    for (const auto& [name, value] : m.environment) {
        if (name == "HSA_OVERRIDE_GFX_VERSION")
            out.push_back({Severity::problem, "environment",
                           fmt::format("HSA_OVERRIDE_GFX_VERSION is {}: ROCm takes the GPU for another one, "
                                       "which gives wrong results or "
                                       "hangs; redline has kernels for the real target",
                                       value),
                           "unset HSA_OVERRIDE_GFX_VERSION"});
        else
            out.push_back({Severity::note, "environment",
                           fmt::format("{} is {}: it changes which devices there are, or how they compute",
                                       name, value),
                           fmt::format("unset {} if that is not meant", name)});
    }
    return out;
}

// Instructions for letting the kernel lend so many bytes to GPUs.
std::string lend(const Machine& m, uint64_t bytes) {
    const uint64_t pages = bytes / 4096;
    std::string text = fmt::format(
        "add ttm.pages_limit={} ttm.page_pool_size={} to the kernel's command line", pages, pages);
    // Since 6.15 the size of GTT follows TTM's limit; before, it has a separate limit.
    if (two_numbers(m.kernel) < std::pair(6, 15)) text += fmt::format(", and amdgpu.gttsize={}", bytes >> 20);
    return text + " (GRUB_CMDLINE_LINUX in /etc/default/grub, then update-grub), and start anew";
}

Findings shared_memory(const Machine& m) {
    Findings out;
    for (const KernelGpu& gpu : m.gpus) {
        if (!amd(gpu) || !gpu.integrated() || !gpu.vram_total || !gpu.gtt_total) continue;
        const uint64_t lent = std::min(*gpu.gtt_total, m.ttm_limit.value_or(*gpu.gtt_total));
        const uint64_t all = m.memory.total + *gpu.vram_total, reach = *gpu.vram_total + lent;
        // Memory reserved for the system and other programs.
        const uint64_t kept = std::max(4 * kGiB, all / 16), best = all > kept ? all - kept : 0;
        const std::string figures = fmt::format(
            "of {} of memory the GPU can use {}: {} set apart by the firmware, {} lent by the kernel",
            format_bytes(all), format_bytes(reach), format_bytes(*gpu.vram_total), format_bytes(lent));
        const bool large_part = *gpu.vram_total > all / 4 && *gpu.vram_total > 2 * kGiB;
        if (reach + all / 16 >= best) {
            out.push_back({Severity::good, "memory", figures, ""});
        } else {
            out.push_back({Severity::warning, "memory", figures, lend(m, best - *gpu.vram_total)});
        }
        if (large_part)
            out.push_back(
                {Severity::note, "memory",
                 fmt::format(
                     "the {} that the firmware has set apart are lost to programs on the CPU, which have {}",
                     format_bytes(*gpu.vram_total), format_bytes(m.memory.total)),
                 fmt::format("to share them, set the smallest UMA frame buffer in the firmware's set-up (512 "
                             "MB), and {}",
                             lend(m, best - 512 * 1024 * 1024))});
    }
    return out;
}

Findings load(const Machine& m) {
    constexpr uint64_t kMuchForCore = 50, kMuchForMemory = 10;  // percent
    Findings out;
    if (m.waits_for_core.value_or(0) >= kMuchForCore)
        out.push_back({Severity::warning, "load",
                       fmt::format("in {} % of the last 10 seconds a program waited for a core: more of them "
                                   "compute than there are cores",
                                   *m.waits_for_core),
                       "end other programs that compute, or give redline fewer threads (-t)"});
    if (m.waits_for_memory.value_or(0) >= kMuchForMemory)
        out.push_back(
            {Severity::warning, "load",
             fmt::format("in {} % of the last 10 seconds a program waited for memory", *m.waits_for_memory),
             "end the programs that use the memory, or take a smaller model or context"});
    return out;
}

Findings control_group(const Machine& m) {
    Findings out;
    if (m.memory.group_limit < m.memory.available)
        out.push_back({Severity::warning, "memory",
                       fmt::format("a control group leaves {} of the {} that the system has free",
                                   format_bytes(m.memory.group_limit), format_bytes(m.memory.available)),
                       m.container ? "start the container with a larger --memory, or none"
                                   : "raise MemoryMax of the service, or run it elsewhere"});
    return out;
}

Findings swap(const Machine& m) {
    Findings out;
    if (m.swap_used > kGiB)
        out.push_back(
            {Severity::warning, "memory",
             fmt::format("{} of swap are in use: a model that is swapped out runs at the speed of the disk",
                         format_bytes(m.swap_used)),
             "end the programs that use the memory, or take a smaller model or context"});
    return out;
}

Findings firmware(const Machine& m) {
    Findings out;
    for (size_t i = 0; i < m.states.size(); ++i)
        for (const BadFirmware& bad : kBadFirmware) {
            const auto found = m.states[i].firmware.find(std::string(bad.part));
            if (found == m.states[i].firmware.end() || (found->second & 0xfff) != bad.version) continue;
            if (!m.gpus[i].target.empty() && !m.gpus[i].target.starts_with(bad.targets)) continue;
            out.push_back({Severity::problem, "firmware",
                           fmt::format("GPU {} runs {} firmware {:#x}, known for {} ({})", name_of(m.gpus[i]),
                                       bad.part, found->second, bad.effect, bad.source),
                           std::string(bad.remedy)});
        }
    return out;
}

Findings timeouts(const Machine& m) {
    constexpr int kShort = 1000;  // in ms; redline's submissions are planned to take far less
    int least = 0;
    const std::string& text = m.lockup_timeout;
    for (const char* at = text.data(); at < text.data() + text.size();) {
        int value = 0;
        const auto read = std::from_chars(at, text.data() + text.size(), value);
        if (read.ec == std::errc() && value > 0) least = least == 0 ? value : std::min(least, value);
        at = read.ec == std::errc() ? read.ptr + 1 : at + 1;
    }
    if (least == 0 || least >= kShort) return {};
    return {{Severity::warning, "timeout",
             fmt::format("amdgpu resets a GPU that computes for {} ms (lockup_timeout={})", least, text),
             "remove amdgpu.lockup_timeout from the kernel's command line, or set it to 10000"}};
}

Findings bar(const Machine& m) {
    Findings out;
    for (const KernelGpu& gpu : m.gpus) {
        if (!amd(gpu) || gpu.integrated() || !gpu.visible || !gpu.vram_total ||
            *gpu.visible >= *gpu.vram_total)
            continue;
        out.push_back(
            {Severity::warning, "bar",
             fmt::format("the CPU reaches {} of the {} of video memory of GPU {}: loading is slower",
                         format_bytes(*gpu.visible), format_bytes(*gpu.vram_total), name_of(gpu)),
             "switch on Above 4G Decoding and Resizable BAR in the firmware's set-up"});
    }
    return out;
}

Findings links(const Machine& m) {
    return examine_links(m.links);
}

Findings clocks(const Machine& m) {
    Findings out;
    for (size_t i = 0; i < m.states.size(); ++i) {
        const GpuState& state = m.states[i];
        if (state.level == "low" || state.level == "profile_min_sclk" || state.level == "profile_min_mclk")
            out.push_back(
                {Severity::warning, "clocks",
                 fmt::format("GPU {} is held at low clocks (power level {})", name_of(m.gpus[i]),
                             state.level),
                 fmt::format(
                     "echo auto | sudo tee /sys/class/drm/{}/device/power_dpm_force_performance_level",
                     state.card)});
        if (state.busy_percent.value_or(0) >= 80 && state.clock_mhz && state.top_clock_mhz &&
            *state.clock_mhz * 2 < *state.top_clock_mhz)
            out.push_back({Severity::warning, "clocks",
                           fmt::format("GPU {} is busy, but at {} of {} MHz", name_of(m.gpus[i]),
                                       *state.clock_mhz, *state.top_clock_mhz),
                           "look at its temperature and power limit (amdgpu_top, sensors), and suspend and "
                           "wake the machine once"});
    }
    return out;
}

// Drivers that load, but offer no device.
Findings silent_drivers(const Machine& m) {
    const BackendView* vulkan = view_of(m, "vulkan");
    if (!vulkan || !vulkan->devices.empty() || !m.broken_drivers.empty() || m.vulkan_drivers.empty())
        return {};
    return {{m.gpus.empty() ? Severity::note : Severity::warning, "drivers",
             fmt::format("Vulkan's drivers are there ({}) and offer no device",
                         fmt::join(m.vulkan_drivers, ", ")),
             "VK_LOADER_DEBUG=all redline devices shows why: often a library that the driver needs is "
             "missing, or a container lacks the GPU's device files"}};
}

Findings drivers(const Machine& m) {
    const auto has = [&](std::string_view start) {
        return std::any_of(m.vulkan_drivers.begin(), m.vulkan_drivers.end(),
                           [&](const std::string& file) { return file.starts_with(start); });
    };
    Findings out;
    for (const std::string& problem : m.broken_drivers)
        out.push_back({Severity::warning, "drivers", problem, "install the driver's package again"});
    if (has("radeon_icd") && has("amd_icd"))
        out.push_back(
            {Severity::note, "drivers",
             "two Vulkan drivers for AMD are installed, RADV and AMDVLK; each GPU is listed twice or by one "
             "of them",
             "AMDVLK is no longer developed: remove it, or choose with AMD_VULKAN_ICD=RADV"});
    return out;
}

// Compares the memory that a driver reports for a card with the kernel's figure.
Findings disagreement(const Machine& m) {
    Findings out;
    const BackendView* hip = view_of(m, "hip");
    for (const KernelGpu& gpu : m.gpus) {
        const DeviceListing* device = hip ? listed_as(*hip, gpu) : nullptr;
        if (!device || !gpu.vram_total) continue;
        for (const DeviceListing::Fact& fact : device->facts) {
            const auto* bytes = fact.name == "memory" ? std::get_if<uint64_t>(&fact.value) : nullptr;
            const uint64_t kernel = *gpu.vram_total + (gpu.integrated() ? gpu.gtt_total.value_or(0) : 0);
            if (!bytes || *bytes >= *gpu.vram_total / 2 || *bytes == 0) continue;
            out.push_back({Severity::warning, "memory",
                           fmt::format("HIP reports {} of memory on GPU {}, the kernel {}",
                                       format_bytes(*bytes), name_of(gpu), format_bytes(kernel)),
                           "update ROCm and the kernel, or use --device vulkan"});
        }
    }
    return out;
}

Findings bandwidth(const Machine& m) {
    constexpr double kEnough = 0.6;  // of the data sheet's figure
    Findings out;
    for (const MeasuredBandwidth& measured : m.bandwidths) {
        const double gb = measured.bytes_per_second / 1e9;
        const KnownGpu* known = nullptr;
        for (const BackendView& view : m.backends)
            for (const DeviceListing& device : view.devices)
                for (const KernelGpu& gpu : m.gpus)
                    if (device.id == measured.device && amd(gpu) && fact(device, "PCI address") == gpu.pci)
                        for (const KnownGpu& entry : kKnownGpus)
                            if (entry.device == gpu.device) known = &entry;
        if (gb <= 0.0)
            out.push_back(
                {Severity::problem, "bandwidth",
                 fmt::format("{} reads nothing that could be measured: its driver does not compute, "
                             "or its memory is full",
                             measured.device),
                 "redline run --self-test compares its kernels with the CPU's; another version of the "
                 "driver may compute, --device cpu does"});
        else if (!known)
            out.push_back(
                {Severity::good, "bandwidth", fmt::format("{} reads {:.0f} GB/s", measured.device, gb), ""});
        else if (gb >= kEnough * known->gb_per_second)
            out.push_back(
                {Severity::good, "bandwidth",
                 fmt::format("{} reads {:.0f} GB/s; {} has {:.0f} by the width and rate of its memory",
                             measured.device, gb, known->name, known->gb_per_second),
                 ""});
        else
            out.push_back(
                {Severity::warning, "bandwidth",
                 fmt::format(
                     "{} reads {:.0f} GB/s, of the {:.0f} that {} has by the width and rate of its memory",
                     measured.device, gb, known->gb_per_second, known->name),
                 "look for other programs on the GPU, a power profile that saves, a single memory "
                 "module, or clocks that stay low"});
    }
    return out;
}

}  // namespace

std::string_view severity_name(Severity severity) {
    constexpr std::string_view kNames[] = {"good", "note", "warning", "problem"};
    return kNames[size_t(severity)];
}

std::vector<Finding> examine(const Machine& machine) {
    std::vector<Finding> all;
    for (const auto check : {gpus_there, permissions, seen_by_vulkan, seen_by_hip, environment, drivers,
                             silent_drivers, firmware, shared_memory, disagreement, control_group, swap, load,
                             timeouts, bar, links, clocks, bandwidth})
        for (Finding& finding : check(machine)) all.push_back(std::move(finding));
    return all;
}

std::vector<Finding> examine_slowness(const Machine& machine) {
    std::vector<Finding> all;
    for (const auto check : {swap, load, clocks})
        for (Finding& finding : check(machine)) all.push_back(std::move(finding));
    return all;
}

}  // namespace redline
