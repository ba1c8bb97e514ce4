#include "cli/expected_speed.h"

#include "base/file.h"
#include "base/system_files.h"
#include "doctor/findings.h"
#include "json/json.h"
#include "run/split.h"

#include <filesystem>

namespace redline::cli {

static std::string measured_path(const std::string& cache_folder) {
    return cache_folder + "/bandwidth.json";
}
static std::string measured_key(const Backend& backend) {
    return backend.device().name + "; " + backend.device().detail;
}
static Json read_measured(const std::string& cache_folder) {
    const Json all = read_json(text_of(measured_path(cache_folder)));
    return all.is_object() ? all : Json::object();
}

double measured_bandwidth(Backend& backend, const std::string& cache_folder) {
    const double measured = backend.measure_read_bandwidth();
    if (measured <= 0.0 || cache_folder.empty()) return measured;
    Json all = read_measured(cache_folder);
    all[measured_key(backend)] = measured;
    const std::string text = all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
    // Where it cannot be kept it is measured again the next time.
    std::error_code ignored;
    std::filesystem::create_directories(cache_folder, ignored);
    if (Result<AtomicWriter> out = AtomicWriter::create(measured_path(cache_folder)))
        if (out.value().write(std::as_bytes(std::span(text))))
            static_cast<void>(out.value().commit(false).ok());
    return measured;
}

double known_bandwidth(Backend& backend, const std::string& cache_folder) {
    if (cache_folder.empty()) return 0.0;
    const Json all = read_measured(cache_folder);
    const auto known = all.find(measured_key(backend));
    if (known != all.end() && known->is_number() && known->get<double>() > 0.0) return known->get<double>();
    return measured_bandwidth(backend, cache_folder);
}

Bandwidth bandwidth_of(const LoadedModel& loaded) {
    return [&loaded](const Backend& backend) {
        return &backend == loaded.cpu.get() ? loaded.cpu_bandwidth : loaded.bandwidth;
    };
}

double most_tokens_per_second(const LoadedModel& loaded, uint64_t context, uint64_t position) {
    std::vector<Placement> placements = loaded.placements;
    const Result<Plan> plan = loaded.model->plan(1, 1, {context, 1, loaded.cache});
    if (!plan) return 0.0;
    if (placements.empty()) placements = {{loaded.backend.get(), 0, plan.value().steps.size()}};
    SessionOptions session;
    session.context = context;
    session.cache = loaded.cache;
    const Result<double> most =
        most_tokens_per_second(*loaded.model, session, placements, bandwidth_of(loaded), position);
    return most ? most.value() : 0.0;
}

std::string explain_slow(const LoadedModel& loaded, uint64_t context, const Generation& generation) {
    constexpr uint64_t kLeastSteps = 16;
    constexpr double kFarBelow = 0.25;
    if (generation.steps < kLeastSteps || generation.decode_seconds <= 0.0) return "";
    const double speed = double(generation.steps) / generation.decode_seconds;
    const double most = most_tokens_per_second(loaded, context, generation.context_sum / generation.steps);
    if (most <= 0.0 || speed >= kFarBelow * most) return "";
    return fmt::format(
        "{:.1f} tok/s are {:.0f} % of the {:.1f} that the bandwidth measured on {} would allow: {}", speed,
        100.0 * speed / most, most, loaded.device, likely_causes(read_machine()));
}

std::string likely_causes(const Machine& machine) {
    std::vector<std::string> causes;
    for (const Finding& finding : examine_slowness(machine))
        causes.push_back(fmt::format("{} ({})", finding.what, finding.remedy));
    if (!causes.empty()) return fmt::format("{}", fmt::join(causes, "; "));
    return "other programs, low clocks or swapping may slow it down; redline doctor looks for what does";
}

}  // namespace redline::cli
