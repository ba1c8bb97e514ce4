#include "cli/command.h"

namespace redline::cli {

std::span<const Command* const> all_commands() {
    static const Command* const kCommands[] = {
        &run_command,    &chat_command,      &serve_command,    &bench_command,   &info_command,
        &eval_command,   &tokenize_command,  &quantize_command, &imatrix_command, &devices_command,
        &models_command, &pull_command,      &doctor_command,   &verify_command,  &tune_command,
        &report_command, &completion_command};
    return kCommands;
}

}  // namespace redline::cli
