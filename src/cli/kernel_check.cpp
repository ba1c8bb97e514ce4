#include "cli/kernel_check.h"

#include "cli/command.h"
#include "cli/commands/devices.h"
#include "cli/terminal/terminal.h"
#include "devices/device_choice.h"
#include "measure/kernel_verdicts.h"
#include "plan/kernel_key.h"

#include <cstdlib>

namespace redline::cli {

namespace {

void say_details(const SelfTest& test) {
    for (const WrongKernel& kernel : test.wrong)
        say_detail(fmt::format("{}: {}", kernel_text(kernel.key), kernel.what));
}

// Of a device that goes on without its wrong kernels: one line for all of them.
void say_verdicts(const std::string& device, const CheckedKernels& checked) {
    const SelfTest& test = checked.found;
    const size_t known = checked.before.wrong.size(), found = test.wrong.size(),
                 all = test.right.size() + found;
    if (found > 0)
        note(fmt::format("{}: {})", put_aside_text(known + found, device, test.wrong[0].key),
                         test.wrong[0].what));
    else if (known > 0)
        note(put_aside_text(known, device, checked.before.wrong.begin()->first) +
             "); --self-test checks again");
    if (all > 0 && found == 0)
        say(fmt::format("kernels: {} checked for the first time on {}, all right in {:.1f} s", all, device,
                        test.seconds));
}

// Checks what is not known.
Result<CheckedKernels> check_once(const Model& model, Backend& backend, const std::string& device,
                                  const ModelOptions& options, const SessionOptions& session) {
    Result<CheckedKernels> checked = redline::check_kernels(model, backend, session, cache_folder(),
                                                            options.kernel_check == KernelCheck::always);
    if (!checked)
        note(fmt::format("{}'s kernels could not be checked: {}", device, checked.error().message));
    else
        say_details(checked.value().found);
    return checked;
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

// For a device that computes wrongly whatever is put aside. `lost`: what it was first found to compute so.
Status take_other(LoadedModel& loaded, const ModelOptions& options, std::optional<Error>& lost) {
    if (RL_TRY(lower_level(loaded, options))) return {};
    const DeviceChoice choice{loaded.device, loaded.which, loaded.why};
    const std::optional<DeviceChoice> next =
        choice.why.empty() ? std::optional<DeviceChoice>() : next_choice(choice);
    if (!next)
        return Error{fmt::format("{}; --no-self-test runs it all the same", lost->message), Cause::no_device};
    note(fmt::format("{}: {} is taken", lost->message, next->backend));
    lost.reset();
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
    std::optional<Error> lost;
    while (loaded.device != "cpu") {
        const SessionOptions session = session_options(options, loaded.backend->device(), context, outputs);
        const Result<CheckedKernels> checked =
            check_once(*loaded.model, *loaded.backend, loaded.device, options, session);
        loaded.refused = loaded.backend->refused();
        if (!checked) break;
        const SelfTest& found = checked.value().found;
        loaded.kernel_check_seconds += found.seconds;
        loaded.kernels_checked += found.right.size() + found.wrong.size();
        if (!found.lost) {
            say_verdicts(loaded.device, checked.value());
            break;
        }
        if (!lost) lost = found.lost;
        RL_TRY(take_other(loaded, options, lost));
    }
    if (lost)
        note(fmt::format("{}: simpler kernels are taken ({})", lost->message,
                         loaded.backend->device().detail));
    return {};
}

Result<bool> put_wrong_aside(const Model& model, Backend& backend, const std::string& device,
                             const ModelOptions& options, const SessionOptions& session) {
    if (!wants_check(backend, options)) return true;
    const Result<CheckedKernels> checked = check_once(model, backend, device, options, session);
    if (!checked) return true;
    const std::optional<Error>& lost = checked.value().found.lost;
    if (lost)
        note(fmt::format("{}: all of its kernels are looked at", lost->message));
    else
        say_verdicts(device, checked.value());
    return !lost;
}

}  // namespace redline::cli
