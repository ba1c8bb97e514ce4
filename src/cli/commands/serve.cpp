// redline serve: answers over HTTP, to many at a time.
#include "base/os/log_signals.h"
#include "base/os/system.h"
#include "cli/demo_model.h"
#include "cli/options/chat_options.h"
#include "cli/options/sampling_options.h"
#include "cli/pull_model.h"
#include "cli/surroundings.h"
#include "cli/terminal/terminal.h"
#include "cli/version.h"
#include "serve/api/api_server.h"
#include "serve/api/scheduled_answering.h"
#include "serve/http/access_log.h"
#include "serve/pool/hosted_model.h"
#include "serve/pool/pool_routes.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>

#include <sys/stat.h>

namespace redline::cli {

namespace {

constexpr uint64_t kUsualContext = 8192;  // agents begin with thousands of tokens

// Messages about conversations go to those who send requests.
constexpr SettingNames kRequestNames = {.template_variables = "chat_template_kwargs", .tools = "tools"};

struct ServeOptions {
    ModelOptions model;
    SamplingOptions sampling;
    ChatWriterOptions writer;
    ReasoningOptions reasoning;
    serve::HttpOptions http;
    serve::AccessOptions access;
    std::string key_file;
    std::string alias;
    serve::SchedulerOptions scheduler;
    int64_t drain_seconds = 30;
    int64_t body_mib = 64;
    size_t reasoning_fields = 0;
    std::string log_file;
    bool log_json = false;
    std::string folder;  // of several models
    uint32_t models_most = 1;
    int64_t idle_seconds = 0;
};

Status add_name(std::vector<std::string>& names, const std::string& name) {
    if (name.empty()) return error("was given an empty text");
    names.push_back(name);
    return {};
}

void add_several_options(Options& options, ServeOptions& serve) {
    options.name("--models-dir --models", "DIR",
                 "serve the models of this folder, in place of -m: each is loaded when a request names it",
                 serve.folder);
    options.common("serve all models of a folder, on demand");
    options.number(
        "--models-max",
        "models of the folder that are loaded at a time; the one that was used least recently makes "
        "room, once its answers are complete",
        serve.models_most, 1, 1024);
    options.number("--idle-unload",
                   "seconds after which a model of the folder that nobody uses is unloaded; 0: never",
                   serve.idle_seconds, 0, 365 * 86400);
}

void add_server_options(Options& options, ServeOptions& serve) {
    options.group("server");
    options.name(
        "--host", "ADDRESS",
        "the address to listen on: 127.0.0.1 is reached from this machine alone, 0.0.0.0 from its networks, "
        "too (default: 127.0.0.1)",
        serve.http.host);
    options.common("address to listen on (usually 127.0.0.1)");
    options.number("--port", "the port; 0: any that is free", serve.http.port, 0, 65535);
    options.common("port (usually 8080)");
    options.each("--api-key", "KEY", "only requests with this key are answered; may be given again",
                 [&serve](const std::string& key) { return add_name(serve.access.keys, key); });
    options.common("answer only requests with this key");
    options.name("--api-key-file", "FILE", "the same with the keys in this file, one in a line",
                 serve.key_file);
    options.each(
        "--allow-host", "NAME",
        "a name by which browsers reach this server, beside localhost and addresses; may be given again. "
        "With --api-key any name will do",
        [&serve](const std::string& name) { return add_name(serve.access.hosts, name); });
    options.each(
        "--cors-origin", "ORIGIN",
        "pages from there may use this server, such as https://chat.example.org, beside those of this "
        "machine; *: any page; may be given again",
        [&serve](const std::string& origin) { return add_name(serve.access.origins, origin); });
    options.name("-a --alias", "NAME", "the name by which clients know the model (default: that of its file)",
                 serve.alias);
    options.number("-np --parallel", "requests that are answered at a time; more wait",
                   serve.scheduler.parallel, 1, 1024);
    options.common("requests at a time (usually 4)");
    options.number("--queue", "requests that wait at most; more are told to come back later",
                   serve.scheduler.queue, 0, 1 << 20);
    options.number(
        "--cache-tokens",
        "tokens that the caches hold for all requests together; where they run out, one is read again later "
        "(default: the context for each request at a time)",
        serve.scheduler.cache_tokens, 0, kMostContext);
    options.number("--drain-seconds", "how long answers may go on once the server is told to end",
                   serve.drain_seconds, 0, 86400);
    options.number("--body-limit", "MiB of a request at most", serve.body_mib, 1, 4096);
    options.choice(
        "--reasoning-field", {"reasoning_content", "reasoning", "both"},
        "the member of OpenAI's messages that has what the model thinks (default: reasoning_content)",
        [&serve](size_t index) { serve.reasoning_fields = index; });
    options.name("--log-file", "FILE",
                 "a line for each request is appended to this file: time, id, peer, method, path, status, "
                 "bytes, seconds, tokens of the prompt and of the answer. SIGHUP opens it again",
                 serve.log_file);
    options.flag("--log-json", "lines of --log-file are JSON", serve.log_json);
}

Options declare_serve(ServeOptions& serve) {
    Options options("serve", "answer over HTTP, to clients of OpenAI, Anthropic and Ollama",
                    {"serve [MODEL] [options]"});
    serve.model.default_context = kUsualContext;
    add_server_options(options, serve);
    add_several_options(options, serve);
    add_template_options(options, serve.writer);
    add_reasoning_options(options, serve.writer, serve.reasoning);
    add_model_options(options, serve.model);
    options.word_is("--model");
    add_remote_options(options, serve.model.remote);
    add_sampler_options(options, serve.sampling);
    add_voice_options(options);
    options.example("redline serve model.gguf");
    options.example("redline serve model.gguf --port 8081 --parallel 16 -c 16384");
    options.example("redline serve model.gguf --host 0.0.0.0 --api-key-file keys.txt");
    options.example("redline serve --models ~/models --models-max 2 --idle-unload 600");
    options.example("curl http://127.0.0.1:8080/v1/models");
    options.remark(
        "Standard output gets one line with the address. Sampling options are what holds where a request is silent. "
        "SIGTERM and Ctrl-C let answers under way end, a second one does not.");
    return options;
}

std::string model_name(const ServeOptions& serve, const Model& model) {
    if (!serve.alias.empty()) return serve.alias;
    return std::filesystem::path(model.gguf().path()).stem().string();
}

// The facts that hold for each model that is served.
serve::ServedModel served_by(const ServeOptions& serve) {
    serve::ServedModel served;
    served.parallel = serve.scheduler.parallel;
    served.build = "redline " + version();
    served.sampling = serve.sampling.sampler;
    served.writer = serve.writer;
    served.reasoning_budget = serve.reasoning.budget;
    served.reasoning_content = serve.reasoning_fields != 1;
    served.reasoning = serve.reasoning_fields != 0;
    return served;
}

serve::ServedModel served_model(const ServeOptions& serve, const Model& model, uint64_t context) {
    serve::ServedModel served = served_by(serve);
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

// Returns once a signal has come that ends the server.
void await_signal(const ServeOptions& serve, const Interrupts& interrupts, serve::AccessLog* log,
                  const std::function<uint64_t()>& running) {
    constexpr std::chrono::milliseconds kLook(50);
    const bool terminal = is_terminal(os::kStandardError);
    while (!interrupts.raised()) {
        if (log && log_is_to_reopen.exchange(false)) {
            // A terminal that is closed sends the same signal, and nobody is left who could end the server.
            if (terminal && !is_terminal(os::kStandardError)) break;
            log->reopen();
        }
        std::this_thread::sleep_for(kLook);
    }
    const uint64_t answers = running();
    say(answers == 0
            ? std::string("the server ends")
            : fmt::format("the server ends: {} answers may go on for {} s", answers, serve.drain_seconds));
}

constexpr std::chrono::seconds kWritten(5);  // for the ends of answers to reach their clients

// Waits for a signal, and lets the answers under way end.
void serve_until_signal(const ServeOptions& serve, serve::ApiServer& server, serve::Scheduler& scheduler,
                        const Interrupts& interrupts, serve::AccessLog* log) {
    await_signal(serve, interrupts, log, [&] { return scheduler.statistics().running(); });
    server.drain();
    scheduler.drain(std::chrono::seconds(serve.drain_seconds));
    server.close(kWritten);
}

unsigned request_threads() {
    return std::clamp(std::thread::hardware_concurrency() / 2, 2u, 8u);
}

Result<int> serve_model(ServeOptions& serve, const Options& options) {
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
    serve.writer.notes = &terminal_notes();
    serve.writer.names = &kRequestNames;
    if (!serve.writer.choice.empty()) RL_TRY(ChatWriter::create(model, serve.writer));
    const uint64_t context = RL_TRY(choose_context(loaded, serve.model));
    note_demo_model(serve.model);
    serve.scheduler.context = context;
    // With all the context that fits there is room for one request as long as that.
    if (serve.model.context == 0 && serve.scheduler.cache_tokens == 0) serve.scheduler.cache_tokens = context;
    const std::unique_ptr<serve::Scheduler> scheduler =
        RL_TRY(serve::Scheduler::create(loaded, serve.model, serve.scheduler));
    serve::ScheduledAnswering answering(*scheduler);
    server->open(served_model(serve, model, context), answering, request_threads());
    say(fmt::format("{} answers at {}: {} requests at a time, {} tokens each", model_name(serve, model),
                    server->address(), serve.scheduler.parallel, context));
    serve_until_signal(serve, *server, *scheduler, interrupts, log.get());
    return out.finish();
}

// The models of the folder, by the names that redline models gives them.
Result<std::vector<serve::OfferedModel>> models_of(const std::string& folder) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(folder, ignored))
        return error("--models {}: there is no such folder", folder);
    const StoredModels found = find_model_files({{"redline", StoreKind::folder, folder}});
    for (const std::string& fault : found.faults) note(fault);
    std::vector<serve::OfferedModel> models;
    for (const StoredModel& file : found.files) {
        struct stat facts = {};
        const bool known = ::stat(file.path.c_str(), &facts) == 0;
        models.push_back(
            {file.name, file.aliases, file.path, file.bytes, known ? int64_t(facts.st_mtime) : 0});
    }
    if (models.empty()) return error("--models {}: the folder has no GGUF file", folder);
    return models;
}

Result<int> serve_models(ServeOptions& serve, const Options& options) {
    const std::unique_ptr<serve::AccessLog> log = RL_TRY(access_log(serve));
    std::vector<serve::OfferedModel> models = RL_TRY(models_of(serve.folder));
    const size_t count = models.size();
    serve.writer.notes = &terminal_notes();
    serve.writer.names = &kRequestNames;
    const serve::Hosting hosting{serve.model, serve.scheduler, served_by(serve),
                                 [&](const Metadata& metadata) -> Result<SamplerOptions> {
                                     SamplerOptions sampler = serve.sampling.sampler;
                                     RL_TRY(take_file_defaults(options, metadata, sampler));
                                     return sampler;
                                 }};
    serve::PoolOptions wishes;
    wishes.most = serve.models_most;
    if (serve.idle_seconds > 0) wishes.idle = std::chrono::seconds(serve.idle_seconds);
    wishes.threads = request_threads();
    wishes.build = hosting.served.build;
    wishes.say = [](const std::string& text) { say(text); };
    serve::ModelPool pool(
        std::move(models), wishes,
        [&hosting](const serve::OfferedModel& offered) { return serve::open_hosted(offered, hosting); },
        [&hosting](const serve::OfferedModel& offered, uint64_t held) {
            return serve::check_hosted(offered, hosting, held);
        });
    const std::unique_ptr<serve::ApiServer> server =
        RL_TRY(serve::ApiServer::listen(serve.http, serve.access));
    server->set_log([&log](const serve::HttpAccess& access) { log_access(access, log.get()); });
    const Interrupts interrupts;
    server->open(serve::pool_routes(pool), request_threads());
    Output out;
    out.write(fmt::format("listening on {}\n", server->address()));
    say(fmt::format("{} models of {} answer at {}, {} of them at a time", count, serve.folder,
                    server->address(), std::min<size_t>(count, serve.models_most)));
    await_signal(serve, interrupts, log.get(), [&pool] { return pool.in_use(); });
    pool.drain(std::chrono::seconds(serve.drain_seconds));
    server->close(kWritten);
    return out.finish();
}

// Options of a server with one model, and of one with several, go without each other.
Status check_several(const ServeOptions& serve, const Options& options) {
    if (serve.folder.empty()) {
        for (const char* name : {"--models-max", "--idle-unload"})
            if (options.given(name))
                return error("{} is for a server with several models: --models DIR names their folder", name);
        return {};
    }
    if (!serve.model.model.empty() || serve.model.remote)
        return error("--models {} offers the models of a folder, and one is named beside it: leave one out",
                     serve.folder);
    if (!serve.alias.empty())
        return error("--alias {} names one model, and --models {} has several: leave one out", serve.alias,
                     serve.folder);
    return {};
}

int run_serve(const std::vector<std::string>& arguments) {
    ServeOptions serve;
    Options options = declare_serve(serve);
    if (const std::optional<int> code = options.parse(arguments)) return *code;
    Status usage = settle_device(serve.model);
    if (usage) usage = check_options(serve.sampling.sampler);
    if (usage && serve.log_json && serve.log_file.empty())
        usage = error("--log-json says how the lines of --log-file FILE are written: give both");
    if (usage) usage = check_several(serve, options);
    if (!usage) return fail(usage.error(), kUsage);
    serve.http.limits.body_bytes = uint64_t(serve.body_mib) << 20;
    serve.http.note = [](const std::string& text) { say(text); };
    // Each connection is one; many systems begin with 1024.
    os::raise_open_files();
    if (!serve.key_file.empty()) {
        Result<std::vector<std::string>> keys = serve::read_keys(serve.key_file);
        if (!keys) return fail(keys.error());
        for (std::string& key : keys.value()) serve.access.keys.push_back(std::move(key));
    }
    if (!serve.folder.empty()) {
        const Result<int> code = serve_models(serve, options);
        return code ? code.value() : fail(code.error());
    }
    if (const std::optional<int> code = take_remote_model(serve.model)) return *code;
    if (const Status found = take_demo_model(serve.model); !found) return fail(found.error());
    const Result<int> code = serve_model(serve, options);
    return code ? code.value() : fail(code.error());
}

}  // namespace

extern const Command serve_command = {"serve", "answer over HTTP, to many at a time", run_serve};

}  // namespace redline::cli
