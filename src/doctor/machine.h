// Facts about a machine that matter for running models on it. Everything is only read, with no more rights
// than a user has.
#pragma once

#include "memory/budget.h"
#include "memory/pci_link.h"
#include "plan/backend.h"

#include <map>

namespace redline {

// A device file through which programs use a GPU.
struct DeviceNode {
    std::string path;
    bool exists = false;
    bool usable = false;  // it can be read and written
};

// The kernel's facts about a GPU, besides its memory; empty or absent where it has none.
struct GpuState {
    std::string card;
    std::string level;                                 // "auto", "low", "high", "manual"
    std::optional<uint64_t> clock_mhz, top_clock_mhz;  // of the shaders
    std::optional<uint64_t> busy_percent;
    std::map<std::string, uint64_t> firmware;  // versions by part: "mes"
};

// The devices that a backend finds.
struct BackendView {
    std::string backend;
    std::vector<DeviceListing> devices;
    std::string error;  // the reason why there are none
};

struct MeasuredBandwidth {
    std::string device;  // a DeviceListing::id
    double bytes_per_second = 0.0;
};

// A GPU of several.
struct GpuLink {
    std::string id;               // "hip:1"
    std::string pci;              // empty: unknown
    std::optional<PciLink> link;  // to the host
    std::string reaches;          // "hip:0, hip:2": whose memory it reads and writes; "none"; empty: unknown
    std::string sums;             // "peer memory": how such GPUs add rows by themselves; empty: they do not
    std::optional<PciIsolation> isolation;
};

// GPUs of one backend, of which there are several.
struct GpuLinks {
    std::string backend;
    std::vector<GpuLink> gpus;
    std::string collectives;  // "librccl.so.1", which adds rows, too; empty: it is not installed
};

struct Machine {
    std::string kernel;  // "6.12.9-amd64"
    std::string system;  // "Debian GNU/Linux 12 (bookworm)"
    std::string rocm;    // "6.4.1"; empty: not in the usual folder
    bool container = false;
    bool root = false;
    std::vector<std::string> groups;  // names of the user's groups
    HostMemory memory;
    uint64_t swap_total = 0, swap_used = 0;
    // Percentage of the last 10 seconds in which a program waited for a core or for memory; absent where the
    // kernel does not report it.
    std::optional<uint64_t> waits_for_core, waits_for_memory;
    std::vector<KernelGpu> gpus;
    std::vector<GpuState> states;  // one for each of `gpus`
    std::optional<uint64_t> ttm_limit;
    std::vector<DeviceNode> nodes;                   // /dev/kfd and the render nodes
    std::string lockup_timeout;                      // amdgpu's setting; empty: its default
    std::vector<std::string> vulkan_drivers;         // names of the loader's files, without folders
    std::vector<std::string> broken_drivers;         // a sentence for each that is faulty
    std::map<std::string, std::string> environment;  // those of kDoctorVariables that are set
    // These three are added by the caller, the last one by gpu_links().
    std::vector<BackendView> backends;
    std::vector<MeasuredBandwidth> bandwidths;
    std::vector<GpuLinks> links;
};

// Environment variables that change the behaviour of drivers; the caller looks them up.
extern const std::vector<std::string> kDoctorVariables;

// `root` is put before /dev, /etc, /opt, /proc, /run, /sys and /usr, for tests.
Machine read_machine(const std::string& root = "");

}  // namespace redline
