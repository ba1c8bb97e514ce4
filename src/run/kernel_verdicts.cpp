#include "run/kernel_verdicts.h"

#include "base/file.h"
#include "base/system_files.h"
#include "json/json.h"

#include <filesystem>
#include <mutex>

namespace redline {

namespace {

std::string device_key(const Backend& backend) {
    return fmt::format("{}; {}; kernels {:016x}", backend.device().name, backend.device().detail,
                       backend.kernels_hash());
}

// All verdicts of this machine, by device_key().
class VerdictFile {
public:
    explicit VerdictFile(const std::string& cache_folder)
        : folder_(cache_folder), path_(cache_folder + "/kernels.json") {
        all_ = read_json(text_of(path_));
        if (!all_.is_object()) all_ = Json::object();
    }

    KernelVerdicts read(const std::string& key) const {
        KernelVerdicts out;
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
    void write(const std::string& key, const KernelVerdicts& verdicts) {
        std::error_code ignored;  // creating the file says it
        std::filesystem::create_directories(folder_, ignored);
        all_[key] = {{"right", verdicts.right}, {"wrong", verdicts.wrong}};
        const std::string text = all_.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
        if (Result<AtomicWriter> out = AtomicWriter::create(path_))
            if (out.value().write(std::as_bytes(std::span(text))))
                static_cast<void>(out.value().commit(false).ok());
    }

private:
    std::string folder_, path_;
    Json all_;
};

// In place of a file.
struct Remembered {
    std::mutex mutex;
    std::map<std::string, KernelVerdicts> all;
};
Remembered& remembered() {
    static Remembered of_process;
    return of_process;
}

KernelVerdicts known(const std::string& key, const std::string& cache_folder) {
    if (!cache_folder.empty()) return VerdictFile(cache_folder).read(key);
    const std::lock_guard lock(remembered().mutex);
    return remembered().all[key];
}

void keep(const std::string& key, const KernelVerdicts& verdicts, const std::string& cache_folder) {
    if (!cache_folder.empty()) return VerdictFile(cache_folder).write(key, verdicts);
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
    check.found = RL_TRY(self_test(model, backend, options, check.before.right));
    const SelfTest& found = check.found;
    if (found.right.empty() && found.wrong.empty()) return check;
    KernelVerdicts all = check.before;
    all.right.insert(found.right.begin(), found.right.end());
    for (const WrongKernel& kernel : found.wrong) all.wrong[kernel.key] = kernel.what;
    keep(key, all, cache_folder);
    return check;
}

std::string put_aside_text(size_t count, const std::string& device, const std::string& one) {
    return fmt::format("{} of {}'s kernels {} wrongly with this driver and {} put aside ({}{}", count, device,
                       count == 1 ? "computes" : "compute", count == 1 ? "is" : "are", one,
                       count == 1 ? "" : ", for one");
}

}  // namespace redline
