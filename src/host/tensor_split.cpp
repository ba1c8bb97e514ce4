#include "host/tensor_split.h"

#include "host/device_list.h"
#include "host/expected_speed.h"
#include "memory/budget.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace redline {

namespace {

// Seconds of a sum: measured on linked devices and over ranks of a job, or those of going on at another
// place, where that takes longest.
double seconds_of_sum(const LoadedModel& loaded, std::span<const RankPlace> ranks) {
    if (Ranks::may_link(ranks) || !Ranks::job_ranks(ranks).empty())
        return Ranks::sum_seconds(ranks, loaded.model->config().dim);
    double most = 0.0;
    for (size_t i = 0; i + 1 < ranks.size(); ++i)
        most = std::max(most, crossing_of(loaded)(*ranks[i].backend, *ranks[i + 1].backend));
    return most;
}

// How often a device is in the list: each time computes at the same time as the others.
double times_of(const LoadedModel& loaded, const Backend* backend) {
    for (const OpenDevice* one : loaded.devices())
        if (one->backend.get() == backend) return one->times;
    return 1.0;
}

// All ranks compute at the same time, and each sum waits for the slowest.
Speed speed_of(const LoadedModel& loaded, std::span<const RankPlace> ranks, const RankSharing& sharing,
               double sum_seconds) {
    const uint32_t runs = Ranks::may_link(ranks) ? 1 : sharing.sums + 1;
    double bound = 0.0, expected = sum_seconds > 0.0 ? 0.0 : -1.0;
    for (size_t i = 0; i < ranks.size(); ++i) {
        const RankSharing::Rank& rank = sharing.ranks[i];
        const double times = times_of(loaded, ranks[i].backend);
        const double bandwidth = bandwidth_of(loaded)(*ranks[i].backend) / times;
        const DecodePace pace = pace_of(loaded)(*ranks[i].backend);
        if (bandwidth <= 0.0) return {};
        bound = std::max(bound, double(rank.read_bytes) / bandwidth);
        const Result<BoundPlan> lowered = lower(rank.plan, *ranks[i].backend);
        if (pace.bytes_per_second <= 0.0 || !lowered || expected < 0.0) {
            expected = -1.0;
            continue;
        }
        const size_t layers = expert_layers(rank.plan, 0, rank.plan.steps.size());
        expected = std::max(expected, runs * pace.run_seconds + steps_seconds(lowered.value().plan, pace) +
                                          double(layers) * pace.expert_seconds +
                                          double(rank.read_bytes) * times / pace.bytes_per_second);
    }
    return {expected > 0.0 ? 1.0 / (expected + sharing.sums * sum_seconds) : 0.0,
            bound > 0.0 ? 1.0 / bound : 0.0};
}

// Tokens per second that shared out layers would reach, to compare; 0 where they do not fit, or it is not
// known.
double speed_of_layers(const LoadedModel& loaded, const SessionOptions& session,
                       std::span<const RankPlace> ranks) {
    SplitWish wish;
    for (const OpenDevice* one : loaded.devices())
        wish.shares.push_back(std::ranges::find(ranks, one->backend.get(), &RankPlace::backend)->share);
    SessionOptions whole = session;
    whole.ranks.clear();
    const Result<Split> split = split_model(*loaded.model, whole, loaded.split_places(), wish);
    if (!split || !fits(split.value())) return 0.0;
    const Result<double> speed = expected_tokens_per_second(*loaded.model, whole, split.value().placements,
                                                            pace_of(loaded), crossing_of(loaded), 1);
    return speed ? speed.value() : 0.0;
}

bool all_alike(const std::vector<const OpenDevice*>& devices) {
    const auto same = [&](const OpenDevice* one) {
        return one->backend->device().name == devices[0]->backend->device().name &&
               one->times == devices[0]->times;
    };
    return std::ranges::all_of(devices, same);
}

}  // namespace

SessionOptions with_ranks(SessionOptions session, const LoadedModel& loaded) {
    session.ranks = loaded.divides ? rank_places(loaded) : loaded.job_ranks;
    return session;
}

std::vector<RankPlace> rank_places(const LoadedModel& loaded) {
    std::vector<RankPlace> ranks;
    std::vector<double> rates;
    std::vector<const OpenDevice*> devices = loaded.devices();
    std::ranges::stable_sort(devices, {}, &OpenDevice::rank);  // in this order they add rows
    const bool asked = std::ranges::all_of(devices, [](const OpenDevice* one) { return one->share > 0.0; });
    for (const OpenDevice* one : devices) {
        ranks.push_back({one->backend.get(), asked ? one->share : 1.0});
        if (one->bandwidth > 0.0) rates.push_back(one->bandwidth / one->times);
    }
    if (asked || all_alike(devices) || rates.size() < ranks.size()) return ranks;
    for (size_t i = 0; i < ranks.size(); ++i) ranks[i].share = rates[i];
    return ranks;
}

Result<TensorSplit> divide_tensors(LoadedModel& loaded, const HostOptions& options,
                                   const SessionOptions& session) {
    const Model& model = *loaded.model;
    measure_speeds(loaded, options);
    TensorSplit split{rank_places(loaded)};
    const auto refusal = [&](const Error& problem) {
        return error("{}; {} shares whole layers out", problem.message,
                     options.names->with(options.names->split_mode, "layer"));
    };
    Result<RankSharing> sharing = Ranks::sharing(model, {session.context, 1, session.cache}, split.ranks, 1);
    if (!sharing) return refusal(sharing.error());
    split.sharing = std::move(sharing.value());
    split.needs = RL_TRY(memory_needs(model, with_ranks(session, loaded)));
    for (size_t i = 0; i < split.needs.size(); ++i) {
        const DeviceInfo& device = split.ranks[i].backend->device();
        if (const Status fits = check_fits(split.needs[i], model, device, session.context); !fits)
            return refusal(fits.error());
    }
    // A note and the plan of a job say the same.
    const bool known = options.job && loaded.speed.sum_seconds > 0.0;
    split.sum_seconds = known ? loaded.speed.sum_seconds : seconds_of_sum(loaded, split.ranks);
    loaded.speed.sum_seconds = split.sum_seconds;
    split.speed = speed_of(loaded, split.ranks, split.sharing, split.sum_seconds);
    split.layers_speed = speed_of_layers(loaded, session, split.ranks);
    return split;
}

// True where the options name no part of a layer, and no layers for a device.
static bool leaves_division_open(const HostOptions& options) {
    if (options.gpu_layers >= 0 || options.cpu_experts || !options.tensors.empty()) return false;
    return options.split_mode == SplitMode::best ||
           (options.split_mode == SplitMode::list && options.shares.empty());
}

void choose_division(LoadedModel& loaded, const HostOptions& options) {
    constexpr double kFaster = 1.1;
    if (!loaded.is_shared() || loaded.divides || !leaves_division_open(options)) return;
    const auto keep_whole = [&](const std::string& why) {
        if (options.job) options.notes->inform("whole layers are shared out: " + why);
    };
    // A job has whole layers unless it was left open in words.
    if (options.job && options.split_mode != SplitMode::best) return;
    if (options.job && !why_not_divided(loaded).empty()) return keep_whole(why_not_divided(loaded));
    if (loaded.model->has_head()) return keep_whole("the model's MTP head guesses for these alone");
    if (!options.job &&
        (!all_alike(std::as_const(loaded).devices()) || !Ranks::may_link(rank_places(loaded))))
        return;
    const uint64_t most = loaded.model->config().train_context;
    const uint64_t context =
        options.context > 0 ? uint64_t(options.context) : std::min(options.default_context, most);
    const DeviceInfo& device = loaded.device.backend->device();
    loaded.divides = true;
    const Result<TensorSplit> split =
        divide_tensors(loaded, options, session_options(options, device, context));
    loaded.divides = false;
    if (!split)
        return options.notes->inform("whole layers are shared out, since none can be divided: " +
                                     split.error().message.substr(0, split.error().message.rfind(';')));
    const double divided = split.value().speed.expected, whole = split.value().layers_speed;
    // Neither is measured of small models.
    if (divided <= 0.0 || whole <= 0.0)
        return keep_whole("the speed of the ranks is not known, as that of no model below 1 GiB is");
    const std::string of_sums = split.value().sum_seconds > 0.0 ? fmt::format(", with {:.1f} us for a sum",
                                                                              split.value().sum_seconds * 1e6)
                                                                : "";
    loaded.divides = divided > kFaster * whole;
    if (loaded.divides)
        options.notes->inform(fmt::format(
            "each layer is divided over {}: about {:.1f} tok/s{}, where whole layers would reach about {:.1f}; "
            "{} has these",
            loaded.labels(), divided, of_sums, whole,
            options.names->with(options.names->split_mode, "layer")));
    else
        options.notes->inform(
            fmt::format("whole layers are shared out over {}: about {:.1f} tok/s, where each divided would "
                        "reach about {:.1f}{}; {} has that",
                        loaded.labels(), whole, divided, of_sums,
                        options.names->with(options.names->split_mode, "tensor")));
}

Result<uint64_t> tensor_context(LoadedModel& loaded, const HostOptions& options, uint64_t most) {
    constexpr uint64_t kGrain = 256;
    measure_speeds(loaded, options);
    const auto has_room = [&](uint64_t context) -> Result<bool> {
        return RL_TRY(tensor_need(loaded, session_options(options, loaded.device.backend->device(), context)))
            .fits;
    };
    if (RL_TRY(has_room(most))) return most;
    uint64_t low = 0, high = (most + kGrain - 1) / kGrain;  // in grains: low fits or is 0, high does not fit
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        const Result<bool> room =
            has_room(middle * kGrain);  // a device may have no buffers for so long a cache
        (room && room.value() ? low : high) = middle;
    }
    return low * kGrain;
}

Result<SessionNeed> tensor_need(const LoadedModel& loaded, const SessionOptions& session) {
    const SessionOptions divided = with_ranks(session, loaded);
    SessionNeed all{{}, 0, true};
    const std::vector<MemoryNeed> needs = RL_TRY(memory_needs(*loaded.model, divided));
    for (size_t i = 0; i < needs.size(); ++i) {
        const uint64_t budget = divided.ranks[i].backend->device().memory.bytes;
        all.need.weights += needs[i].weights;
        all.need.cache += needs[i].cache;
        all.need.scratch += needs[i].scratch;
        all.need.staging += needs[i].staging;
        all.budget += budget;
        all.fits = all.fits && needs[i].total() <= budget;
    }
    return all;
}

Speed tensor_speed(const LoadedModel& loaded, uint64_t context, uint64_t position) {
    const std::vector<RankPlace>& ranks = loaded.split.ranks;
    const Result<RankSharing> sharing =
        Ranks::sharing(*loaded.model, {context, 1, loaded.cache}, ranks, position);
    if (!sharing) return {};
    return speed_of(loaded, ranks, sharing.value(), loaded.speed.sum_seconds);
}

std::string tensor_plan_line(const LoadedModel& loaded, const TensorSplit& split, uint64_t context) {
    uint64_t read = 0, cache = 0;
    for (const RankSharing::Rank& rank : split.sharing.ranks) read += rank.read_bytes;
    for (const MemoryNeed& need : split.needs) cache += need.cache;
    std::vector<std::string> places;
    for (size_t i = 0; i < split.ranks.size(); ++i) {
        const Backend* backend = split.ranks[i].backend;
        places.push_back(fmt::format("{} ({}, {}) {:.0f} %", loaded.label(backend), backend->device().name,
                                     backend->device().detail,
                                     100.0 * double(split.sharing.ranks[i].read_bytes) / double(read)));
    }
    return fmt::format("plan: each of {} layers over {}, KV cache {} {} tokens {}",
                       loaded.model->config().layers, fmt::join(places, " and "),
                       cache_types_name(loaded.cache), context, format_bytes(cache));
}

std::string sums_text(const TensorSplit& split) {
    const RankSharing& sharing = split.sharing;
    if (sharing.sums == 0) return "";
    std::string text = fmt::format("sums of a token: {} of {} over {} devices, {}", sharing.sums,
                                   format_bytes(sharing.sum_bytes / sharing.sums), split.ranks.size(),
                                   Ranks::may_link(split.ranks)            ? "which add by themselves"
                                   : Ranks::job_ranks(split.ranks).empty() ? "by the host"
                                                                           : "over MPI");
    if (split.sum_seconds > 0.0)
        text += fmt::format("; about {:.0f} us", sharing.sums * split.sum_seconds * 1e6);
    if (split.layers_speed > 0.0 && split.speed.expected > 0.0)
        text += fmt::format("; layers shared out would reach about {:.1f} tok/s", split.layers_speed);
    return text;
}

std::vector<std::string> tensor_notes(const LoadedModel& loaded, const TensorSplit& split) {
    std::vector<std::string> notes;
    uint64_t most = 0;
    for (const RankSharing::Rank& rank : split.sharing.ranks) most = std::max(most, rank.head_layers);
    for (size_t i = 0; i < split.ranks.size(); ++i)
        if (const uint64_t has = split.sharing.ranks[i].head_layers; has < most)
            notes.push_back(
                fmt::format("{} has no heads in {} of {} layers: there are too few for all devices",
                            loaded.label(split.ranks[i].backend), most - has, most));
    return notes;
}

}  // namespace redline
