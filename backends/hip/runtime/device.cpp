#include "device.h"

#include "memory/budget.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace redline::hip {

namespace {

// hipDeviceProp_t differs between ROCm 5 and 6; its name of the target is a string that begins so in both.
std::string arch_in(const std::string& properties) {
    for (const char* prefix : {"gfx", "sm_"}) {
        const size_t at = properties.find(prefix);
        if (at != std::string::npos) return properties.c_str() + at;
    }
    return "";
}

// Codes after which the context answers nothing else: a fault, a hang, a reset.
bool is_loss(Code code) {
    for (const Code fatal : {46, 214, 220, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721})
        if (code == fatal) return true;
    return false;
}

// In either case of letters.
bool holds(std::string_view name, std::string_view part) {
    const auto same = [](char a, char b) { return std::tolower(uint8_t(a)) == std::tolower(uint8_t(b)); };
    return std::search(name.begin(), name.end(), part.begin(), part.end(), same) != name.end();
}

DeviceReport report_of(const Runtime& runtime, int index) {
    constexpr size_t kPropertiesRoom = 65536;  // far above any version's size
    DeviceReport report;
    report.index = index;
    char name[256] = {};
    if (runtime.call.device_name(name, sizeof(name) - 1, index) == kSuccess) report.name = name;
    std::string properties(kPropertiesRoom, '\0');
    if (runtime.call.device_properties(properties.data(), index) == kSuccess) {
        // The name comes first and may itself begin like a target.
        const size_t skipped = runtime.cuda ? 0 : 256;
        report.arch = arch_in(properties.substr(skipped));
    }
    int value = 0;
    if (runtime.call.device_attribute(&value, runtime.attributes.multiprocessors, index) == kSuccess)
        report.multiprocessors = uint32_t(value);
    value = 0;
    if (runtime.call.device_attribute(&value, runtime.attributes.integrated, index) == kSuccess)
        report.integrated = value != 0;
    report.integrated |= is_apu_target(report.arch.substr(0, report.arch.find(':')));
    char pci[32] = {};
    if (runtime.call.device_pci && runtime.call.device_pci(pci, sizeof(pci) - 1, index) == kSuccess)
        report.pci = pci;
    // As the kernel and Vulkan write it, whatever case the runtime's digits have.
    for (char& c : report.pci) c = char(std::tolower(static_cast<unsigned char>(c)));
    size_t available = 0, total = 0;
    if (runtime.call.set_device(index) == kSuccess &&
        runtime.call.memory_info(&available, &total) == kSuccess) {
        report.memory_free = available;
        report.memory_total = total;
    }
    const Result<std::string_view> target = choose_target(report.arch, runtime.version, built_targets());
    if (target)
        report.target = target.value();
    else
        report.missing = target.error().message;
    return report;
}

}  // namespace

bool DeviceReport::copies_ahead() const {
    return target.starts_with("sm_") && std::atoi(target.c_str() + 3) >= 90;
}

MemoryBudget DeviceReport::budget() const {
    // Left to the runtime and the screen.
    const uint64_t left = std::max<uint64_t>(memory_total / 32, uint64_t(256) << 20);
    const uint64_t free = memory_free > left ? memory_free - left : 0;
    const std::vector<KernelGpu> gpus = kernel_gpus();
    return gpu_budget({"hipMemGetInfo, less a reserve", free}, integrated, find_gpu(gpus, pci), ttm_limit(),
                      host_memory());
}

std::vector<DeviceReport> device_reports(const Runtime& runtime) {
    int count = 0;
    std::vector<DeviceReport> reports;
    if (runtime.call.device_count(&count) != kSuccess) return reports;
    for (int i = 0; i < count; ++i) reports.push_back(report_of(runtime, i));
    return reports;
}

Result<DeviceReport> choose_device(const std::vector<DeviceReport>& devices, const std::string& wanted,
                                   std::string& why) {
    std::string known;
    const DeviceReport* best = nullptr;
    for (const DeviceReport& device : devices) {
        known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", device.index, device.name);
        const bool named =
            wanted == std::to_string(device.index) || (wanted.size() > 1 && holds(device.name, wanted));
        if (!wanted.empty() && !named) continue;
        if (!wanted.empty()) {
            if (!device.missing.empty())
                return error("{} cannot be used: it lacks {}", device.name, device.missing);
            why = "asked for";
            return device;
        }
        const auto rank = [](const DeviceReport& d) { return std::pair(!d.integrated, d.memory_total); };
        if (device.missing.empty() && (!best || rank(device) > rank(*best))) best = &device;
    }
    if (best) {
        why = devices.size() == 1 ? "the only one" : "the best of " + std::to_string(devices.size());
        return *best;
    }
    if (wanted.empty() && !devices.empty())
        return error("{} cannot be used: it lacks {}", devices[0].name, devices[0].missing);
    return error("no HIP device is called {}; there are: {}", wanted, known);
}

Result<std::unique_ptr<Device>> Device::open(const Runtime& runtime, DeviceReport report) {
    std::unique_ptr<Device> made(new Device(runtime, std::move(report)));
    constexpr unsigned kNonBlocking = 1;
    RL_TRY(made->use());
    RL_TRY(made->checked(runtime.call.stream_create(&made->stream_, kNonBlocking), "making a stream"));
    return made;
}

Device::~Device() {
    call().set_device(report_.index);
    for (const auto& [name, loaded] : modules_) call().module_unload(loaded.module);
    if (stream_) call().stream_destroy(stream_);
}

Status Device::use() {
    RL_TRY(not_lost());
    return checked(call().set_device(report_.index), "choosing the device");
}

Status Device::not_lost() {
    const std::lock_guard lock(lost_mutex_);
    if (lost_.empty()) return {};
    return error("{} was lost earlier ({}); open it again", report_.name, lost_);
}

Status Device::checked(Code code, std::string_view doing) {
    if (code == kSuccess) return {};
    const Error failed = runtime_.checked(code, doing).error();
    RL_TRY(not_lost());
    if (!is_loss(code)) return failed;
    const std::lock_guard lock(lost_mutex_);
    lost_ = failed.message;
    return error("{} was lost while {}; open it again", report_.name, failed.message);
}

Result<Module> Device::module(const std::string& name) {
    if (const auto found = modules_.find(name); found != modules_.end()) return found->second.module;
    const CodeObject* object = find_object(report_.target, name);
    RL_CHECK(object, "no kernels {} for {} are built", name, report_.target);
    Loaded loaded;
    loaded.image = RL_TRY(unpack(*object));
    RL_TRY(checked(call().module_load(&loaded.module, loaded.image.data()),
                   fmt::format("loading the kernels {} for {}", name, report_.target)));
    return (modules_[name] = std::move(loaded)).module;
}

Result<Function> Device::kernel(const std::string& module_name, const std::string& name) {
    if (const auto found = functions_.find(name); found != functions_.end()) return found->second;
    const Module loaded = RL_TRY(module(module_name));
    Function function = nullptr;
    RL_TRY(checked(call().module_function(&function, loaded, name.c_str()), "finding the kernel " + name));
    return functions_[name] = function;
}

// Kernels have one parameter. Runtimes don't look at the second, which tells tools/micro/step_kernels where
// it ends.
Status Device::launch(Function function, const Launch& shape, std::span<const std::byte> args) {
    void* parameters[] = {const_cast<std::byte*>(args.data()),
                          const_cast<std::byte*>(args.data() + args.size())};
    const auto launch = shape.early ? call().launch_early : call().launch;
    return checked(launch(function, shape.x, shape.y, shape.z, shape.threads, 1, 1, shape.shared, stream_,
                          parameters, nullptr),
                   "launching a kernel");
}

}  // namespace redline::hip
