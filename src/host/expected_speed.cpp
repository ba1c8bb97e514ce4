#include "host/expected_speed.h"

#include "doctor/findings.h"
#include "host/rank_job.h"
#include "host/split.h"
#include "host/tensor_split.h"
#include "json/json.h"
#include "measure/device_file.h"
#include "measure/rate_limits.h"
#include "places/pipeline.h"
#include "plan/kernel_key.h"

#include "version_generated.h"

#include <algorithm>
#include <mutex>
#include <set>

namespace redline {

namespace {

// Bytes per second that devices read, by key_of().
DeviceFile bandwidth_file(const std::string& folder) {
    return {folder, "bandwidth.json", 1};
}

// Paces by pace_key(), and times of ops by ops_key() and kernel_key().
DeviceFile pace_file(const std::string& folder) {
    return {folder, "pace.json", kKernelKeyVersion};
}

std::string key_of(const Backend& backend) {
    return backend.device().name + "; " + backend.device().detail;
}

// Where it cannot be kept it is measured again the next time.
void keep(const DeviceFile& file, const std::string& key, const std::function<void(Json&)>& change) {
    static_cast<void>(file.update(key, change).ok());
}

double number_of(const Json& object, const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_number() ? found->get<double>() : 0.0;
}

}  // namespace

Cost step_cost(const Plan& plan, const StepShape& shape) {
    Cost sum;
    for (const Step& step : plan.steps) sum = sum + cost(step.op, plan, shape);
    return sum;
}

std::string explain_rate(const DeviceInfo& device, double bytes_per_second) {
    const RateLimits most = rate_limits(device);
    if (bytes_per_second <= 0.0)
        return fmt::format("how fast {} reads could not be measured: no speed is predicted", device.name);
    if (bytes_per_second <= most.bytes_per_second) return "";
    return fmt::format(
        "{} seems to read {:.0f} GB/s, and {} can read {:.0f} at most: {}no speed is predicted", device.name,
        bytes_per_second * 1e-9, most.of, most.bytes_per_second * 1e-9,
        device.threads > 0 ? "" : "its driver may compute nothing, and ");
}

// 0 where it cannot be the device's, and from then on whatever is measured there, which is said once.
static double believed(const Backend& backend, double bytes_per_second, Notes& notes) {
    static std::mutex mutex;
    static std::set<std::string> not_believed;
    const std::lock_guard lock(mutex);
    if (const std::string why = explain_rate(backend.device(), bytes_per_second); !why.empty())
        if (not_believed.insert(key_of(backend)).second) notes.note(why);
    return not_believed.contains(key_of(backend)) ? 0.0 : bytes_per_second;
}

double measured_bandwidth(Backend& backend, const std::string& cache_folder, Notes& notes) {
    const Work measuring(notes, "measuring the bandwidth");
    const double measured = believed(backend, backend.measure_read_bandwidth(), notes);
    if (measured > 0.0 && !cache_folder.empty())
        keep(bandwidth_file(cache_folder), key_of(backend),
             [&](Json& known) { known["bytes_per_second"] = measured; });
    return measured;
}

double known_bandwidth(Backend& backend, const std::string& cache_folder, Notes& notes) {
    if (cache_folder.empty()) return 0.0;
    const double known = number_of(bandwidth_file(cache_folder).read(key_of(backend)), "bytes_per_second");
    return explain_rate(backend.device(), known).empty() ? known
                                                         : measured_bandwidth(backend, cache_folder, notes);
}

static std::string pace_key(const Backend& backend, const Format& format,
                            const std::optional<ExpertLayer>& experts) {
    std::string key = fmt::format("{}; {}; {}", key_of(backend), RL_VERSION, format.name);
    if (experts)
        key += fmt::format("; {} of {} experts {}x{} {} {}", experts->used, experts->count, experts->hidden,
                           experts->dim, experts->format->name, experts->down->name);
    return key;
}

// The plan of a token whose ops all run on this device.
static Result<Plan> lowered_plan(Backend& backend, const Model& model, CacheTypes cache) {
    constexpr uint64_t kContext = 4096;
    const CacheSizing sizing{kContext, 1, cache};
    const Placement whole{&backend, 0, divided(RL_TRY(model.plan(1, 1, sizing))).steps.size()};
    return std::move(RL_TRY(Places::lowered_plans(model, sizing, {&whole, 1}, true))[0]);
}

static std::string ops_key(const Backend& backend) {
    return fmt::format("{}; {}; ops", key_of(backend), RL_VERSION);
}

// The times that the file has of a device's ops.
static Json kept_ops(const Backend& backend, const std::string& folder) {
    return folder.empty() ? Json::object() : pace_file(folder).read(ops_key(backend));
}

// Beside what is kept of others by then.
static void keep_ops(const Backend& backend, const std::string& folder,
                     const std::map<std::string, double>& seconds) {
    if (folder.empty()) return;
    keep(pace_file(folder), ops_key(backend), [&](Json& kept) {
        for (const auto& [op, each] : seconds) kept[op] = each;
    });
}

// DecodePace::op_seconds: what is kept, if `folder` has it, or else, or `anew`, what is measured.
static std::map<std::string, double> find_history(Backend& backend, const Model& model, CacheTypes cache,
                                                  const DecodePace& pace, const std::string& folder,
                                                  bool anew) {
    const Result<Plan> plan = lowered_plan(backend, model, cache);
    if (!plan) return {};
    const Json kept = kept_ops(backend, folder);
    std::map<std::string, double> known;
    for (const Step& step : plan.value().steps) {
        const std::string op = kernel_key(step.op, plan.value());
        if (!anew && kept.contains(op)) known[op] = std::max(0.0, number_of(kept, op.c_str()));
    }
    const size_t before = known.size();
    auto all = history_seconds(backend, plan.value(), pace, std::move(known));
    if (all.size() > before) keep_ops(backend, folder, all);
    return all;
}

double find_first(Backend& device, const Model& model, CacheTypes cache, const DecodePace& pace,
                  const std::string& folder, bool anew) {
    const Result<Plan> plan = lowered_plan(device, model, cache);
    if (!plan) return 0.0;
    std::set<std::string> ops;
    for (const Step& step : plan.value().steps) ops.insert(kernel_key(step.op, plan.value()));
    const std::string key = fmt::format("first of {}", fmt::join(ops, "; "));
    const Json kept = kept_ops(device, folder);
    if (!anew && kept.contains(key)) return std::max(0.0, number_of(kept, key.c_str()));
    const Result<double> seconds = first_seconds(device, plan.value(), pace);
    if (!seconds) return 0.0;
    keep_ops(device, folder, {{key, seconds.value()}});
    return seconds.value();
}

// The pace that the folder's file has; without one, or `anew`, a measured one.
static DecodePace find_products_pace(Backend& backend, const Model& model, const std::string& folder,
                                     bool anew, Notes& notes) {
    const Format* const format = main_format(model.file_weights());
    if (!format) return {};
    const std::optional<ExpertLayer> experts =
        expert_layer(model.file_weights(), model.config().experts_used);
    const std::string key = pace_key(backend, *format, experts);
    if (const Json known = anew || folder.empty() ? Json::object() : pace_file(folder).read(key);
        !known.empty()) {
        const DecodePace pace{number_of(known, "bytes_per_second"), number_of(known, "step_seconds"),
                              number_of(known, "run_seconds"), number_of(known, "expert_seconds")};
        if (explain_rate(backend.device(), pace.bytes_per_second).empty() && pace.step_seconds >= 0.0 &&
            pace.run_seconds >= 0.0 && pace.expert_seconds >= 0.0)
            return pace;
    }
    const Work measuring(notes, "measuring kernels");
    const DecodePace pace = decode_pace(backend, *format, experts);
    if (pace.bytes_per_second <= 0.0 || believed(backend, pace.bytes_per_second, notes) <= 0.0) return {};
    if (!folder.empty())
        keep(pace_file(folder), key, [&](Json& known) {
            known = {{"bytes_per_second", pace.bytes_per_second},
                     {"step_seconds", pace.step_seconds},
                     {"run_seconds", pace.run_seconds},
                     {"expert_seconds", pace.expert_seconds}};
        });
    return pace;
}

static DecodePace find_pace(Backend& backend, const Model& model, CacheTypes cache, const std::string& folder,
                            bool anew, Notes& notes) {
    DecodePace pace = find_products_pace(backend, model, folder, anew, notes);
    if (pace.bytes_per_second > 0.0)
        pace.op_seconds = find_history(backend, model, cache, pace, folder, anew);
    return pace;
}

DecodePace measured_pace(Backend& backend, const Model& model, CacheTypes cache,
                         const std::string& cache_folder, Notes& notes) {
    return find_pace(backend, model, cache, cache_folder, true, notes);
}

DecodePace known_pace(Backend& backend, const Model& model, CacheTypes cache, const std::string& cache_folder,
                      Notes& notes) {
    return cache_folder.empty() ? DecodePace{} : find_pace(backend, model, cache, cache_folder, false, notes);
}

std::optional<double> find_crossing(Backend& first, Backend& second, const Model& model,
                                    const std::string& cache_folder, bool anew) {
    const Format* const format = main_format(model.file_weights());
    if (!format || (cache_folder.empty() && !anew)) return {};
    const std::string key = fmt::format("{}; {}", key_of(first), pace_key(second, *format, {}));
    const Json known = cache_folder.empty() ? Json::object() : pace_file(cache_folder).read(key);
    std::optional<double> kept;
    if (const auto found = known.find("crossing_seconds"); found != known.end() && found->is_number())
        kept = std::max(0.0, found->get<double>());
    if (kept && !anew) return kept;
    const std::optional<double> seconds = crossing_seconds(first, second, *format);
    if (!seconds) return kept;  // the device may be full by now
    if (!cache_folder.empty())
        keep(pace_file(cache_folder), key, [&](Json& pair) { pair["crossing_seconds"] = *seconds; });
    return seconds;
}

static bool is_small(const LoadedModel& loaded) {
    return loaded.model->gguf().file_bytes() < uint64_t(1) << 30;
}

// Between places that follow each other, the CPU with every device.
static void measure_crossings(LoadedModel& loaded, const HostOptions& options, bool anew) {
    const std::string& folder = options.cache_folder;
    const auto add = [&](const OpenDevice& from, const OpenDevice& to) {
        if (from.rank != to.rank) {
            loaded.speed.crossings[{from.backend.get(), to.backend.get()}] =
                options.job->hop_seconds(from, to, loaded.model->config().dim * sizeof(float));
            return;
        }
        if (from.rank > 0) return;
        // Those of unknown length are left out.
        loaded.speed.crossings[{from.backend.get(), to.backend.get()}] =
            find_crossing(*from.backend, *to.backend, *loaded.model, folder, anew).value_or(0.0);
    };
    const std::vector<OpenDevice*> devices = loaded.devices();
    for (size_t i = 0; i < devices.size(); ++i) {
        if (loaded.split.cpu.backend) add(loaded.split.cpu, *devices[i]);
        if (devices.size() > 1 && i + 1 < devices.size()) add(*devices[i], *devices[i + 1]);
    }
    if (devices.size() > 2) add(*devices.back(), *devices.front());
}

void measure_paces(LoadedModel& loaded, const HostOptions& options, bool anew) {
    if (options.job) measure_crossings(loaded, options, anew);
    if (is_small(loaded)) return;
    const std::string& cache_folder = options.cache_folder;
    const std::vector<OpenDevice*> places = loaded.places();
    bool all_known = true;
    for (OpenDevice* place : places) {
        if (place->rank > 0) {  // it was measured there
            all_known &= place->pace.bytes_per_second > 0.0;
            continue;
        }
        place->pace = {};
        if (place->bandwidth > 0.0)
            place->pace = (anew ? measured_pace : known_pace)(*place->backend, *loaded.model, loaded.cache,
                                                              cache_folder, *options.notes);
        // A trial does not touch the bytes that it reads, unlike the measurement of the bandwidth, and a
        // large processor's caches hold some of them.
        place->pace.bytes_per_second = std::min(place->pace.bytes_per_second, place->bandwidth);
        all_known &= place == &loaded.split.cpu || place->pace.bytes_per_second > 0.0;
    }
    if (places.size() < 2 || !all_known) return;
    // The CPU's threads wait no longer than in a trial.
    for (OpenDevice* place : places)
        if (place->name() != "cpu" && place->rank == 0)
            place->pace.first_seconds =
                find_first(*place->backend, *loaded.model, loaded.cache, place->pace, cache_folder, anew);
    if (!options.job) measure_crossings(loaded, options, anew);
}

void measure_speeds(LoadedModel& loaded, const HostOptions& options) {
    if (is_small(loaded) && !loaded.is_shared()) return;
    for (OpenDevice* place : loaded.places()) {
        if (place->rank > 0)
            options.job->measure(*place, false);
        else
            place->bandwidth = known_bandwidth(*place->backend, options.cache_folder, *options.notes);
    }
    measure_paces(loaded, options, false);
}

static const OpenDevice& place_of(const LoadedModel& loaded, const Backend& backend) {
    for (const OpenDevice* place : loaded.places())
        if (place->backend.get() == &backend) return *place;
    return loaded.device;
}

Bandwidth bandwidth_of(const LoadedModel& loaded) {
    return [&loaded](const Backend& backend) { return place_of(loaded, backend).bandwidth; };
}

PaceOf pace_of(const LoadedModel& loaded) {
    return [&loaded](const Backend& backend) { return place_of(loaded, backend).pace; };
}

CrossingOf crossing_of(const LoadedModel& loaded) {
    return [&loaded](const Backend& from, const Backend& to) {
        const auto& known = loaded.speed.crossings;
        const auto there = known.find({&from, &to}), back = known.find({&to, &from});
        return there != known.end() ? there->second : back != known.end() ? back->second : 0.0;
    };
}

// Calls `speed` with the model's placements and options.
template <typename Speed>
static double speed_of(const LoadedModel& loaded, uint64_t context, const Speed& speed) {
    std::vector<Placement> placements = loaded.split.placements;
    const Result<Plan> plan = loaded.model->plan(1, 1, {context, 1, loaded.cache});
    if (!plan) return 0.0;
    if (placements.empty())
        placements = {{loaded.device.backend.get(), 0, divided(plan.value()).steps.size()}};
    SessionOptions session;
    session.context = context;
    session.cache = loaded.cache;
    const Result<double> found = speed(session, placements);
    return found ? found.value() : 0.0;
}

double most_tokens_per_second(const LoadedModel& loaded, uint64_t context, uint64_t position) {
    if (!loaded.split.ranks.empty()) return tensor_speed(loaded, context, position).most;
    return speed_of(
        loaded, context, [&](const SessionOptions& session, std::span<const Placement> placements) {
            return most_tokens_per_second(*loaded.model, session, placements, bandwidth_of(loaded), position);
        });
}

double expected_tokens_per_second(const LoadedModel& loaded, uint64_t context, uint64_t position) {
    if (!loaded.split.ranks.empty()) return tensor_speed(loaded, context, position).expected;
    return speed_of(loaded, context,
                    [&](const SessionOptions& session, std::span<const Placement> placements) {
                        return expected_tokens_per_second(*loaded.model, session, placements, pace_of(loaded),
                                                          crossing_of(loaded), position);
                    });
}

std::string explain_kept_awake(const LoadedModel& loaded) {
    const auto awake = [](const OpenDevice* one) { return one->backend && one->backend->kept_awake(); };
    if (!std::ranges::any_of(loaded.devices(), awake)) return "";
    return fmt::format(
        "{} is kept busy while it waits for the CPU, since its clocks fall and tokens take longer otherwise; "
        "--no-keep-awake saves that power",
        loaded.labels());
}

std::string explain_shared_cpu(const LoadedModel& loaded) {
    for (const OpenDevice* place : loaded.places())
        if (place->backend && place->backend->fewest_threads() > 0)
            return fmt::format(
                "other programs use the CPU: at times {} of {} threads computed, which was faster",
                place->backend->fewest_threads(), place->backend->device().threads);
    return "";
}

std::string explain_slow(const LoadedModel& loaded, uint64_t context, const Generation& generation) {
    constexpr uint64_t kLeastSteps = 16;
    constexpr double kFarBelow = 0.25;
    if (generation.steps < kLeastSteps || generation.decode_seconds <= 0.0) return "";
    const double speed = double(generation.steps) / generation.decode_seconds;
    const uint64_t position = generation.context_sum / generation.steps;
    const double expected = expected_tokens_per_second(loaded, context, position);
    const double most = expected > 0.0 ? expected : most_tokens_per_second(loaded, context, position);
    if (most <= 0.0 || speed >= kFarBelow * most) return "";
    return fmt::format("{:.1f} tok/s are {:.0f} % of the {:.1f} that {} on {} would allow: {}", speed,
                       100.0 * speed / most, most,
                       expected > 0.0 ? "the kernels measured" : "the bandwidth measured", loaded.labels(),
                       likely_causes(read_machine()));
}

std::string likely_causes(const Machine& machine) {
    std::vector<std::string> causes;
    for (const Finding& finding : examine_slowness(machine))
        causes.push_back(fmt::format("{} ({})", finding.what, finding.remedy));
    if (!causes.empty()) return fmt::format("{}", fmt::join(causes, "; "));
    return "other programs, low clocks or swapping may slow it down; redline doctor looks for what does";
}

}  // namespace redline
