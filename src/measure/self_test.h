// Whether the kernels that a model would use on a device compute what they should there: each op of its plans
// by itself, and each pair of which one leaves its row in int8 for the other, on random inputs, against the
// reference and within the bound that it computes. A driver or a compiler that gets one wrong is found before
// its text is read.
#pragma once

#include "engine/engine.h"

#include <set>

namespace redline {

struct WrongKernel {
    std::string key;   // see kernel_key()
    std::string what;  // "with 33 rows 37 of 64 results are wrong, the worst 0.31 in place of -2.7, ..."
};

struct SelfTest {
    std::set<std::string> right;  // keys
    std::vector<WrongKernel> wrong;
    // An op has no kernel left, since those that it could be made of are wrong: the device cannot run it.
    std::optional<Error> lost;
    double seconds = 0.0;
};

// Tests what `known` does not have. What is found wrong is refused by the backend from then on (it is added
// to Backend::refused()), and what takes its place is tested as well. An error: the device failed, or
// `cancel`.
Result<SelfTest> self_test(const Model& model, Backend& backend, const EngineOptions& options,
                           const std::set<std::string>& known, const std::atomic<bool>* cancel = nullptr);

}  // namespace redline
