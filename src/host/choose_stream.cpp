#include "host/choose_stream.h"

#include "host/expected_speed.h"
#include "measure/rates.h"
#include "memory/budget.h"
#include "places/stream.h"

#include <algorithm>

namespace redline {

namespace {

constexpr double kWorthIt = 0.8;         // of the CPU's time: predictions are not exact
constexpr double kSlowerDecoding = 0.9;  // of the speed without staging
constexpr uint32_t kLeastRows = 32;

// Small models are bound by other things, and what is measured for them would take longer than it saves.
bool may_stream(const LoadedModel& loaded, const HostOptions& options, const SessionOptions& session) {
    const bool wanted = options.streams.value_or(loaded.model->gguf().file_bytes() >= uint64_t(1) << 30);
    return wanted && session.batch >= kLeastRows && loaded.split.cpu.backend && !loaded.is_shared() &&
           loaded.device.backend->refills();
}

Result<std::optional<StreamedPlan>> streamed(const LoadedModel& loaded, const SessionOptions& session,
                                             const Split& split) {
    Plan plan = RL_TRY(
        loaded.model->plan(session.batch, session.outputs, {session.context, session.batch, session.cache}));
    plan.weights.assign(loaded.model->file_weights().begin(), loaded.model->file_weights().end());
    return plan_stream(plan, split.placements);
}

// The time to copy the weights that a step needs, by the rate of each format: some have to be repacked.
double upload_seconds(Backend& device, const StreamedPlan& plan) {
    double seconds = 0.0;
    for (const auto& [format, bytes] : plan.streamed_formats()) {
        const double rate = upload_rate(device, *format);
        if (rate <= 0.0) return 0.0;
        seconds += double(bytes) / rate;
    }
    return seconds;
}

// By measured rates, unless it is asked for.
StreamChoice predicted(const LoadedModel& loaded, const HostOptions& options, const StreamedPlan& plan,
                       uint32_t batch) {
    StreamChoice choice;
    choice.rows = options.streams ? kLeastRows : 0;
    if (options.streams) return choice;
    const Format* const format = main_format(plan.weights);
    if (!format) return {};
    const double cpu = product_rate(*loaded.split.cpu.backend, *format),
                 device = product_rate(*loaded.device.backend, *format),
                 upload = upload_seconds(*loaded.device.backend, plan);
    if (cpu <= 0.0 || device <= 0.0 || upload <= 0.0) return {};
    const double flops = double(plan.streamed_flops(batch)) / batch;
    const auto cpu_seconds = [&](uint32_t rows) { return rows * flops / cpu; };
    // One layer's weights are on their way while the device computes another.
    const auto stream_seconds = [&](uint32_t rows) { return std::max(upload, rows * flops / device); };
    choice.cpu_seconds = cpu_seconds(batch);
    choice.stream_seconds = stream_seconds(batch);
    for (uint32_t rows = kLeastRows; rows <= batch && choice.rows == 0; rows *= 2)
        if (stream_seconds(rows) < kWorthIt * cpu_seconds(rows)) choice.rows = rows;
    return choice;
}

Result<std::vector<MemoryNeed>> needs_with(const LoadedModel& loaded, const SessionOptions& session,
                                           const Split& split, uint32_t rows) {
    SessionOptions streaming = session;
    streaming.placements = split.placements;
    streaming.stream_rows = rows;
    return memory_needs(*loaded.model, streaming);
}

// With the device, where it has no part of the model.
Split with_device(Split split, const LoadedModel& loaded) {
    if (std::ranges::count(split.backends, loaded.device.backend.get()) > 0) return split;
    const size_t end = split.placements.back().last;
    split.placements.push_back({loaded.device.backend.get(), end, end});
    split.backends = backends_of(split.placements);
    return split;
}

uint64_t device_total(const LoadedModel& loaded, const Split& split) {
    for (size_t i = 0; i < split.backends.size(); ++i)
        if (split.backends[i] == loaded.device.backend.get()) return split.needs[i].total();
    return 0;
}

}  // namespace

std::string StreamChoice::text() const {
    if (rows == 0) return why_not.empty() ? "" : "; " + why_not;
    const std::string gain = stream_seconds > 0.0 ? fmt::format(" ({:.2f} s a batch in place of {:.2f})",
                                                                stream_seconds, cpu_seconds)
                                                  : "";
    return fmt::format("; steps of {} tokens and more wholly there, through {} of staging{}", rows,
                       format_bytes(staging), gain);
}

Result<StreamChoice> choose_stream(const LoadedModel& loaded, const HostOptions& options,
                                   const SessionOptions& session, Split& split) {
    const auto none = [&](const char* why) {
        StreamChoice choice;
        if (options.streams.value_or(false))
            choice.why_not = fmt::format("{}: {}", options.names->stream, why);
        return choice;
    };
    if (loaded.is_shared()) return none("weights flow through one device alone, and these are several");
    if (!may_stream(loaded, options, session)) return none("batches are too small, or the device cannot");
    Split with = with_device(split, loaded);
    const std::optional<StreamedPlan> plan = RL_TRY(streamed(loaded, session, with));
    if (!plan) return none("no weights of the CPU can go through the device");
    StreamChoice choice = predicted(loaded, options, *plan, session.batch);
    if (choice.rows == 0) return choice;
    with.needs = RL_TRY(needs_with(loaded, session, with, choice.rows));
    if (!fits(with)) {
        StreamChoice other = none("there is no room for the staging");
        other.cpu_seconds = choice.cpu_seconds;
        other.stream_seconds = choice.stream_seconds;
        return other;
    }
    choice.staging =
        device_total(loaded, with) - std::min(device_total(loaded, split), device_total(loaded, with));
    split = std::move(with);
    return choice;
}

Status make_room_to_stream(const LoadedModel& loaded, const HostOptions& options,
                           const SessionOptions& session, const SplitWish& wish, Yield yield, Split& split) {
    if (!may_stream(loaded, options, session)) return {};
    const std::optional<StreamedPlan> plan = RL_TRY(streamed(loaded, session, split));
    if (!plan) return {};
    const StreamChoice choice = predicted(loaded, options, *plan, session.batch);
    if (choice.rows == 0) return {};
    SessionOptions streaming = session;
    streaming.stream_rows = choice.rows;
    Result<Split> roomy = fitting_split(*loaded.model, streaming, loaded.split_places(), wish, yield);
    if (!roomy) return {};
    const auto speed = [&](const Split& of) {
        return most_tokens_per_second(*loaded.model, session, of.placements, bandwidth_of(loaded), 1);
    };
    if (!RL_TRY(streamed(loaded, session, roomy.value()))) return {};
    const auto cpu_bytes = [&](const Split& of) {
        return step_bytes(*loaded.model, session, of.placements, *loaded.split.cpu.backend, 1);
    };
    // By what the CPU has to read, where rates are not known.
    const double before = RL_TRY(speed(split)), with = RL_TRY(speed(roomy.value()));
    const auto bytes_before = double(RL_TRY(cpu_bytes(split))),
               bytes_with = double(RL_TRY(cpu_bytes(roomy.value())));
    if (before > 0.0 ? with < kSlowerDecoding * before : bytes_before < kSlowerDecoding * bytes_with)
        return {};
    split = std::move(roomy.value());
    split.needs = RL_TRY(needs_with(loaded, session, split, 0));
    return {};
}

}  // namespace redline
