// This program once more, as a child whose output is kept: what it does wrong, or does for too long, is not
// ours.
#pragma once

#include "base/result.h"

#include <atomic>
#include <string>
#include <vector>

namespace redline::cli {

struct ChildOutcome {
    std::string out, err;
    int code = 0;  // of exit(); of a signal 128 and its number
    bool timed_out = false;
    double seconds = 0.0;
};

// Runs with these arguments and an empty standard input; after `most_seconds`, or when `cancel` is set, it is
// ended. Of either output 4 MiB are kept.
Result<ChildOutcome> run_self(const std::vector<std::string>& arguments, double most_seconds,
                              const std::atomic<bool>* cancel);

}  // namespace redline::cli
