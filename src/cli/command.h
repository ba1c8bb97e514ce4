// The commands of the program. They are the only code that prints: text and reports to stdout,
// everything else to stderr. Exit codes: 0 done, 1 the world was wrong (a file is missing, a download
// failed), 2 the command line was, 3 the device that was asked for cannot be had, 4 the answer was cut before
// its grammar or schema was complete, Interrupts::code() interrupted.
#pragma once

#include "base/result.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redline::cli {

enum ExitCode : int { kDone = 0, kFailed = 1, kUsage = 2, kNoDevice = 3, kCut = 4 };

struct Command {
    std::string_view name;
    std::string_view summary;  // one line for `redline --help`
    // `arguments` are those after the command's name; --help is one of them.
    int (*run)(const std::vector<std::string>& arguments);
};

extern const Command run_command;
extern const Command chat_command;
extern const Command serve_command;
extern const Command bench_command;
extern const Command info_command;
extern const Command eval_command;
extern const Command tokenize_command;
extern const Command quantize_command;
extern const Command imatrix_command;
extern const Command devices_command;
extern const Command models_command;
extern const Command doctor_command;
extern const Command verify_command;
extern const Command tune_command;
extern const Command report_command;
extern const Command pull_command;
extern const Command completion_command;

// In the order of the overview.
std::span<const Command* const> all_commands();

// "redline: MESSAGE" to stderr, in red on a terminal; returns `code`, or the one that the error's cause has.
int fail(const Error& problem, int code = kFailed);
// "redline: note: MESSAGE" to stderr.
void note(std::string_view message);

}  // namespace redline::cli
