// Runs this program once more as a child process and keeps its output, so that a fault or a hang there does
// not affect this process.
#pragma once

#include "base/result.h"

#include <atomic>
#include <string>
#include <vector>

namespace redline::os {

struct ChildOutcome {
    std::string out, err;
    int code = 0;  // of exit(); 128 and the number of a signal that ended it
    bool timed_out = false;
    double seconds = 0.0;
};

// Runs the program with these arguments and an empty standard input. It is ended after `most_seconds`, or
// when `cancel` is set. At most 4 MiB of each output are kept.
Result<ChildOutcome> run_self(const std::vector<std::string>& arguments, double most_seconds,
                              const std::atomic<bool>* cancel);

}  // namespace redline::os
