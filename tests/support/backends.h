// The backends that tests hold to the reference: every CPU level of this machine, and where there is a
// device, Vulkan at each level of its kernels, and HIP.
#pragma once

#include "at_end.h"

#include "backends/cpu/kernels.h"
#include "plan/backend.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

namespace redline::test {

// A level that the device lacks opens as the one below it, and is left out.
inline std::vector<std::unique_ptr<Backend>> vulkan_backends() {
    std::vector<std::unique_ptr<Backend>> made;
    for (const char* level : {"plain", "dot", "matrix", "bfloat16", "workgroup"}) {
        Result<std::unique_ptr<Backend>> backend = open_backend("vulkan", {0, level});
        if (!backend) {
            MESSAGE("Vulkan is not tested: " << backend.error().message);
            break;
        }
        if (made.empty() || made.back()->device().detail != backend.value()->device().detail)
            made.push_back(std::move(backend).value());
    }
    return made;
}

inline std::vector<std::unique_ptr<Backend>> hip_backends() {
    std::vector<std::unique_ptr<Backend>> made;
    Result<std::unique_ptr<Backend>> backend = open_backend("hip", {});
    if (backend)
        made.push_back(std::move(backend).value());
    else
        MESSAGE("HIP is not tested: " << backend.error().message);
    return made;
}

// RL_TEST_BACKENDS leaves others out: cpu, vulkan, hip, or several with commas between. One alone must be
// there.
inline std::vector<std::unique_ptr<Backend>> all_test_backends() {
    const char* given = std::getenv("RL_TEST_BACKENDS");
    const std::string only = given ? given : "cpu,vulkan,hip";
    std::vector<std::unique_ptr<Backend>> made;
    const auto add = [&](std::vector<std::unique_ptr<Backend>> more) {
        for (std::unique_ptr<Backend>& backend : more) made.push_back(std::move(backend));
    };
    if (only.find("cpu") != only.npos) {
        for (const cpu::Isa isa : cpu::kIsaLevels)
            if (isa <= cpu::best_isa())
                made.push_back(std::move(open_backend("cpu", {2, cpu::isa_name(isa)})).value());
        // More threads than one, and not a divisor of most sizes.
        made.push_back(std::move(open_backend("cpu", {1, ""})).value());
        made.push_back(std::move(open_backend("cpu", {3, ""})).value());
    }
    if (only.find("vulkan") != only.npos) add(vulkan_backends());
    if (only.find("hip") != only.npos) add(hip_backends());
    if (only.find(',') == only.npos) REQUIRE(!made.empty());
    return made;
}

}  // namespace redline::test
