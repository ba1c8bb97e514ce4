// The launches of a backend in a step, on a device that computes nothing: see step_kernels.cpp.
#pragma once

#include "json/json.h"
#include "plan/backend.h"

namespace redline {

// A backend whose device notes what it is given.
class Noted {
public:
    virtual ~Noted() = default;
    virtual Backend& backend() const = 0;
    // {kernel, groups, threads, shared, arguments} of each launch since the last call. Arguments are words,
    // of which those between members are any; with Vulkan a hash of them, and how many barriers stand before
    // it.
    virtual Json take() = 0;
    // Bytes of the scratch that kernels share.
    virtual uint64_t scratch(const Kernel& kernel, const Plan& plan) const = 0;
    // Where machine code is known here: "== KERNEL  FACTS", then the code, of each kernel that was launched.
    virtual Status write_code(std::FILE* to) = 0;
};

// The device of the Vulkan driver, as if it had so many compute units. `fragments`: products of few rows fill
// matrices by their elements, whatever the device would do. `compiles`: there is machine code to write.
Result<std::unique_ptr<Noted>> noted_vulkan(uint32_t units, bool fragments, bool compiles);
// A device of HIP of this target, "gfx1100", with so many multiprocessors as the runtime counts them.
Result<std::unique_ptr<Noted>> noted_hip(const std::string& target, uint32_t units);

}  // namespace redline
