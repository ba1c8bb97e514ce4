// The backends that tests hold to the reference: every CPU level of this machine, and where there is a
// device, Vulkan at each level of its kernels, and any other that is in the folder of backends.
#pragma once

#include "at_end.h"

#include "backends/cpu/kernels/kernels.h"
#include "devices/device_choice.h"

#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <string>

namespace redline::test {

// The CPU first.
inline std::vector<std::string> backend_names() {
    std::vector<std::string> names = {"cpu"};
    for (const BackendEntry* entry : backends_by_preference())
        if (entry->name != "cpu") names.emplace_back(entry->name);
    return names;
}

// RL_TEST_BACKENDS leaves others out: cpu, vulkan, hip, or several with commas between; vulkan:1 is the
// second of its devices, where vulkan is the best.
inline std::string wanted_backends() {
    const char* given = std::getenv("RL_TEST_BACKENDS");
    return given ? given : fmt::format("{}", fmt::join(backend_names(), ","));
}
inline bool wanted(const std::string& backend) {
    return wanted_backends().find(backend) != std::string::npos;
}

inline std::string wanted_device(const std::string& backend) {
    const std::string all = wanted_backends(), start = backend + ":";
    const size_t at = all.find(start);
    return at == std::string::npos ? ""
                                   : all.substr(at + start.size(), all.find(',', at) - at - start.size());
}

using Backends = std::vector<std::unique_ptr<Backend>>;

// Null where it cannot be opened, which is said at the end.
inline std::unique_ptr<Backend> open_wanted(const std::string& name, BackendOptions options = {}) {
    if (!wanted(name)) return nullptr;
    options.device = wanted_device(name);
    Result<std::unique_ptr<Backend>> backend = open_backend(name, options);
    if (!backend) {
        not_tested(fmt::format("{}: {}", name, backend.error().message));
        return nullptr;
    }
    const DeviceInfo& device = backend.value()->device();
    tested_on(fmt::format("{}: {}, {}", name, device.name, device.detail));
    return std::move(backend).value();
}

// Its quotients and roots are rounded as the CPU rounds them.
inline bool is_hip(const Backend& backend) {
    return backend.device().detail.find("; waves of ") != std::string::npos;
}

// A level that the device lacks opens as the one below it, and is left out.
inline Backends vulkan_backends(bool guarded = false) {
    Backends made;
    for (const char* level : {"plain", "dot", "matrix", "bfloat16", "workgroup"}) {
        std::unique_ptr<Backend> backend = open_wanted("vulkan", {.level = level, .guarded = guarded});
        if (!backend) break;
        if (made.empty() || made.back()->device().detail != backend->device().detail)
            made.push_back(std::move(backend));
    }
    return made;
}

inline void add_devices(Backends& made, bool guarded) {
    for (std::unique_ptr<Backend>& backend : vulkan_backends(guarded)) made.push_back(std::move(backend));
    for (const std::string& name : backend_names()) {
        if (name == "cpu" || name == "vulkan") continue;
        if (auto other = open_wanted(name, {.guarded = guarded})) made.push_back(std::move(other));
    }
    // One that is asked for alone must be there.
    if (wanted_backends().find(',') == std::string::npos) REQUIRE(!made.empty());
}

// `guarded`: with guards around what kernels write, and poison in what they read.
inline Backends all_test_backends(bool guarded = true) {
    Backends made;
    const auto add_cpu = [&](uint32_t threads, const std::string& level) {
        made.push_back(open_wanted("cpu", {.threads = threads, .level = level, .guarded = guarded}));
    };
    if (wanted("cpu")) {
        for (const cpu::Isa isa : cpu::kIsaLevels)
            if (cpu::has_isa(isa)) add_cpu(2, cpu::isa_name(isa));
        // More threads than one, and not a divisor of most sizes.
        add_cpu(1, "");
        add_cpu(3, "");
    }
    add_devices(made, guarded);
    return made;
}

// For tests that do not go by the CPU's level: the CPU once, with threads that do not divide most sizes.
inline Backends session_test_backends() {
    Backends made;
    if (wanted("cpu")) made.push_back(open_wanted("cpu", {3, ""}));
    add_devices(made, false);
    return made;
}

// The names of the CPU and the devices of this machine, as --device takes them.
inline const std::vector<std::string>& device_names() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> usable;
        for (const std::string& name : backend_names()) {
            if (!open_wanted(name)) continue;
            const std::string which = wanted_device(name);
            usable.push_back(which.empty() ? name : name + ":" + which);
        }
        return usable;
    }();
    return names;
}

}  // namespace redline::test
