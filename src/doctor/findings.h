// Findings about a machine: problems with running models on it, their causes, and remedies.
#pragma once

#include "doctor/machine.h"

namespace redline {

// good: no fault; note: worth knowing; warning: slower or smaller than possible; problem: a device cannot be
// used, or gives wrong results.
enum class Severity : uint8_t { good, note, warning, problem };
std::string_view severity_name(Severity severity);

struct Finding {
    Severity severity = Severity::good;
    std::string check;   // "permissions": an identifier for programs that read the report
    std::string what;    // a sentence with the figures of this machine
    std::string remedy;  // the exact action; empty: none is needed
};

// All findings of the checks, in their order.
std::vector<Finding> examine(const Machine& machine);
// The findings about the present moment that would make a model slow.
std::vector<Finding> examine_slowness(const Machine& machine);

}  // namespace redline
