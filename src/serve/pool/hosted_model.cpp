#include "serve/pool/hosted_model.h"

#include "memory/budget.h"
#include "serve/api/scheduled_answering.h"

namespace redline::serve {

namespace {

class Hosted final : public HostedModel {
public:
    Hosted(const OfferedModel& offered, const Hosting& hosting) : host_(hosting.host) {
        host_.model = offered.path;
    }

    Status inspect(const OfferedModel& offered, const Hosting& hosting) {
        loaded_ = RL_TRY(inspect_model(host_));
        served_ = hosting.served;
        served_.model = loaded_.model.get();
        served_.name = offered.name;
        served_.path = offered.path;
        served_.created = offered.created;
        served_.parallel = hosting.scheduler.parallel;
        served_.sampling = RL_TRY(hosting.sampling(loaded_.model->gguf().metadata()));
        return {};
    }
    Status place(const SchedulerOptions& wished) {
        SchedulerOptions options = wished;
        options.context = served_.context = RL_TRY(choose_context(loaded_, host_));
        // With all the context that fits there is room for one request as long as that.
        if (host_.context == 0 && options.cache_tokens == 0) options.cache_tokens = options.context;
        scheduler_ = RL_TRY(Scheduler::create(loaded_, host_, options));
        answering_.emplace(*scheduler_);
        service_.emplace(served_, *answering_);
        return {};
    }

    Service& service() override { return *service_; }
    void drain(std::chrono::milliseconds longest) override { scheduler_->drain(longest); }
    uint64_t bytes() const override { return scheduler_->memory().total(); }

private:
    HostOptions host_;
    LoadedModel loaded_;
    ServedModel served_;
    std::unique_ptr<Scheduler> scheduler_;
    std::optional<ScheduledAnswering> answering_;
    std::optional<Service> service_;
};

Problem unreadable(const Error& fault) {
    return {.status = 400, .message = fault.message, .param = "model"};
}

Problem unplaced(const Error& fault) {
    return {.status = 503, .message = fault.message, .retry_seconds = 30};
}

// The device with the memory that it and others have together at most: the rest of a split model goes to the
// CPU.
DeviceInfo emptied(const DeviceInfo& device, uint64_t budget, const HostOptions& host, uint64_t held) {
    DeviceInfo most = device;
    uint64_t bytes = budget + (host.memory > 0 ? 0 : held);
    if (device.threads == 0) bytes += host_budget(host_memory()).bytes;
    most.memory = {bytes, {{"all that other models leave when they are unloaded", bytes}}};
    return most;
}

}  // namespace

std::optional<Problem> check_hosted(const OfferedModel& offered, const Hosting& hosting, uint64_t held) {
    HostOptions host = hosting.host;
    host.model = offered.path;
    host.notes = &silent_notes();  // what there is to note comes with the load
    Result<LoadedModel> inspected = inspect_model(host);
    if (!inspected) return unreadable(inspected.error());
    LoadedModel& loaded = inspected.value();
    // A device that others use may refuse to be opened twice.
    if (!open_for(loaded, host)) return {};
    SchedulerOptions options = hosting.scheduler;
    const uint64_t trained = loaded.model->config().train_context;
    // The context that fits is chosen with what will be free.
    if (host.context == 0) host.context = int64_t(std::min<uint64_t>(trained, kPageRows));
    const Result<uint64_t> context = choose_context(loaded, host);
    if (!context) return unplaced(context.error());
    options.context = context.value();
    const Result<SessionNeed> need = Scheduler::need(loaded, host, options);
    if (!need) return unplaced(need.error());
    const DeviceInfo most = emptied(loaded.device.backend->device(), need.value().budget, host, held);
    const Status fits = check_fits(need.value().need, *loaded.model, most, context.value());
    if (!fits) return unplaced(fits.error());
    return {};
}

OpenedModel open_hosted(const OfferedModel& offered, const Hosting& hosting) {
    auto made = std::make_unique<Hosted>(offered, hosting);
    if (const Status read = made->inspect(offered, hosting); !read)
        return {nullptr, unreadable(read.error())};
    if (const Status placed = made->place(hosting.scheduler); !placed)
        return {nullptr, unplaced(placed.error())};
    return {std::move(made)};
}

}  // namespace redline::serve
