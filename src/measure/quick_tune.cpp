#include "measure/quick_tune.h"

#include <algorithm>

namespace redline {

namespace {

// Larger than the caches of desktop cards (96 MB), and quickly made and loaded.
constexpr uint64_t kCopyBytes = uint64_t(160) << 20, kElements = uint64_t(1) << 26;
constexpr double kStepsSeconds = 0.008;
// The share of all timed ops' time that a variant has to save: an op alone may gain what its neighbours lose.
// On an H100 two variants that promised 1 % of a step or less made it 1 to 3 % slower.
constexpr double kLeastShare = 0.02;

// Resets kernels that save too little to their defaults; returns those, to be kept in the file.
std::vector<TunedKernel> give_up_little(std::vector<TunedKernel>& kernels) {
    double all = 0.0;
    for (const TunedKernel& kernel : kernels) all += double(kernel.count) * kernel.default_seconds;
    std::vector<TunedKernel> given_up;
    for (TunedKernel& kernel : kernels) {
        const double saved = double(kernel.count) * (kernel.default_seconds - kernel.seconds);
        if (kernel.variant.empty() || saved >= kLeastShare * all) continue;
        kernel.variant.clear();
        kernel.seconds = kernel.default_seconds;
        given_up.push_back(kernel);
        given_up.back().quick = true;
    }
    return given_up;
}

}  // namespace

size_t QuickTune::faster() const {
    return size_t(
        std::ranges::count_if(kernels, [](const TunedKernel& kernel) { return !kernel.variant.empty(); }));
}

std::string QuickTune::text(const std::string& device) const {
    const std::string some =
        kernels.size() < planned ? fmt::format("{} of {}", kernels.size(), planned) : fmt::to_string(planned);
    std::string out = fmt::format("kernels: {} timed on {} in {:.1f} s, ", some, device, seconds);
    if (faster() == 0) return out + "no variant is faster than the default";
    return out +
           fmt::format("{} with a faster variant than the default: predicted {:.2f} times as fast together",
                       faster(), 1.0 / (1.0 - saved_share(kernels, RowClass::one)));
}

Result<QuickTune> quick_tune(const Model& model, Backend& backend, const EngineOptions& options,
                             TuneClock& clock, const std::string& folder, bool again, TuneOptions how) {
    QuickTune out;
    how.seconds = kQuickSeconds;
    how.prompts = false;
    how.copy_bytes = std::min(how.copy_bytes, kCopyBytes);
    how.elements = kElements;
    how.steps_seconds = kStepsSeconds;
    how.nearest = true;
    how.known = tuned_keys(folder, backend, !again);
    how.planned = [&](std::span<const TunedKernel> kernels) {
        out.planned += kernels.size();
        std::vector<TunedKernel> all(kernels.begin(), kernels.end());
        for (TunedKernel& kernel : all) kernel.quick = true;
        return keep_tuned(folder, backend, all);
    };
    const auto found = [&](const TunedKernel& kernel) {
        TunedKernel quick = kernel;
        quick.quick = true;
        return keep_tuned(folder, backend, {&quick, 1});
    };
    Tuning tuning = RL_TRY(tune(model, backend, options, clock, how, found));
    out.kernels = std::move(tuning.kernels);
    RL_TRY(keep_tuned(folder, backend, give_up_little(out.kernels)));
    out.seconds = tuning.seconds;
    backend.use(tuned_variants(folder, backend));
    return out;
}

}  // namespace redline
