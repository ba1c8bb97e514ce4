// What a machine tells about itself that bears on running models there. Everything is read, nothing is
// changed, and nothing of it needs more rights than a user has.
#pragma once

#include "memory/budget.h"
#include "plan/backend.h"

#include <map>

namespace redline {

// A file that programs reach a GPU through.
struct DeviceNode {
    std::string path;
    bool exists = false;
    bool usable = false;  // it can be read and written
};

// What the kernel says of a GPU beside its memory; empty or absent where it does not.
struct GpuState {
    std::string card;
    std::string level;                                 // "auto", "low", "high", "manual"
    std::optional<uint64_t> clock_mhz, top_clock_mhz;  // of the shaders
    std::optional<uint64_t> busy_percent;
    std::map<std::string, uint64_t> firmware;  // "mes" and its version
};

// What a backend finds.
struct BackendView {
    std::string backend;
    std::vector<DeviceListing> devices;
    std::string error;  // why there are none
};

struct MeasuredBandwidth {
    std::string device;  // as DeviceListing::id
    double bytes_per_second = 0.0;
};

struct Machine {
    std::string kernel;  // "6.12.9-amd64"
    std::string system;  // "Debian GNU/Linux 12 (bookworm)"
    std::string rocm;    // "6.4.1"; empty: not where packages put it
    bool container = false;
    bool root = false;
    std::vector<std::string> groups;  // of the user, by name
    HostMemory memory;
    uint64_t swap_total = 0, swap_used = 0;
    // Of the last 10 seconds, the percent in which a program waited for it; absent where the kernel does not
    // tell.
    std::optional<uint64_t> waits_for_core, waits_for_memory;
    std::vector<KernelGpu> gpus;
    std::vector<GpuState> states;  // one for each of `gpus`
    std::optional<uint64_t> ttm_limit;
    std::vector<DeviceNode> nodes;                   // /dev/kfd and the render nodes
    std::string lockup_timeout;                      // amdgpu's, as set; empty: its default
    std::vector<std::string> vulkan_drivers;         // names of the loader's files, without folders
    std::vector<std::string> broken_drivers;         // of those: a sentence each, what is wrong with it
    std::map<std::string, std::string> environment;  // of kVariables those that are set
    // Added by the caller.
    std::vector<BackendView> backends;
    std::vector<MeasuredBandwidth> bandwidths;
};

// Variables of the environment that change what drivers do; the caller looks them up.
extern const std::vector<std::string> kDoctorVariables;

// `root` stands before /dev, /etc, /opt, /proc, /run, /sys and /usr, for tests.
Machine read_machine(const std::string& root = "");

}  // namespace redline
