#include "host/rank_job.h"

#include "host/expected_speed.h"
#include "host/host_options.h"
#include "host/kernel_check.h"
#include "host/load_model.h"
#include "host/quick_tune.h"

#include "base/os/system.h"
#include "version_generated.h"

#include <algorithm>

namespace redline {

namespace {

std::string this_build() {
    return fmt::format("redline {} ({})", RL_VERSION, RL_COMMIT);
}

std::string cache_setting(CacheTypes types) {
    return fmt::format("-ctk {} -ctv {}{}", cache_type_name(types.keys), cache_type_name(types.values),
                       types.rotate ? "" : " --no-cache-rotation");
}

// The options that decide about the plan, as they are given: a line for each.
std::string settings_of(const HostOptions& options) {
    const SettingNames& names = *options.names;
    return fmt::format("{}\n-b {}\n{}\nfuse {}\nMTP head {}\n", names.with(names.context, options.context),
                       options.batch, cache_setting(options.cache), options.fuse, int(options.head));
}

// "-c 8192 (rank 0: -c 4096)" for the first line that differs.
std::string difference(std::string_view theirs, std::string_view ours) {
    while (!theirs.empty() && !ours.empty()) {
        const std::string_view one = theirs.substr(0, theirs.find('\n')),
                               other = ours.substr(0, ours.find('\n'));
        if (one != other) return fmt::format("{} (rank 0: {})", one, other);
        theirs.remove_prefix(std::min(theirs.size(), one.size() + 1));
        ours.remove_prefix(std::min(ours.size(), other.size() + 1));
    }
    return "others";
}

enum class RankCall : uint8_t { prepare, measure };

std::vector<std::string> formats_of(const Backend& backend) {
    std::vector<std::string> names;
    for (const Format* format : all_formats())
        if (backend.has_kernels(*format)) names.emplace_back(format->name);
    return names;
}

// The side of a rank that computes for rank 0.
class RankSide {
public:
    explicit RankSide(const HostOptions& options) : options_(options) {}

    Status open(RemoteHello& hello) {
        loaded_ = RL_TRY(inspect_model(options_));
        RL_TRY(open_for(loaded_, options_));
        const Model& model = *loaded_.model;
        hello.file_digest = RL_TRY(model.fingerprint());
        hello.file_bytes = model.gguf().file_bytes();
        for (const OpenDevice* one : std::as_const(loaded_).devices()) {
            const Backend& backend = *one->backend;
            hello.devices.push_back({one->id.empty() ? one->name() : one->id, one->name(), backend.device(),
                                     formats_of(backend)});
        }
        return {};
    }
    const Model& model() const { return *loaded_.model; }
    std::vector<Backend*> devices() {
        std::vector<Backend*> all;
        for (OpenDevice* one : loaded_.devices()) all.push_back(one->backend.get());
        return all;
    }
    Result<std::vector<std::byte>> answer(std::span<const std::byte> arguments) {
        Unpacker in(arguments);
        const auto what = in.next<RankCall>();
        const auto number = in.next<uint32_t>();
        const std::vector<OpenDevice*> devices = loaded_.devices();
        if (!in.status() || number >= devices.size()) return error("there is no device {}", number);
        return what == RankCall::prepare ? prepare(in) : measure(*devices[number], in.next<bool>());
    }

private:
    Result<std::vector<std::byte>> prepare(Unpacker& in) {
        HostOptions options = options_;
        uint64_t context = 0;
        uint32_t outputs = 0;
        in.get(context, outputs, options.batch, options.cache, options.sequences, options.kept,
               options.snapshots, options.pages, options.drafts, options.alike_rows);
        const auto shares = in.next<std::vector<double>>();
        const auto place = in.next<uint64_t>();
        RL_TRY(in.status());
        loaded_.job_ranks.clear();
        for (const double share : shares) loaded_.job_ranks.push_back({nullptr, share});
        if (place < shares.size()) loaded_.job_ranks[place].backend = loaded_.device.backend.get();
        std::vector<const Backend*> before;
        for (const Backend* one : devices()) before.push_back(one);
        RL_TRY(check_kernels(loaded_, options, context, outputs));
        RL_TRY(quick_tune(loaded_, options, context, outputs));
        const std::vector<Backend*> now = devices();
        if (!std::equal(now.begin(), now.end(), before.begin(), before.end()))
            return error("its device was opened again with other kernels: start the job once more");
        return std::vector<std::byte>();
    }
    Result<std::vector<std::byte>> measure(OpenDevice& device, bool anew) {
        const std::string& folder = options_.cache_folder;
        device.bandwidth =
            (anew ? measured_bandwidth : known_bandwidth)(*device.backend, folder, *options_.notes);
        measure_paces(loaded_, options_, anew);
        return Packer().add(device.bandwidth, device.pace).take();
    }

    const HostOptions& options_;
    LoadedModel loaded_;
};

}  // namespace

Result<std::vector<OpenDevice>> RankJob::devices() {
    if (hellos_.empty()) hellos_ = RL_TRY(team_->hellos());
    std::vector<OpenDevice> all;
    for (uint32_t rank = 1; rank < team_->ranks(); ++rank) {
        const std::vector<RemoteDevice>& theirs = hellos_[rank - 1].devices;
        for (uint32_t number = 0; number < theirs.size(); ++number) {
            OpenDevice device;
            device.choice = {theirs[number].backend, "", ""};
            device.rank = rank;
            device.number = number;
            device.id = fmt::format("rank {}'s {}", rank, theirs[number].id);
            device.card = device.id;
            all.push_back(std::move(device));
        }
    }
    return all;
}

Status RankJob::check_same(const Model& model, const HostOptions& options) {
    const uint64_t digest = RL_TRY(model.fingerprint());
    for (uint32_t rank = 1; rank < team_->ranks(); ++rank) {
        const RemoteHello& theirs = hellos_[rank - 1];
        const std::string name = team_->name_of(rank);
        if (theirs.build != this_build())
            return error("{} is {}, rank 0 is {}: install the same on all", name, theirs.build, this_build());
        if (theirs.file_bytes != model.gguf().file_bytes())
            return error("{}: its model has {} bytes, and {} on rank 0 {}: all ranks need the same file",
                         name, theirs.file_bytes, model.gguf().path(), model.gguf().file_bytes());
        if (theirs.file_digest != digest)
            return error(
                "{}: its model has the size of rank 0's, and another content (digest {:016x}, rank 0: "
                "{:016x})",
                name, theirs.file_digest, digest);
        if (theirs.settings != settings_of(options))
            return error(
                "{} was started with {}: all ranks take the same options, but for devices and threads", name,
                difference(theirs.settings, settings_of(options)));
    }
    return {};
}

Result<std::unique_ptr<Backend>> RankJob::open(const OpenDevice& device) const {
    if (team_->lost_device(device.rank))
        return error("{} has lost its device: start the job again", team_->name_of(device.rank));
    const RemoteDevice& theirs = hellos_[device.rank - 1].devices[device.number];
    return std::unique_ptr<Backend>(
        std::make_unique<RemoteBackend>(team_, device.rank, device.number, theirs));
}

Result<std::vector<std::byte>> RankJob::ask(const OpenDevice& device, Packer arguments) const {
    return team_->call(device.rank, RemoteCall::host, std::move(Packer().add(arguments.take())));
}

Status RankJob::prepare(const OpenDevice& device, const HostOptions& options, uint64_t context,
                        uint32_t outputs, std::span<const RankPlace> ranks) {
    std::vector<double> shares;
    for (const RankPlace& rank : ranks) shares.push_back(rank.share);
    const auto place = std::ranges::find(ranks, device.backend.get(), &RankPlace::backend) - ranks.begin();
    Packer out;
    out.add(RankCall::prepare, device.number, context, outputs, options.batch, options.cache,
            options.sequences, options.kept, options.snapshots, options.pages, options.drafts,
            options.alike_rows, shares, uint64_t(place));
    RL_TRY(ask(device, std::move(out)));
    return {};
}

void RankJob::measure(OpenDevice& device, bool anew) {
    const auto answer = ask(device, std::move(Packer().add(RankCall::measure, device.number, anew)));
    if (!answer) return;  // what follows meets the same
    Unpacker in(answer.value());
    in.get(device.bandwidth, device.pace);
}

double RankJob::hop_seconds(const OpenDevice& from, const OpenDevice& to, uint64_t bytes) {
    return from.rank == to.rank ? 0.0 : team_->hop_seconds(from.rank, to.rank, bytes);
}

std::optional<LayerRange> layers_of(const LoadedModel& loaded, const OpenDevice& device) {
    const Result<Plan> recorded = loaded.model->plan(1, 1, {1, 1, loaded.cache});
    std::optional<LayerRange> range;
    if (!recorded) return range;
    const Plan plan = divided(recorded.value());
    const uint32_t layers = std::max(1u, loaded.model->config().layers);
    for (const Placement& placement : loaded.split.placements) {
        if (placement.backend != device.backend.get()) continue;
        for (size_t i = placement.first; i < placement.last; ++i) {
            // The output has the number behind the last layer.
            const uint32_t layer = std::min(plan.steps[i].layer, layers - 1);
            if (!range) range = {layer, layer};
            range = {std::min(range->first, layer), std::max(range->last, layer)};
        }
    }
    return range;
}

std::vector<std::string> RankJob::plan_lines(const LoadedModel& loaded) const {
    std::vector<std::string> lines;
    for (const OpenDevice* device : loaded.devices()) {
        const std::optional<LayerRange> range = layers_of(loaded, *device);
        const DeviceInfo& info = device->backend->device();
        const bool last = device->backend.get() == &loaded.output_backend();
        lines.push_back(fmt::format(
            "{}: {}{} on {} ({}, {})", team_->name_of(device->rank),
            !range                        ? "no layer"
            : range->first == range->last ? fmt::format("layer {}", range->first)
                                          : fmt::format("layers {} to {}", range->first, range->last),
            last ? " and the output" : "", device->local_id(), info.name, info.detail));
    }
    return lines;
}

Status serve_rank(RankWorker& worker, const HostOptions& options) {
    RankSide side(options);
    RemoteHello hello{"", this_build(), 0, 0, settings_of(options), os::host_name(), {}};
    if (const Status opened = side.open(hello); !opened) {
        hello.problem = opened.error().message;
        worker.say_hello(hello);
        return worker.wait_for_end();
    }
    worker.say_hello(hello);
    return worker.serve(side.model(), side.devices(),
                        [&side](std::span<const std::byte> arguments) { return side.answer(arguments); });
}

}  // namespace redline
