#include "cli/kernel_check.h"

#include "cli/command.h"
#include "cli/commands/devices.h"
#include "cli/terminal/terminal.h"
#include "plan/device_choice.h"
#include "run/kernel_verdicts.h"

#include <cstdlib>

namespace redline::cli {

namespace {

void say_known(const std::string& device, const KernelVerdicts& verdicts) {
    if (verdicts.wrong.empty()) return;
    note(put_aside_text(verdicts.wrong.size(), device, verdicts.wrong.begin()->first) +
         "); --self-test checks again");
}

void say_found(const std::string& device, const SelfTest& test) {
    const size_t wrong = test.wrong.size();
    if (test.right.size() + wrong == 0) return;
    for (const WrongKernel& kernel : test.wrong) say_detail(fmt::format("{}: {}", kernel.key, kernel.what));
    if (wrong > 0) note(put_aside_text(wrong, device, test.wrong[0].key) + ": " + test.wrong[0].what + ")");
    say(fmt::format("kernels: {} checked for the first time on {}, {} in {:.1f} s", test.right.size() + wrong,
                    device, wrong == 0 ? "all right" : fmt::format("{} wrong", wrong), test.seconds));
}

// Checks what is not known. Then: what the device cannot run any more, if anything.
Result<std::optional<Error>> check_once(const Model& model, Backend& backend, const std::string& device,
                                        bool again, const SessionOptions& session, SelfTest& found) {
    Result<CheckedKernels> checked = redline::check_kernels(model, backend, session, cache_folder(), again);
    if (!checked) {
        note(fmt::format("{}'s kernels could not be checked: {}", device, checked.error().message));
        return std::optional<Error>();
    }
    say_known(device, checked.value().before);
    say_found(device, checked.value().found);
    found = std::move(checked.value().found);
    return std::move(found.lost);
}

// Opens the device with the kernels of a lower level, if it has others.
Result<bool> lower_level(LoadedModel& loaded, const ModelOptions& options) {
    if (loaded.device != "vulkan") return false;
    const std::string before = loaded.backend->device().detail;
    std::string& level = loaded.vulkan_level;
    if (level.empty()) level = options.vulkan_level.empty() ? "workgroup" : options.vulkan_level;
    bool below = false;
    for (const std::string name : {"workgroup", "bfloat16", "matrix", "dot", "plain"}) {
        if (below) {
            level = name;
            loaded.backend.reset();
            loaded.backend = RL_TRY(open_again(loaded, options));
            if (loaded.backend->device().detail != before) return true;
        }
        below = below || name == level;
    }
    return false;
}

Status take_other(LoadedModel& loaded, const ModelOptions& options, const Error& lost) {
    if (RL_TRY(lower_level(loaded, options))) {
        note(
            fmt::format("{}: simpler kernels are taken ({})", lost.message, loaded.backend->device().detail));
        return {};
    }
    const DeviceChoice choice{loaded.device, loaded.which, loaded.why};
    const std::optional<DeviceChoice> next =
        choice.why.empty() ? std::optional<DeviceChoice>() : next_choice(choice);
    if (!next)
        return Error{fmt::format("{}; --no-self-test runs it all the same", lost.message), Cause::no_device};
    note(fmt::format("{}: {} is taken", lost.message, next->backend));
    loaded.backend.reset();
    loaded.device = next->backend;
    loaded.which = next->device;
    loaded.why = next->why;
    return open_for(loaded, options);
}

// REDLINE_SELF_TEST=0 is for those who start the program often where nothing is remembered.
bool wants_check(const Backend& backend, const ModelOptions& options) {
    if (options.kernel_check != KernelCheck::first_use) return options.kernel_check == KernelCheck::always;
    const char* const given = std::getenv("REDLINE_SELF_TEST");
    return !backend.device().on_cpu && (!given || std::string_view(given) != "0");
}

}  // namespace

Status check_kernels(LoadedModel& loaded, const ModelOptions& options, uint64_t context, uint32_t outputs) {
    if (!wants_check(*loaded.backend, options)) return {};
    while (loaded.device != "cpu") {
        const SessionOptions session = session_options(options, loaded.backend->device(), context, outputs);
        SelfTest found;
        const std::optional<Error> lost =
            RL_TRY(check_once(*loaded.model, *loaded.backend, loaded.device,
                              options.kernel_check == KernelCheck::always, session, found));
        loaded.refused = loaded.backend->refused();
        loaded.kernel_check_seconds += found.seconds;
        loaded.kernels_checked += found.right.size() + found.wrong.size();
        if (!lost) break;
        RL_TRY(take_other(loaded, options, *lost));
    }
    return {};
}

Result<bool> put_wrong_aside(const Model& model, Backend& backend, const std::string& device,
                             const ModelOptions& options, const SessionOptions& session) {
    if (!wants_check(backend, options)) return true;
    SelfTest found;
    const std::optional<Error> lost = RL_TRY(
        check_once(model, backend, device, options.kernel_check == KernelCheck::always, session, found));
    if (lost) note(fmt::format("{}: all of its kernels are looked at", lost->message));
    return !lost;
}

}  // namespace redline::cli
