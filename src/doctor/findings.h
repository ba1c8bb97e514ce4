// What is wrong with a machine for running models, why, and what mends it.
#pragma once

#include "doctor/machine.h"

namespace redline {

// good: as it should be; note: worth knowing; warning: slower or smaller than it could be; problem: a device
// cannot be used, or gives wrong results.
enum class Severity : uint8_t { good, note, warning, problem };
std::string_view severity_name(Severity severity);

struct Finding {
    Severity severity = Severity::good;
    std::string check;   // "permissions", for programs that read the report
    std::string what;    // a sentence with the figures of this machine
    std::string remedy;  // exactly what to do; empty: nothing
};

// All that the checks find, in their order.
std::vector<Finding> examine(const Machine& machine);
// Of these, what would make a model that ran just now slow.
std::vector<Finding> examine_slowness(const Machine& machine);

}  // namespace redline
