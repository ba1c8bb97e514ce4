#include "serve/pool/hosted_model.h"

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

private:
    HostOptions host_;
    LoadedModel loaded_;
    ServedModel served_;
    std::unique_ptr<Scheduler> scheduler_;
    std::optional<ScheduledAnswering> answering_;
    std::optional<Service> service_;
};

}  // namespace

OpenedModel open_hosted(const OfferedModel& offered, const Hosting& hosting) {
    auto made = std::make_unique<Hosted>(offered, hosting);
    if (const Status read = made->inspect(offered, hosting); !read)
        return {nullptr, {.status = 400, .message = read.error().message, .param = "model"}};
    if (const Status placed = made->place(hosting.scheduler); !placed)
        return {nullptr, {.status = 503, .message = placed.error().message, .retry_seconds = 30}};
    return {std::move(made)};
}

}  // namespace redline::serve
