#include "measure/kernel_verdicts.h"

#include "measure/device_file.h"
#include "plan/kernel_key.h"

#include <mutex>

namespace redline {

namespace {

DeviceFile verdict_file(const std::string& cache_folder) {
    return {cache_folder, "kernels.json", kKernelKeyVersion};
}

KernelVerdicts verdicts_in(const Json& device) {
    KernelVerdicts out;
    const Json right = device.value("right", Json::array()), wrong = device.value("wrong", Json::object());
    for (const Json& one : right)
        if (one.is_string()) out.right.insert(one.get<std::string>());
    for (const auto& [kernel, what] : wrong.items())
        if (what.is_string()) out.wrong[kernel] = what.get<std::string>();
    return out;
}

// Verdicts of this process, where there is no folder for a file.
struct Remembered {
    std::mutex mutex;
    std::map<std::string, KernelVerdicts> all;
};
Remembered& remembered() {
    static Remembered of_process;
    return of_process;
}

KernelVerdicts known(const std::string& key, const std::string& cache_folder) {
    if (!cache_folder.empty()) return verdicts_in(verdict_file(cache_folder).read(key));
    const std::lock_guard lock(remembered().mutex);
    return remembered().all[key];
}

void keep(const std::string& key, const KernelVerdicts& verdicts, const std::string& cache_folder) {
    // A write that fails is ignored: the kernels are then checked again the next time.
    if (!cache_folder.empty()) {
        static_cast<void>(verdict_file(cache_folder).update(key, [&](Json& device) {
            device = {{"right", verdicts.right}, {"wrong", verdicts.wrong}};
        }));
        return;
    }
    const std::lock_guard lock(remembered().mutex);
    remembered().all[key] = verdicts;
}

}  // namespace

Result<CheckedKernels> check_kernels(const Model& model, Backend& backend, const EngineOptions& options,
                                     const std::string& cache_folder, bool again) {
    const std::string key = device_key(backend);
    CheckedKernels check;
    if (!again) check.before = known(key, cache_folder);
    std::set<std::string> refused;
    for (const auto& [kernel, what] : check.before.wrong) refused.insert(kernel);
    backend.refuse(std::move(refused));
    check.found = RL_TRY(self_test(model, backend, options, check.before.right, again));
    const SelfTest& found = check.found;
    if (found.right.empty() && found.wrong.empty()) return check;
    KernelVerdicts all = check.before;
    all.right.insert(found.right.begin(), found.right.end());
    for (const WrongKernel& kernel : found.wrong) all.wrong[kernel.key] = kernel.what;
    keep(key, all, cache_folder);
    return check;
}

WrongKernels wrong_kernels(const CheckedKernels& checked) {
    std::map<std::string, std::string> wrong = checked.before.wrong;
    for (const WrongKernel& one : checked.found.wrong) wrong[one.key] = one.what;
    std::set<std::string_view> right, met;
    for (const std::string& key : checked.before.right) right.insert(kernel_of_verdict(key));
    for (const std::string& key : checked.found.right) right.insert(kernel_of_verdict(key));
    WrongKernels out;
    for (const auto& [key, what] : wrong)
        if (const std::string_view kernel = kernel_of_verdict(key); met.insert(kernel).second)
            (right.contains(kernel) ? out.elsewhere : out.aside).push_back({key, what});
    return out;
}

std::string wrong_text(const WrongKernels& wrong, const std::string& device, bool how) {
    std::string text;
    const auto add = [&](const std::vector<WrongKernel>& kernels, std::string_view one,
                         std::string_view many) {
        if (kernels.empty()) return;
        const WrongKernel& first = kernels.front();
        const bool single = kernels.size() == 1;
        text += fmt::format("{}{} of {}'s kernels {} wrongly with this driver and {} ({}{}{})",
                            text.empty() ? "" : "; ", kernels.size(), device, single ? "computes" : "compute",
                            single ? one : many, kernel_text(first.key), single ? "" : ", for one",
                            how ? ": " + first.what : "");
    };
    add(wrong.aside, "is put aside", "are put aside");
    add(wrong.elsewhere, "is run in another variant", "are run in another variant");
    return text;
}

}  // namespace redline
