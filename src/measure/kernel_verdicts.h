// The check of a device's kernels before a model's first use of them, and what is remembered of it.
#pragma once

#include "measure/self_test.h"

#include <map>

namespace redline {

// What is known of the kernels of a device, a driver and a build, by their keys (see SelfTest).
struct KernelVerdicts {
    std::set<std::string> right;
    std::map<std::string, std::string> wrong;  // and how
};

struct CheckedKernels {
    KernelVerdicts before;  // that was known
    SelfTest found;         // of what was not
};

// Checks what an engine of these options would run and nothing is known of; `again`: nothing is. What
// computes wrongly is refused by the backend from then on. Verdicts are kept in a file of the folder, without
// one for as long as the process lives. An error: they could not be had.
Result<CheckedKernels> check_kernels(const Model& model, Backend& backend, const EngineOptions& options,
                                     const std::string& cache_folder, bool again);

// "2 of hip's kernels compute wrongly with this driver and are put aside (gated Q4_K ..., for one"
std::string put_aside_text(size_t count, const std::string& device, const std::string& one);

}  // namespace redline
