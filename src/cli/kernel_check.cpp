#include "cli/kernel_check.h"

#include "base/file.h"
#include "base/system_files.h"
#include "cli/command.h"
#include "cli/commands/devices.h"
#include "cli/terminal/terminal.h"
#include "json/json.h"
#include "plan/device_choice.h"
#include "run/self_test.h"

#include <cstdlib>
#include <filesystem>
#include <map>

namespace redline::cli {

namespace {

// What is known of the kernels of a device, a driver and a build, by kernel_key().
struct Verdicts {
    std::set<std::string> right;
    std::map<std::string, std::string> wrong;  // and how
};

// All verdicts of this machine, by device_key().
class VerdictFile {
public:
    VerdictFile() : path_(cache_folder().empty() ? "" : cache_folder() + "/kernels.json") {
        if (!path_.empty()) all_ = read_json(text_of(path_));
        if (!all_.is_object()) all_ = Json::object();
    }

    Verdicts read(const std::string& key) const {
        Verdicts out;
        const auto found = all_.find(key);
        if (found == all_.end() || !found->is_object()) return out;
        const Json right = found->value("right", Json::array()),
                   wrong = found->value("wrong", Json::object());
        for (const Json& one : right)
            if (one.is_string()) out.right.insert(one.get<std::string>());
        for (const auto& [kernel, what] : wrong.items())
            if (what.is_string()) out.wrong[kernel] = what.get<std::string>();
        return out;
    }

    // Where it cannot be kept the kernels are checked again the next time.
    void write(const std::string& key, const Verdicts& verdicts) {
        if (path_.empty()) return;
        std::error_code ignored;  // creating the file says it
        std::filesystem::create_directories(cache_folder(), ignored);
        all_[key] = {{"right", verdicts.right}, {"wrong", verdicts.wrong}};
        const std::string text = all_.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
        if (Result<AtomicWriter> out = AtomicWriter::create(path_))
            if (out.value().write(std::as_bytes(std::span(text))))
                static_cast<void>(out.value().commit(false).ok());
    }

private:
    std::string path_;
    Json all_;
};

std::string device_key(const Backend& backend) {
    return fmt::format("{}; {}; kernels {:016x}", backend.device().name, backend.device().detail,
                       backend.kernels_hash());
}

std::set<std::string> keys_of(const std::map<std::string, std::string>& wrong) {
    std::set<std::string> keys;
    for (const auto& [key, what] : wrong) keys.insert(key);
    return keys;
}

// "2 of hip's kernels compute wrongly with this driver and are put aside (gated Q4_K ..., for one"
std::string put_aside(size_t count, const std::string& device, const std::string& one) {
    return fmt::format("{} of {}'s kernels {} wrongly with this driver and {} put aside ({}{}", count, device,
                       count == 1 ? "computes" : "compute", count == 1 ? "is" : "are", one,
                       count == 1 ? "" : ", for one");
}

void say_known(const std::string& device, const Verdicts& verdicts) {
    if (verdicts.wrong.empty()) return;
    note(put_aside(verdicts.wrong.size(), device, verdicts.wrong.begin()->first) +
         "); --self-test checks again");
}

void say_found(const std::string& device, const SelfTest& test) {
    const size_t wrong = test.wrong.size();
    if (test.right.size() + wrong == 0) return;
    for (const WrongKernel& kernel : test.wrong) say_detail(fmt::format("{}: {}", kernel.key, kernel.what));
    if (wrong > 0) note(put_aside(wrong, device, test.wrong[0].key) + ": " + test.wrong[0].what + ")");
    say(fmt::format("kernels: {} checked for the first time on {}, {} in {:.1f} s", test.right.size() + wrong,
                    device, wrong == 0 ? "all right" : fmt::format("{} wrong", wrong), test.seconds));
}

// Checks what is not known. Then: what the device cannot run any more, if anything.
Result<std::optional<Error>> check_once(LoadedModel& loaded, bool again, const SessionOptions& session) {
    Backend& backend = *loaded.backend;
    VerdictFile file;
    const std::string key = device_key(backend);
    Verdicts verdicts = again ? Verdicts() : file.read(key);
    say_known(loaded.device, verdicts);
    backend.refuse(keys_of(verdicts.wrong));
    Result<SelfTest> tested = self_test(*loaded.model, backend, session, verdicts.right);
    if (!tested) {
        note(fmt::format("{}'s kernels could not be checked: {}", loaded.device, tested.error().message));
        return std::optional<Error>();
    }
    SelfTest& test = tested.value();
    const bool found = !test.right.empty() || !test.wrong.empty();
    say_found(loaded.device, test);
    verdicts.right.merge(test.right);
    for (const WrongKernel& kernel : test.wrong) verdicts.wrong[kernel.key] = kernel.what;
    if (found) file.write(key, verdicts);
    loaded.refused = backend.refused();
    return std::move(test.lost);
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
        const std::optional<Error> lost =
            RL_TRY(check_once(loaded, options.kernel_check == KernelCheck::always, session));
        if (!lost) break;
        RL_TRY(take_other(loaded, options, *lost));
    }
    return {};
}

}  // namespace redline::cli
