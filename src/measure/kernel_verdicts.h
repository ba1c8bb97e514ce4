// Checks a device's kernels before a model's first use of them, and remembers the verdicts.
#pragma once

#include "measure/self_test.h"

#include <map>
#include <vector>

namespace redline {

// Verdicts on the kernels of a device, a driver and a build, by their keys (see verdict_key()).
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

// Kernels with a variant that is wrong: each one's verdict, and how it is wrong. Those of `elsewhere` are run
// in another variant, the others are put aside.
struct WrongKernels {
    std::vector<WrongKernel> aside, elsewhere;
};
WrongKernels wrong_kernels(const CheckedKernels& checked);
// "2 of hip's kernels compute wrongly with this driver and are put aside (gated Q4_K ..., for one: with 1 row
// ...)"; with `how` false without how it is wrong.
std::string wrong_text(const WrongKernels& wrong, const std::string& device, bool how);

}  // namespace redline
