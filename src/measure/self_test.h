// Tests whether the kernels that a model would use on a device compute correctly: each op of its plans alone,
// and each pair of which one hands its rows to the other, on random inputs, against the reference
// and its bound. A driver or a compiler that miscompiles a kernel is found before its text is read.
#pragma once

#include "engine/engine.h"

#include <set>

namespace redline {

struct WrongKernel {
    std::string key;   // see verdict_key()
    std::string what;  // "with 33 rows 37 of 64 results are wrong, the worst 0.31 in place of -2.7, ..."
};

struct SelfTest {
    std::set<std::string> right;  // keys
    std::vector<WrongKernel> wrong;
    // An op has no kernel left, because all that could compute it are wrong: the device cannot run it.
    std::optional<Error> lost;
    double seconds = 0.0;
};

// Tests the kernels without a verdict in `known`, in the variants that the backend has in use; those that
// were tested when they were tuned only with `tuned`. The backend refuses those that are wrong from then on
// (they are added to Backend::refused()), and their replacements are tested as well: the default in place of
// a variant, another variant in place of the default, and then simpler kernels. An error: the device failed,
// or `cancel`.
Result<SelfTest> self_test(const Model& model, Backend& backend, const EngineOptions& options,
                           const std::set<std::string>& known, bool tuned = true,
                           const std::atomic<bool>* cancel = nullptr);

}  // namespace redline
