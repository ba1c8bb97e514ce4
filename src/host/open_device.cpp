#include "host/open_device.h"

#include "host/tuned.h"
#include "memory/gpus.h"

#include <algorithm>

namespace redline {

Result<std::unique_ptr<Backend>> open_device(const DeviceChoice& choice, const HostOptions& options) {
    BackendOptions wishes = {
        options.threads,   choice.backend == "cpu" ? options.level : options.vulkan_level,
        choice.device,     options.cache_folder,
        options.memory,    options.beside_gpu,
        options.keep_awake};
    Result<std::unique_ptr<Backend>> opened = open_backend(choice.backend, wishes);
    if (opened && choice.backend == "cpu" && options.ranks_here > 1) {
        // Each process of a job has a part of the CPU that they share, unless it was told another.
        const DeviceInfo whole = opened.value()->device();
        if (options.threads == 0) wishes.threads = std::max(1u, whole.threads / options.ranks_here);
        if (options.memory == 0)
            wishes.memory = std::max<uint64_t>(1, whole.memory.bytes / options.ranks_here);
        opened = open_backend(choice.backend, wishes);
    }
    if (!opened && choice.why.empty()) opened.error().cause = Cause::no_device;
    if (opened && choice.backend != "cpu") use_tuned(*opened.value(), options);
    return opened;
}

// Drivers are looked at where there should be a device of theirs.
static std::vector<std::string> faulty_drivers(const DeviceChoice& choice, const NamedDrivers& named) {
    const bool any_named = !named.instead.empty() || !named.beside.empty();
    if (choice.backend == "vulkan" || (!any_named && kernel_gpus().empty())) return {};
    return broken_vulkan_drivers(named);
}

Result<std::unique_ptr<Backend>> open_best(DeviceChoice& choice, const HostOptions& options) {
    if (!choice.why.empty()) {
        for (const std::string& problem : passed_over(choice)) options.notes->note(problem);
        for (const std::string& problem : faulty_drivers(choice, options.drivers))
            options.notes->note(problem);
    }
    while (true) {
        Result<std::unique_ptr<Backend>> opened = open_device(choice, options);
        if (!opened && choice.backend == "vulkan")
            for (const std::string& problem : broken_vulkan_drivers(options.drivers))
                options.notes->note(problem);
        if (opened || choice.why.empty()) return opened;
        const std::optional<DeviceChoice> next = next_choice(choice);
        if (!next) return opened;
        options.notes->note(fmt::format("{} cannot be used, {} is taken: {}", choice.backend, next->backend,
                                        opened.error().message));
        choice = *next;
    }
}

}  // namespace redline
