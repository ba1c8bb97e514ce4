// The launches of a backend in a step, on a device that computes nothing: see step_kernels.cpp.
#pragma once

#include "json/json.h"
#include "plan/backend.h"

namespace redline {

// A backend whose device notes what it is given.
class Noted {
public:
    virtual ~Noted() = default;
    virtual Backend& backend() = 0;
    // {kernel, groups, threads, shared} of each launch since the last call.
    virtual Json take() = 0;
    // Where machine code is known here: "== KERNEL  FACTS", then the code, of each kernel that was launched.
    virtual Status write_code(std::FILE* to) = 0;
};

// The device of the Vulkan driver, as if it had so many compute units. `fragments`: products of few rows fill
// matrices by their elements, whatever the device would do.
Result<std::unique_ptr<Noted>> noted_vulkan(uint32_t units, bool fragments);
// A device of HIP of this target, "gfx1100", with so many multiprocessors as the runtime counts them.
Result<std::unique_ptr<Noted>> noted_hip(const std::string& target, uint32_t units);

}  // namespace redline
