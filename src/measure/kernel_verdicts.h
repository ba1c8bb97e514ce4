// Checks a device's kernels before a model's first use of them, and remembers the verdicts.
#pragma once

#include "measure/self_test.h"

#include <map>

namespace redline {

// Verdicts on the kernels of a device, a driver and a build, by their keys (see SelfTest).
struct KernelVerdicts {
    std::set<std::string> right;
    std::map<std::string, std::string> wrong;  // key -> how it is wrong
};

struct CheckedKernels {
    KernelVerdicts before;  // verdicts known before
    SelfTest found;         // verdicts on the kernels that were tested now
};

// Tests the kernels that an engine of these options would run, unless a verdict is known; `again` tests all.
// The backend refuses kernels that are wrong from then on. Verdicts are kept in a file of the folder, or
// without a folder as long as the process lives. An error: they could not be tested.
Result<CheckedKernels> check_kernels(const Model& model, Backend& backend, const EngineOptions& options,
                                     const std::string& cache_folder, bool again);

// "2 of hip's kernels compute wrongly with this driver and are put aside (gated Q4_K ..., for one"
std::string put_aside_text(size_t count, const std::string& device, const std::string& one);

}  // namespace redline
