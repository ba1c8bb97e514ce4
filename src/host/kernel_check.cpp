#include "host/kernel_check.h"

#include "devices/device_choice.h"
#include "host/load_model.h"
#include "host/rank_job.h"
#include "host/tensor_split.h"
#include "measure/kernel_verdicts.h"
#include "plan/kernel_key.h"

namespace redline {

namespace {

void say_details(const SelfTest& test, Notes& notes) {
    for (const WrongKernel& kernel : test.wrong)
        notes.detail(fmt::format("{}: {}", kernel_text(kernel.key), kernel.what));
}

// One line for all wrong kernels of a device that goes on without them, or with other variants of them.
void say_verdicts(const std::string& device, const CheckedKernels& checked, const HostOptions& options) {
    Notes& notes = *options.notes;
    const SelfTest& test = checked.found;
    const size_t known = checked.before.wrong.size(), found = test.wrong.size(),
                 all = test.right.size() + found;
    const WrongKernels wrong = wrong_kernels(checked);
    if (found > 0)
        notes.note(wrong_text(wrong, device, true));
    else if (known > 0)
        notes.note(
            fmt::format("{}; {} checks again", wrong_text(wrong, device, false), options.names->check_again));
    if (all > 0 && found == 0)
        notes.inform(fmt::format("kernels: {} checked for the first time on {}, all right in {:.1f} s", all,
                                 device, test.seconds));
}

// Checks what is not known.
Result<CheckedKernels> check_once(const Model& model, Backend& backend, const std::string& device,
                                  const HostOptions& options, const SessionOptions& session) {
    const Work checking(*options.notes, "checking kernels");
    Result<CheckedKernels> checked = check_kernels(model, backend, session, options.cache_folder,
                                                   options.kernel_check == KernelCheck::always);
    if (!checked)
        options.notes->note(
            fmt::format("{}'s kernels could not be checked: {}", device, checked.error().message));
    else
        say_details(checked.value().found, *options.notes);
    return checked;
}

// Opens the device with the kernels of a lower level, if it has others.
Result<bool> lower_level(const LoadedModel& loaded, OpenDevice& device, const HostOptions& options) {
    if (device.name() != "vulkan") return false;
    const std::string before = device.backend->device().detail;
    std::string& level = device.vulkan_level;
    if (level.empty()) level = options.vulkan_level.empty() ? "workgroup" : options.vulkan_level;
    bool below = false;
    for (const std::string name : {"workgroup", "bfloat16", "matrix", "dot", "plain"}) {
        if (below) {
            level = name;
            device.backend.reset();
            device.backend = RL_TRY(open_again(loaded, device, options));
            if (device.backend->device().detail != before) return true;
        }
        below = below || name == level;
    }
    return false;
}

// For a device that computes wrongly whatever is put aside. `lost`: what it was first found to compute so.
Status take_other(LoadedModel& loaded, OpenDevice& device, const HostOptions& options,
                  std::optional<Error>& lost) {
    if (RL_TRY(lower_level(loaded, device, options))) return {};
    const DeviceChoice& choice = device.choice;
    std::optional<DeviceChoice> next =
        choice.why.empty() || loaded.is_shared() ? std::optional<DeviceChoice>() : next_choice(choice);
    if (!next)
        return Error{fmt::format("{}; {} runs it all the same", lost->message, options.names->unchecked),
                     Cause::no_device};
    options.notes->note(fmt::format("{}: {} is taken", lost->message, next->backend));
    lost.reset();
    device.backend.reset();
    device.choice = std::move(*next);
    return open_for(loaded, options);
}

bool wants_check(const Backend& backend, const HostOptions& options) {
    if (options.kernel_check != KernelCheck::first_use) return options.kernel_check == KernelCheck::always;
    return !backend.device().on_cpu;
}

Status check_device(LoadedModel& loaded, OpenDevice& device, const HostOptions& options, uint64_t context,
                    uint32_t outputs) {
    if (!wants_check(*device.backend, options)) return {};
    std::optional<Error> lost;
    while (device.name() != "cpu") {
        const SessionOptions session =
            with_ranks(session_options(options, device.backend->device(), context, outputs), loaded);
        const std::string name = loaded.label(device.backend.get());
        const Result<CheckedKernels> checked =
            check_once(*loaded.model, *device.backend, name, options, session);
        device.refused = device.backend->refused();
        if (!checked) break;
        const SelfTest& found = checked.value().found;
        device.kernel_check_seconds += found.seconds;
        device.kernels_checked += found.right.size() + found.wrong.size();
        if (!found.lost) {
            say_verdicts(name, checked.value(), options);
            break;
        }
        if (!lost) lost = found.lost;
        RL_TRY(take_other(loaded, device, options, lost));
    }
    if (lost)
        options.notes->note(fmt::format("{}: simpler kernels are taken ({})", lost->message,
                                        device.backend->device().detail));
    return {};
}

}  // namespace

Status check_kernels(LoadedModel& loaded, const HostOptions& options, uint64_t context, uint32_t outputs) {
    for (OpenDevice* device : loaded.devices()) {
        if (device->rank > 0)
            RL_TRY(options.job->prepare(*device, options, context, outputs,
                                        loaded.divides ? rank_places(loaded) : std::vector<RankPlace>()));
        else
            RL_TRY(check_device(loaded, *device, options, context, outputs));
    }
    return {};
}

Result<bool> put_wrong_aside(const Model& model, Backend& backend, const std::string& device,
                             const HostOptions& options, const SessionOptions& session) {
    if (!wants_check(backend, options)) return true;
    const Result<CheckedKernels> checked = check_once(model, backend, device, options, session);
    if (!checked) return true;
    const std::optional<Error>& lost = checked.value().found.lost;
    if (lost)
        options.notes->note(fmt::format("{}: all of its kernels are looked at", lost->message));
    else
        say_verdicts(device, checked.value(), options);
    return !lost;
}

}  // namespace redline
