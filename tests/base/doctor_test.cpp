// The doctor's findings: each on a machine that has it, none on one that is as it should be.
#include "doctor/findings.h"
#include "doctor/vulkan_drivers.h"
#include "support/machines.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace redline;
using namespace redline::test;

namespace {

DeviceListing listing(const std::string& id, const std::string& pci) {
    return {id, "AMD GPU", true, "", {{"driver", std::string("radv, Mesa 26.2")}, {"PCI address", pci}}};
}

// With the devices as they ought to be: seen by Vulkan, nodes open, the driver installed.
Machine machine_of(const Files& files) {
    const Tree tree(files);
    Machine m = read_machine(tree);
    for (DeviceNode& node : m.nodes) node.exists = node.usable = true;
    m.groups = {"video", "render"};
    m.container = files.count("/run/.containerenv") > 0;
    m.kernel = "6.17.1";
    m.vulkan_drivers = {"radeon_icd.x86_64.json"};
    BackendView vulkan{"vulkan", {}, ""};
    for (const KernelGpu& gpu : m.gpus) vulkan.devices.push_back(listing("vulkan:0", gpu.pci));
    m.backends = {vulkan};
    return m;
}

// The finding of a check that is worse than a note; null when there is none.
struct Worst {
    std::vector<Finding> all;
    explicit Worst(const Machine& m) : all(examine(m)) {}
    const Finding* of(const std::string& check) const {
        const Finding* worst = nullptr;
        for (const Finding& f : all)
            if (f.check == check && f.severity > Severity::note && (!worst || f.severity > worst->severity))
                worst = &f;
        return worst;
    }
    bool any() const {
        return std::any_of(all.begin(), all.end(),
                           [](const Finding& f) { return f.severity > Severity::note; });
    }
};

bool holds(const std::string& text, const std::string& part) {
    INFO(text);
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("doctor: a card and an APU as they should be have no warnings") {
    CHECK(!Worst(machine_of(rx_7900_xtx())).any());
    CHECK(!Worst(machine_of(mi300x())).any());
    Files files = strix_halo(512 * kMiB);
    files["/sys/module/ttm/parameters/pages_limit"] = fmt::format("{}", 120 * kGiB / 4096);
    files["/sys/class/drm/card0/device/mem_info_gtt_total"] = fmt::format("{}", 120 * kGiB);
    CHECK(!Worst(machine_of(files)).any());
}

TEST_CASE("doctor: an APU that the kernel lends half of the memory gets the parameters for more, by kernel") {
    Machine m = machine_of(strix_halo(512 * kMiB));
    const Worst found(m);
    REQUIRE(found.of("memory"));
    CHECK(holds(found.of("memory")->what, "of 128.00 GiB of memory the GPU can use 64.25 GiB"));
    // 128 GiB less a sixteenth for the system and what is set apart.
    CHECK(holds(found.of("memory")->remedy,
                fmt::format("ttm.pages_limit={}", (120 * kGiB - 512 * kMiB) / 4096)));
    CHECK(!holds(found.of("memory")->remedy, "gttsize"));
    m.kernel = "6.8.0-45-generic";
    CHECK(holds(Worst(m).of("memory")->remedy,
                fmt::format("amdgpu.gttsize={}", (120 * kGiB - 512 * kMiB) >> 20)));
}

TEST_CASE("doctor: what the firmware sets apart in plenty is said to be lost to the CPU") {
    const std::vector<Finding> all = examine(machine_of(strix_halo(96 * kGiB)));
    CHECK(std::any_of(all.begin(), all.end(), [](const Finding& f) {
        return f.check == "memory" && f.severity == Severity::note &&
               f.what.find("96.00 GiB") != std::string::npos &&
               f.remedy.find("UMA frame buffer") != std::string::npos;
    }));
    CHECK(!Worst(machine_of(strix_halo(96 * kGiB))).of("memory"));
    // A Steam Deck's GTT is half of its memory.
    CHECK(Worst(machine_of(steam_deck(1 * kGiB))).of("memory"));
}

TEST_CASE("doctor: a node that this user cannot open is a problem, with the groups to join") {
    Machine m = machine_of(rx_7900_xtx());
    m.groups = {"users", "video"};
    for (DeviceNode& node : m.nodes) node.usable = false;
    m.backends[0].devices.clear();
    m.backends[0].error = "no device";
    const Worst found(m);
    REQUIRE(found.of("permissions"));
    CHECK(holds(found.of("permissions")->remedy, "usermod -aG render "));
    REQUIRE(found.of("vulkan"));
    CHECK(holds(found.of("vulkan")->what, "/dev/dri/renderD128 cannot be opened"));
    m.groups = {"render", "video"};
    CHECK(holds(Worst(m).of("permissions")->remedy, "log in again"));
}

TEST_CASE("doctor: drivers' files that lead nowhere are named, with what is wrong") {
    Files files = rx_7900_xtx();
    const std::string folder = "/usr/share/vulkan/icd.d/";
    files[folder + "a.json"] = R"({"ICD": {"library_path": "/usr/lib/libvulkan_gone.so"}})";
    files[folder + "b.json"] = R"({"ICD": {"library_path": "../../../lib/libvulkan_there.so"}})";
    files[folder + "c.json"] = "{";
    files[folder + "d.json"] = R"({"ICD": {"api_version": "1.3"}})";
    files[folder + "e.json"] = R"({"ICD": {"library_path": "libvulkan_by_name.so"}})";
    files["/usr/lib/libvulkan_there.so"] = "";
    const Tree tree(files);
    const Machine m = read_machine(tree);
    CHECK(m.vulkan_drivers == std::vector<std::string>{"a.json", "b.json", "c.json", "d.json", "e.json"});
    REQUIRE(m.broken_drivers.size() == 3);
    CHECK(holds(m.broken_drivers[0], "a.json names " + tree.root + "/usr/lib/libvulkan_gone.so, which does"));
    CHECK(holds(m.broken_drivers[1], "c.json is not the description of a driver"));
    CHECK(holds(m.broken_drivers[2], "d.json names no driver"));
    REQUIRE(Worst(m).of("drivers"));

    Machine silent = m;
    silent.broken_drivers.clear();
    silent.backends = {{"vulkan", {}, "no driver"}};
    REQUIRE(Worst(silent).of("drivers"));
    CHECK(holds(Worst(silent).of("drivers")->what, "a.json, b.json, c.json, d.json, e.json"));

    const std::vector<std::string> named =
        broken_vulkan_drivers({tree.root + folder + "gone.json:" + tree.root + folder + "b.json:/dev", "x"});
    REQUIRE(named.size() == 2);
    CHECK(holds(named[0], "gone.json does not exist"));
    CHECK(holds(named[1], "b.json names a driver that does not load: "));
    CHECK(broken_vulkan_drivers({"", "/nowhere/x.json"}, tree.root).size() == 4);
}

TEST_CASE("doctor: a GPU that Vulkan does not see, and why") {
    Machine m = machine_of(rx_7900_xtx());
    m.backends[0].devices.clear();
    m.vulkan_drivers.clear();
    CHECK(holds(Worst(m).of("vulkan")->remedy, "mesa-vulkan-drivers"));
    m.vulkan_drivers = {"radeon_icd.x86_64.json"};
    m.environment["VK_DRIVER_FILES"] = "/nothing.json";
    CHECK(holds(Worst(m).of("vulkan")->remedy, "unset VK_DRIVER_FILES"));
    m.environment.clear();
    m.backends[0].error = "the loader finds no driver";
    CHECK(holds(Worst(m).of("vulkan")->what, "the loader finds no driver"));
    for (DeviceNode& node : m.nodes) node.exists = node.usable = false;
    CHECK(holds(Worst(m).of("vulkan")->what, "is not there"));
    // One that lacks something is named with it.
    m = machine_of(rx_7900_xtx());
    m.backends[0].devices[0].missing = "16 KiB of shared memory";
    CHECK(holds(Worst(m).of("vulkan")->what, "16 KiB of shared memory"));
    // A build without Vulkan.
    m.backends.clear();
    CHECK(holds(Worst(m).of("vulkan")->what, "this build"));
}

TEST_CASE("doctor: HIP is a note where Vulkan serves, and a problem where permission lacks") {
    Machine m = machine_of(rx_7900_xtx());
    m.backends.push_back({"hip", {}, "no library libamdhip64.so"});
    CHECK(!Worst(m).any());
    m.nodes[0].usable = false;
    CHECK(holds(Worst(m).of("hip")->what, "/dev/kfd cannot be opened"));
    m.nodes[0].usable = true;
    m.backends[1].devices = {listing("hip:0", m.gpus[0].pci)};
    CHECK(!Worst(m).any());
    m.backends[1].devices[0].missing = "kernels for gfx906";
    CHECK(holds(Worst(m).of("hip")->remedy, "--device vulkan"));
    // A runtime that reports a part of the card's memory.
    m.backends[1].devices[0].missing.clear();
    m.backends[1].devices[0].facts.push_back({"memory", 6 * kGiB});
    CHECK(holds(Worst(m).of("memory")->what, "HIP reports 6.00 GiB"));
}

TEST_CASE("doctor: variables that change the devices are named, the override of the target as a problem") {
    Machine m = machine_of(rx_7900_xtx());
    m.environment["HIP_VISIBLE_DEVICES"] = "1";
    CHECK(!Worst(m).any());
    m.environment["HSA_OVERRIDE_GFX_VERSION"] = "10.3.0";
    CHECK(holds(Worst(m).of("environment")->remedy, "unset HSA_OVERRIDE_GFX_VERSION"));
}

TEST_CASE("doctor: firmware known to hang is named with its source") {
    Files files = strix_halo(96 * kGiB);
    files["/sys/class/drm/card0/device/fw_version/mes_fw_version"] = "0x00000083\n";
    CHECK(holds(Worst(machine_of(files)).of("firmware")->what, "ROCm issue 5724"));
    files["/sys/class/drm/card0/device/fw_version/mes_fw_version"] = "0x00000080\n";
    CHECK(!Worst(machine_of(files)).of("firmware"));
}

TEST_CASE("doctor: clocks, the timeout, the BAR, swap and another kernel driver") {
    Files files = rx_7900_xtx();
    const std::string device = "/sys/class/drm/card0/device/";
    files[device + "power_dpm_force_performance_level"] = "low\n";
    files[device + "gpu_busy_percent"] = "99\n";
    files[device + "pp_dpm_sclk"] = "0: 41Mhz *\n1: 1500Mhz\n2: 2482Mhz\n";
    files[device + "mem_info_vis_vram_total"] = fmt::format("{}\n", 256 * kMiB);
    files["/sys/module/amdgpu/parameters/lockup_timeout"] = "10000,500,10000,10000\n";
    files["/proc/meminfo"] =
        "MemTotal: 64000000 kB\nMemAvailable: 40000000 kB\nSwapTotal: 8000000 kB\nSwapFree: 2000000 kB\n";
    const Worst found(machine_of(files));
    REQUIRE(found.of("clocks"));
    CHECK(std::count_if(found.all.begin(), found.all.end(),
                        [](const Finding& f) { return f.check == "clocks"; }) == 2);
    REQUIRE(found.of("bar"));
    CHECK(holds(found.of("bar")->what, "256.0 MiB of the 24.00 GiB"));
    REQUIRE(found.of("timeout"));
    CHECK(holds(found.of("timeout")->what, "500 ms"));
    CHECK(found.of("memory"));
    files["/sys/module/amdgpu/parameters/lockup_timeout"] = "-1\n";
    CHECK(!Worst(machine_of(files)).of("timeout"));
    files[device + "uevent"] = "DRIVER=radeon\nPCI_SLOT_NAME=0000:03:00.0\n";
    CHECK(holds(Worst(machine_of(files)).of("gpu")->what, "driver radeon"));
}

TEST_CASE("doctor: programs that wait for cores or memory are found where the kernel tells of them") {
    Files files = rx_7900_xtx();
    CHECK(!machine_of(files).waits_for_core);
    files["/proc/pressure/cpu"] = "some avg10=12.52 avg60=99.14 avg300=84.20 total=8969163416\n";
    files["/proc/pressure/memory"] = "some avg10=0.77 avg60=1.53 avg300=1.01 total=74570028\n";
    CHECK(machine_of(files).waits_for_core == 12);
    CHECK(!Worst(machine_of(files)).any());
    files["/proc/pressure/cpu"] = "some avg10=99.52 avg60=99.14 avg300=84.20 total=8969163416\n";
    files["/proc/pressure/memory"] = "some avg10=31.00 avg60=1.53 avg300=1.01 total=74570028\n";
    const Worst found(machine_of(files));
    CHECK(std::ranges::count(found.all, "load", &Finding::check) == 2);
    CHECK(holds(found.of("load")->what, "in 99 % of the last 10 seconds a program waited for a core"));
    CHECK(examine_slowness(machine_of(files)).size() == 2);
    files["/proc/pressure/cpu"] = "nonsense";
    CHECK(!machine_of(files).waits_for_core);
}

TEST_CASE("doctor: bandwidth is held to the card's, where the card is known") {
    Machine m = machine_of(rx_7900_xtx());
    m.bandwidths = {{"vulkan:0", 820e9}, {"cpu", 60e9}};
    CHECK(!Worst(m).any());
    m.bandwidths[0].bytes_per_second = 120e9;
    CHECK(holds(Worst(m).of("bandwidth")->what, "120 GB/s"));
    m.bandwidths[0].bytes_per_second = 0.0;
    CHECK(holds(Worst(m).of("bandwidth")->what, "vulkan:0 reads nothing that could be measured"));
    CHECK(Worst(m).of("bandwidth")->severity == Severity::problem);
}

TEST_CASE("doctor: a container without devices, a machine with nothing, two Vulkan drivers") {
    Machine inside = machine_of(container());
    CHECK(holds(examine(inside)[0].remedy, "--device /dev/dri"));
    inside.backends[0].devices = {listing("vulkan:0", "")};
    CHECK(!holds(examine(inside)[0].what, "sees no GPU"));
    CHECK(holds(Worst(inside).of("memory")->what, "a control group leaves"));
    Machine nothing = machine_of({});
    CHECK(!Worst(nothing).any());
    CHECK(!examine(nothing).empty());
    Machine two = machine_of(rx_7900_xtx());
    two.vulkan_drivers = {"amd_icd64.json", "radeon_icd.x86_64.json"};
    const std::vector<Finding> all = examine(two);
    CHECK(std::any_of(all.begin(), all.end(), [](const Finding& f) { return f.check == "drivers"; }));
}
