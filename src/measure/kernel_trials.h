// Runs single ops of lowered plans on a device and compares them with the reference.
#pragma once

#include "measure/op_alone.h"

namespace redline {

// An op of a plan; with another step `from`, which hands its rows to it, the pair of both.
struct TrialOf {
    std::string key;  // see kernel_key() and handed_key()
    const Plan* plan = nullptr;
    size_t from = 0, step = 0;
    TakenVariants from_variants = {}, variants = {};  // of their kernels, whatever the backend has in use
    AloneSize size = {};                              // the size for an op by itself
    bool is_pair() const { return from != step; }
};

// Tells for each trial what is wrong: "with 33 rows 37 of 64 results are wrong, the worst 0.31 in place of
// -2.7, ..."; empty: nothing. The device works while threads of the host make inputs and compute the
// reference. An error: the device failed, or `cancel`.
Result<std::vector<std::string>> wrong_of(std::span<const TrialOf> trials, Backend& backend,
                                          const std::atomic<bool>* cancel);

}  // namespace redline
