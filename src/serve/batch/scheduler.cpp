#include "serve/batch/scheduler.h"

#include "serve/batch/loop.h"

#include <algorithm>

namespace redline::serve {

namespace {

// A sequence that is kept to its last token has the page of that token to itself.
HostOptions with_pages(HostOptions host, uint64_t context) {
    if (host.pages == 0) host.pages = host.sequences * pages_for(context) + host.kept;
    return host;
}

// Where keeping takes memory beside the pages, fewer are kept until the rest fits.
Result<uint32_t> choose_kept(const LoadedModel& loaded, HostOptions host, uint64_t context, bool rewinds) {
    const uint32_t parallel = host.sequences;
    if (rewinds) return std::max(4 * parallel, 32u);
    const DeviceInfo& device = loaded.device.backend->device();
    for (host.kept = std::max(3 * parallel, 4u); host.kept > 0; host.kept /= 2) {
        const EngineOptions engine = session_options(with_pages(host, context), device, context, parallel);
        if (RL_TRY(session_need(loaded, engine)).fits) break;
    }
    return host.kept;
}

// A row for each request, or for one and what pads its step.
uint32_t outputs_without_guesses(const SchedulerOptions& options) {
    return std::max(options.parallel, 2u);
}
uint32_t outputs_of(const SchedulerOptions& options, const HostOptions& host) {
    return outputs_without_guesses(options) + host.drafts;
}

Status check_options(const SchedulerOptions& options) {
    if (options.parallel == 0) return error("a scheduler for 0 requests at a time serves none");
    if (!(options.prompt_share > 0.0 && options.prompt_share < 1.0))
        return error("a share of {} of the time for prompts leaves none for others; take one between 0 and 1",
                     options.prompt_share);
    return {};
}

// The options with the values chosen for those not set, and the host's for such a scheduler.
struct Sizing {
    SchedulerOptions options;
    HostOptions host;
};

Result<Sizing> size_scheduler(LoadedModel& loaded, const HostOptions& host, const SchedulerOptions& options) {
    RL_TRY(check_options(options));
    SchedulerOptions chosen = options;
    HostOptions sized = host;
    if (!loaded.device.backend) RL_TRY(open_for(loaded, host));
    const DeviceInfo& device = loaded.device.backend->device();
    sized.sequences = options.parallel;
    sized.snapshots = 0;
    sized.pages = pages_for(options.cache_tokens);
    if (chosen.context == 0) chosen.context = RL_TRY(choose_context(loaded, sized));
    const EngineOptions engine = session_options(sized, device, chosen.context, options.parallel);
    const std::vector<Plan> plans = RL_TRY(engine_plans(*loaded.model, engine));
    const bool rewinds = rewinds_anywhere(plans.front().caches, chosen.context);
    if (!chosen.kept) chosen.kept = RL_TRY(choose_kept(loaded, sized, chosen.context, rewinds));
    sized.kept = *chosen.kept;
    if (!rewinds) sized = with_pages(std::move(sized), chosen.context);
    if (chosen.sampling_threads == 0)
        chosen.sampling_threads =
            std::min({8u, options.parallel - 1, std::max(std::thread::hardware_concurrency(), 1u) - 1});
    if (device.threads > 0) {  // see pads()
        ++sized.kept;
        sized.pages = 1 + (sized.pages > 0 ? sized.pages : options.parallel * pages_for(chosen.context));
    }
    return Sizing{chosen, std::move(sized)};
}

}  // namespace

Result<std::unique_ptr<Scheduler::Loop>> Scheduler::Loop::create(LoadedModel& loaded, const HostOptions& host,
                                                                 const SchedulerOptions& options) {
    HostOptions guessing = host;
    SchedulerOptions wished = options;
    OpenSpeculation drafting = RL_TRY(inspect_speculation(wished.speculation, guessing, loaded));
    Sizing sizing = RL_TRY(size_scheduler(loaded, guessing, wished));
    RL_TRY(place_model(loaded, sizing.host, sizing.options.context, outputs_of(sizing.options, sizing.host)));
    std::unique_ptr<Loop> loop(new Loop(loaded, std::move(sizing.host), sizing.options, std::move(drafting)));
    RL_TRY(loop->open());
    return loop;
}

Status Scheduler::Loop::open() {
    engine_ = RL_TRY(open_engine(loaded_, host_, options_.context, outputs_of(options_, host_)));
    speculation_ = RL_TRY(open_shared_speculation(drafting_, options_.speculation, host_, *engine_));
    kept_.emplace(
        *options_.kept, engine_->rewinds(), [this](const Sequence& leaving) { store(leaving); },
        options_.held.get());
    RL_TRY(open_files());
    workers_ = std::make_unique<Workers>(options_.sampling_threads);
    device_ = engine_->device();
    mixes_ = device_.threads > 0;
    tiles_ = !mixes_ && engine_->mixes();
    if (tiles_) bursts_.go_together();
    if (mixes_) {
        padding_ = RL_TRY(engine_->open_sequence());
        RL_TRY(engine_->step(std::vector<Feed>{{&*padding_, kPadding}}, {}));
    }
    const uint64_t pages = count_pages().all;
    most_tokens_ = pages > 0 ? std::min(options_.context, pages * kPageRows) : options_.context;
    options_.cache_tokens = pages * kPageRows;
    counted_.slots.resize(options_.parallel);
    if (speculation_) {
        counted_.draft_methods = speculation_->methods();
        counted_.most_drafted = speculation_->most();
    }
    publish();
    thread_ = std::thread([this] { run(); });
    return {};
}

uint32_t Scheduler::Loop::plain_outputs() const {
    return std::min(outputs_without_guesses(options_), engine_->options().outputs);
}

Scheduler::Loop::~Loop() {
    if (!thread_.joinable()) return;
    drain(std::chrono::milliseconds(0));
    thread_.join();
}

Submission Scheduler::Loop::refuse(Refusal why, std::string message, uint64_t tokens) {
    const std::lock_guard lock(mutex_);
    ++refused_;
    Submission refused;
    refused.refusal = why;
    refused.message = std::move(message);
    refused.prompt_tokens = tokens;
    refused.context = most_tokens_;
    if (why == Refusal::queue_full) refused.retry_seconds = 1;
    if (why == Refusal::draining || why == Refusal::device_lost) refused.retry_seconds = 5;
    return refused;
}

// Refused by what the request asks for.
Submission Scheduler::Loop::check(const AnswerRequest& asked) {
    const uint64_t tokens = asked.prompt.size();
    if (tokens == 0) return refuse(Refusal::invalid, "the prompt is empty", 0);
    if (tokens > most_tokens_)
        return refuse(
            Refusal::prompt_too_long,
            fmt::format("the prompt has {} tokens, a request may have {} here", tokens, most_tokens_),
            tokens);
    const uint32_t vocab = engine_->model().config().vocab;
    for (const Token token : asked.prompt)
        if (token < 0 || uint32_t(token) >= vocab)
            return refuse(Refusal::invalid,
                          fmt::format("token id {} is outside the model's vocabulary of {}", token, vocab),
                          tokens);
    return {};
}

Submission Scheduler::Loop::submit(AnswerRequest asked) {
    Submission checked = check(asked);
    if (checked.refusal != Refusal::none) return checked;
    const uint64_t tokens = asked.prompt.size();
    Result<std::unique_ptr<Request>> made =
        Request::create(engine_->model(), std::move(asked), options_.context);
    if (!made) return refuse(Refusal::invalid, made.error().message, tokens);
    std::unique_ptr<Request> request = std::move(made).value();
    std::unique_lock lock(mutex_);
    const auto refused = [&](Refusal why, std::string message) {
        lock.unlock();
        return refuse(why, std::move(message), tokens);
    };
    if (draining_) return refused(Refusal::draining, "the server is about to stop");
    if (lost_) return refused(Refusal::device_lost, "the device was lost and is being opened again");
    if (unfinished_ >= uint64_t(options_.parallel) + options_.queue)
        return refused(Refusal::queue_full,
                       fmt::format("{} requests are waiting, and no more may", unstarted_));
    Submission accepted;
    accepted.ticket = request->ticket();
    accepted.prompt_tokens = tokens;
    accepted.context = most_tokens_;
    request->number = ++number_;
    submitted_.push_back(std::move(request));
    ++unstarted_;
    ++unfinished_;
    lock.unlock();
    wake_.notify_one();
    return accepted;
}

void Scheduler::Loop::drain(std::chrono::milliseconds longest) {
    std::unique_lock lock(mutex_);
    const Clock::time_point deadline = Clock::now() + longest;
    deadline_ = draining_ ? std::min(deadline_, deadline) : deadline;
    draining_ = true;
    if (longest.count() <= 0) abort_ = true;
    wake_.notify_one();
    ended_.wait(lock, [this] { return stopped_; });
}

Health Scheduler::Loop::health() const {
    const std::lock_guard lock(mutex_);
    if (stopped_) return Health::stopped;
    if (draining_) return Health::draining;
    return lost_ ? Health::device_lost : Health::serving;
}

Statistics Scheduler::Loop::statistics() const {
    const std::lock_guard lock(mutex_);
    Statistics statistics = published_;
    statistics.waiting = uint32_t(unstarted_);
    statistics.refused = refused_;
    return statistics;
}

Scheduler::Scheduler(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
Scheduler::~Scheduler() = default;

Result<std::unique_ptr<Scheduler>> Scheduler::create(LoadedModel& loaded, const HostOptions& host,
                                                     const SchedulerOptions& options) {
    std::unique_ptr<Loop> loop = RL_TRY(Loop::create(loaded, host, options));
    return std::unique_ptr<Scheduler>(new Scheduler(std::move(loop)));
}

Result<SessionNeed> Scheduler::need(LoadedModel& loaded, const HostOptions& host,
                                    const SchedulerOptions& options) {
    HostOptions guessing = host;
    SpeculationOptions speculation = options.speculation;
    const OpenSpeculation drafting = RL_TRY(inspect_speculation(speculation, guessing, loaded));
    const Sizing sizing = RL_TRY(size_scheduler(loaded, guessing, options));
    return session_need(loaded,
                        session_options(sizing.host, loaded.device.backend->device(), sizing.options.context,
                                        outputs_of(sizing.options, sizing.host)));
}

Submission Scheduler::submit(AnswerRequest request) {
    return loop_->submit(std::move(request));
}
void Scheduler::drain(std::chrono::milliseconds longest) {
    loop_->drain(longest);
}
Health Scheduler::health() const {
    return loop_->health();
}
Statistics Scheduler::statistics() const {
    return loop_->statistics();
}
const Model& Scheduler::model() const {
    return loop_->engine().model();
}
const DeviceInfo& Scheduler::device() const {
    return loop_->device();
}
const MemoryNeed& Scheduler::memory() const {
    return loop_->engine().memory();
}
const SchedulerOptions& Scheduler::options() const {
    return loop_->options();
}

}  // namespace redline::serve
