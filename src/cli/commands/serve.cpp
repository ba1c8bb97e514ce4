// redline serve: answers over HTTP, to many at a time.
#include "base/os/log_signals.h"
#include "base/os/system.h"
#include "cli/commands/serve_models.h"
#include "cli/demo_model.h"
#include "cli/job.h"
#include "cli/pull_model.h"
#include "cli/surroundings.h"
#include "cli/terminal/terminal.h"
#include "cli/version.h"
#include "host/rank_job.h"
#include "serve/api/api_server.h"
#include "serve/api/scheduled_answering.h"
#include "serve/batch/kv_events.h"
#include "serve/http/access_log.h"
#include "serve/pool/pool_routes.h"
#include "serve/pool/replica_set.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>

namespace redline::cli {

namespace {

std::string model_name(const ServeOptions& serve, const Model& model) {
    if (!serve.alias.empty()) return serve.alias;
    return std::filesystem::path(model.gguf().path()).stem().string();
}

serve::ServedModel served_model(const ServeOptions& serve, const Model& model, uint64_t context) {
    serve::ServedModel served = served_by(serve);
    served.parallel *= serve.replicas;
    served.model = &model;
    served.name = model_name(serve, model);
    served.path = model.gguf().path();
    served.context = context;
    served.created = serve::seconds_now();
    return served;
}

std::atomic<bool> log_is_to_reopen = false;  // set by SIGHUP

// Null without --log-file.
Result<std::unique_ptr<serve::AccessLog>> access_log(const ServeOptions& serve) {
    std::unique_ptr<serve::AccessLog> log;
    if (serve.log_file.empty()) return log;
    os::ignore_file_size_signals();
    log = RL_TRY(
        serve::AccessLog::open(serve.log_file, serve.log_json, [](const std::string& text) { say(text); }));
    os::on_hang_up([](int) { log_is_to_reopen = true; });
    return log;
}

void log_access(const serve::HttpAccess& access, serve::AccessLog* file) {
    say_detail(fmt::format("{} {} {}, {} bytes in {:.3f} s", access.method, for_terminal(access.path),
                           access.status == 0 ? "cancelled" : fmt::format("{}", access.status), access.bytes,
                           access.seconds));
    if (file) file->add(access);
}

// The reason why a job of several ranks cannot go on.
std::optional<Error> lost_rank(const ServeOptions& serve) {
    if (!serve.model.job) return {};
    const std::string problem = serve.model.job->team().problem();
    return problem.empty() ? std::optional<Error>() : error("{}", problem);
}

// Returns once a signal has come that ends the server, or a rank of its job is lost.
void await_signal(const ServeOptions& serve, const Interrupts& interrupts, serve::AccessLog* log,
                  const std::function<uint64_t()>& running) {
    constexpr std::chrono::milliseconds kLook(50);
    const bool terminal = is_terminal(os::kStandardError);
    while (!interrupts.raised() && !lost_rank(serve)) {
        if (log && log_is_to_reopen.exchange(false)) {
            // A terminal that is closed sends the same signal, and nobody is left who could end the server.
            if (terminal && !is_terminal(os::kStandardError)) break;
            log->reopen();
        }
        std::this_thread::sleep_for(kLook);
    }
    if (serve.model.job) serve.model.job->team().hurry();
    if (const std::optional<Error> lost = lost_rank(serve)) {
        fail(error("{}: answers end, and so does the server, for its launcher to start it again",
                   lost->message));
        return;
    }
    const uint64_t answers = running();
    say(answers == 0 ? std::string("the server ends")
                     : fmt::format("the server ends: {} answer{} may go on for {} s", answers,
                                   answers == 1 ? "" : "s", serve.drain_seconds));
}

constexpr std::chrono::seconds kWritten(5);  // for the ends of answers to reach their clients

// The schedulers of a model: one, or one for each replica.
struct Schedulers {
    std::unique_ptr<serve::KvEvents> events;  // null: nobody is told
    std::unique_ptr<serve::Scheduler> one;
    std::optional<serve::ScheduledAnswering> of_one;
    std::unique_ptr<serve::ReplicaSet> replicas;

    serve::Answering& answers() {
        if (replicas) return replicas->answers();
        return *of_one;
    }
    void drain(std::chrono::milliseconds longest) {
        replicas ? replicas->drain(longest) : one->drain(longest);
    }
};

Result<std::unique_ptr<serve::KvEvents>> kv_events(const ServeOptions& serve) {
    std::unique_ptr<serve::KvEvents> events;
    if (serve.kv_events.empty()) return events;
    const auto form = serve.kv_lists ? serve::EventForm::lists : serve::EventForm::maps;
    events = RL_TRY(serve::KvEvents::open({serve.kv_events, serve.kv_topic, form}));
    return events;
}

// `devices`: of the replicas; empty where there are none.
Result<Schedulers> open_schedulers(const ServeOptions& serve, LoadedModel& loaded,
                                   const std::vector<std::string>& devices,
                                   std::unique_ptr<serve::KvEvents> events) {
    Schedulers made;
    made.events = std::move(events);
    std::function<void(std::vector<serve::HeldBlocks::Change>, uint32_t)> tell;
    if (made.events)
        tell = [to = made.events.get()](std::vector<serve::HeldBlocks::Change> changes, uint32_t replica) {
            to->publish(std::move(changes), replica);
        };
    if (!devices.empty()) {
        made.replicas =
            RL_TRY(serve::ReplicaSet::open(loaded, {devices, serve.model, serve.scheduler, tell}));
        return made;
    }
    serve::SchedulerOptions options = serve.scheduler;
    if (tell)
        options.held = std::make_shared<serve::HeldBlocks>(
            [tell](std::vector<serve::HeldBlocks::Change> changes) { tell(std::move(changes), 0); });
    made.one = RL_TRY(serve::Scheduler::create(loaded, serve.model, options));
    made.of_one.emplace(*made.one);
    return made;
}

// Waits for a signal, and lets the answers under way end.
void serve_until_signal(const ServeOptions& serve, serve::ApiServer& server, Schedulers& schedulers,
                        const Interrupts& interrupts, serve::AccessLog* log) {
    await_signal(serve, interrupts, log, [&] { return schedulers.answers().statistics().running(); });
    server.drain();
    schedulers.drain(std::chrono::seconds(serve.drain_seconds));
    server.close(kWritten);
}

unsigned request_threads() {
    return std::clamp(std::thread::hardware_concurrency() / 2, 2u, 8u);
}

Result<int> serve_model(ServeOptions& serve, const Options& options) {
    std::vector<std::string> devices;
    if (serve.replicas > 1) {
        if (serve.model.split_mode >= SplitMode::tensor)
            return error("--replicas {}: with -sm {} one model takes all devices: leave one of them out",
                         serve.replicas, serve.model.split_mode == SplitMode::tensor ? "tensor" : "auto");
        devices = RL_TRY(serve::replica_devices(device_list(serve.model), serve.replicas));
        serve.model.device = devices.front();
        serve.model.others.clear();  // each replica has one device
    }
    std::unique_ptr<serve::KvEvents> events = RL_TRY(kv_events(serve));
    // The server writes to the file until it has ended.
    const std::unique_ptr<serve::AccessLog> log = RL_TRY(access_log(serve));
    const std::unique_ptr<serve::ApiServer> server =
        RL_TRY(serve::ApiServer::listen(serve.http, serve.access));
    server->set_log([&log](const serve::HttpAccess& access) { log_access(access, log.get()); });
    const Interrupts interrupts;
    LoadedModel loaded = RL_TRY(inspect_model(serve.model));
    const Model& model = *loaded.model;
    Output out;
    out.write(fmt::format("listening on {}\n", server->address()));
    RL_TRY(take_file_defaults(options, model.gguf().metadata(), serve.sampling.sampler));
    // A template that is wrong is refused before gigabytes are loaded.
    say_to_requests(serve.writer);
    if (!serve.writer.choice.empty()) RL_TRY(ChatWriter::create(model, serve.writer));
    const uint64_t context = RL_TRY(devices.empty() ? choose_context(loaded, serve.model)
                                                    : serve::replica_context(loaded, serve.model, devices));
    note_demo_model(serve.model);
    serve.scheduler.context = context;
    // With all the context that fits there is room for one request as long as that.
    if (serve.model.context == 0 && serve.scheduler.cache_tokens == 0) serve.scheduler.cache_tokens = context;
    Schedulers schedulers = RL_TRY(open_schedulers(serve, loaded, devices, std::move(events)));
    server->open(served_model(serve, model, context), schedulers.answers(), request_threads());
    say(fmt::format("{} answers at {}: {}{} requests at a time, {} tokens each", model_name(serve, model),
                    server->address(),
                    devices.empty() ? "" : fmt::format("{} replicas, each ", devices.size()),
                    serve.scheduler.parallel, context));
    serve_until_signal(serve, *server, schedulers, interrupts, log.get());
    return out.finish(lost_rank(serve) ? kFailed : kDone);
}

serve::PoolOptions pool_options(const ServeOptions& serve) {
    serve::PoolOptions wishes;
    wishes.most = serve.models_most;
    if (serve.idle_seconds > 0) wishes.idle = std::chrono::seconds(serve.idle_seconds);
    wishes.threads = request_threads();
    wishes.build = "redline " + version();
    wishes.say = [](const std::string& text) { say(text); };
    return wishes;
}

Result<int> serve_models(ServeSettings& command, const std::vector<std::string>& arguments) {
    const ServeOptions& serve = command.serve;
    const std::unique_ptr<serve::AccessLog> log = RL_TRY(access_log(serve));
    const SeveralModels models = RL_TRY(several_models(command, arguments));
    const size_t count = models.offered.size();
    serve::ModelPool pool(
        models.offered, pool_options(serve),
        [&models](const serve::OfferedModel& offered) {
            return serve::open_hosted(offered, models.hosting.at(offered.name));
        },
        [&models](const serve::OfferedModel& offered, uint64_t held) {
            return serve::check_hosted(offered, models.hosting.at(offered.name), held);
        });
    const std::unique_ptr<serve::ApiServer> server =
        RL_TRY(serve::ApiServer::listen(serve.http, serve.access));
    server->set_log([&log](const serve::HttpAccess& access) { log_access(access, log.get()); });
    const Interrupts interrupts;
    server->open(serve::pool_routes(pool), request_threads());
    Output out;
    out.write(fmt::format("listening on {}\n", server->address()));
    say(fmt::format("{} {} answer at {}, {} of them at a time",
                    count == 1 ? "1 model of" : fmt::format("{} models of", count), serve.models,
                    server->address(), std::min<size_t>(count, serve.models_most)));
    // The pool says how it went.
    for (const std::string& name : models.at_start)
        pool.want(*pool.find(name), nullptr, [](const serve::ModelPool::Lease&, const serve::Problem&) {});
    await_signal(serve, interrupts, log.get(), [&pool] { return pool.in_use(); });
    server->drain();
    pool.drain(std::chrono::seconds(serve.drain_seconds));
    server->close(kWritten);
    return out.finish();
}

int run_serve(const std::vector<std::string>& arguments) {
    ServeSettings settings;
    ServeOptions& serve = settings.serve;
    if (const std::optional<int> code = settings.options.parse(arguments)) return *code;
    Status usage = settle_serve(serve);
    if (usage) usage = check_together(serve, settings.options);
    if (!usage) return fail(usage.error(), kUsage);
    serve.http.limits.body_bytes = uint64_t(serve.body_mib) << 20;
    serve.http.limits.all_bodies_bytes = uint64_t(std::max(serve.all_bodies_mib, serve.body_mib)) << 20;
    serve.http.note = [](const std::string& text) { say(text); };
    // Each connection is one; many systems begin with 1024.
    os::raise_open_files();
    if (!serve.key_file.empty()) {
        Result<std::vector<std::string>> keys = serve::read_keys(serve.key_file);
        if (!keys) return fail(keys.error());
        for (std::string& key : keys.value()) serve.access.keys.push_back(std::move(key));
    }
    if (const std::string& folder = serve.scheduler.cache_folder.path; !folder.empty())
        if (const Status made = serve::prepare_cache_folder(folder); !made) return fail(made.error());
    if (is_in_job() && (!serve.models.empty() || serve.replicas > 1))
        return fail(
            error("{}: the ranks of a job serve one model together: leave it out, or start without mpirun",
                  serve.models.empty() ? "--replicas" : "--models"),
            kUsage);
    if (!serve.models.empty()) {
        const Result<int> code = serve_models(settings, arguments);
        return code ? code.value() : fail(code.error());
    }
    if (const std::optional<int> code = take_remote_model(serve.model)) return *code;
    if (const Status found = take_demo_model(serve.model); !found) return fail(found.error());
    if (const std::optional<int> code = join_job(serve.model)) return *code;
    const Result<int> code = serve_model(serve, settings.options);
    return code ? code.value() : fail(code.error());
}

}  // namespace

extern const Command serve_command = {"serve", "answer over HTTP, to many at a time", run_serve};

}  // namespace redline::cli
