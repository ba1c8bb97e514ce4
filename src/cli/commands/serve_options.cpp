#include "cli/commands/serve_options.h"

#include "cli/pull_model.h"
#include "cli/surroundings.h"
#include "cli/version.h"

namespace redline::cli {

namespace {

constexpr uint64_t kUsualContext = 8192;  // agents begin with thousands of tokens

Status add_name(std::vector<std::string>& names, const std::string& name) {
    if (name.empty()) return error("was given an empty text");
    names.push_back(name);
    return {};
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
    options.number("--drain-seconds --drain-timeout",
                   "seconds that answers may go on once the server is told to end", serve.drain_seconds, 0,
                   86400);
    options.number(
        "--replicas",
        "so many engines of the model, each on a device of its list (--device hip:0,hip:1), all on "
        "one, or the CPU's cores shared out; a request goes to the one that knows most of its prompt",
        serve.replicas, 1, 64);
    options.common("engines at this address, one per device");
    options.number("--body-limit", "MiB of a request at most", serve.body_mib, 1, 4096);
    options.number("--body-memory",
                   "MiB of all requests that are being received or answered, at least --body-limit; more "
                   "are told to come back later",
                   serve.all_bodies_mib, 1, 1 << 20);
    options.name(
        "--cache-dir", "DIR",
        "sequences of tokens that were read stay in this folder where memory has no room for them, and "
        "over restarts, so that prompts that begin alike are not read again; several servers may "
        "use it",
        serve.scheduler.cache_folder.path);
    options.common("keep what was read here, over restarts");
    options.each("--cache-size", "SIZE",
                 "bytes of --cache-dir at most, like 800M; what was used least recently goes first (default: "
                 "4G)",
                 [&serve](const std::string& text) -> Status {
                     serve.scheduler.cache_folder.most_bytes = RL_TRY(parse_bytes(text));
                     return {};
                 });
    options.name(
        "--kv-events", "ENDPOINT",
        "tell routers by ZeroMQ which beginnings of prompts the caches hold, as vLLM does: tcp://*:5557 "
        "waits for them, tcp://HOST:5557 connects to one",
        serve.kv_events);
    options.name("--kv-events-topic", "TEXT", "the topic of these messages (default: none)", serve.kv_topic);
    options.choice("--kv-events-form", {"maps", "lists"},
                   "events are maps of msgpack, or lists that begin with their type (default: maps)",
                   [&serve](size_t index) { serve.kv_lists = index == 1; });
    options.name("--log-file", "FILE",
                 "a line for each request is appended to this file: time, id, peer, method, path, status, "
                 "bytes, seconds, tokens of the prompt and of the answer. SIGHUP opens it again",
                 serve.log_file);
    options.flag("--log-json", "lines of --log-file are JSON", serve.log_json);
}

// Options of each model that is served.
void add_request_options(Options& options, ServeOptions& serve) {
    options.group("requests");
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
    options.choice(
        "--reasoning-field", {"reasoning_content", "reasoning", "both"},
        "the member of OpenAI's messages that has what the model thinks (default: reasoning_content)",
        [&serve](size_t index) { serve.reasoning_fields = index; });
    options.number("--idle-unload",
                   "seconds after which a model of several that nobody uses is unloaded; 0: never",
                   serve.idle_seconds, 0, 365 * 86400);
}

void add_several_options(Options& options, ServeOptions& serve) {
    options.group("several models");
    options.name("--models-dir --models-preset --models", "DIR|FILE",
                 "serve the models of this folder, or those of a file of presets, in place of -m: each is "
                 "loaded when a request names it",
                 serve.models);
    options.common("models of a folder or a file, on demand");
    options.number(
        "--models-max",
        "models that are loaded at a time; the one that was used least recently makes room, once its "
        "answers are complete",
        serve.models_most, 1, 1024);
}

}  // namespace

Options declare_serve(ServeOptions& serve) {
    Options options("serve", "answer over HTTP, to clients of OpenAI, Anthropic and Ollama",
                    {"serve [MODEL] [options]"});
    serve.model.default_context = kUsualContext;
    add_server_options(options, serve);
    add_several_options(options, serve);
    add_request_options(options, serve);
    add_template_options(options, serve.writer);
    add_reasoning_options(options, serve.writer, serve.reasoning);
    add_model_options(options, serve.model);
    options.word_is("--model");
    add_remote_options(options, serve.model.remote);
    add_speculation_options(options, serve.scheduler.speculation);
    add_sampler_options(options, serve.sampling);
    add_voice_options(options);
    options.example("redline serve model.gguf");
    options.example("redline serve model.gguf --port 8081 --parallel 16 -c 16384");
    options.example("redline serve model.gguf --host 0.0.0.0 --api-key-file keys.txt");
    options.example("redline serve model.gguf --replicas 2 --device hip:0,hip:1");
    options.example("redline serve --models ~/models --models-max 2 --idle-unload 600");
    options.example("curl http://127.0.0.1:8080/v1/models");
    options.remark(
        "Standard output gets one line with the address. Sampling options are what holds where a request is silent. "
        "SIGTERM and Ctrl-C let answers under way end, a second one does not.");
    return options;
}

bool is_of_model(const Options::Option& option) {
    return option.group != "server" && option.group != "several models" && option.group != "general";
}

Status settle_serve(ServeOptions& serve) {
    RL_TRY(settle_device(serve.model));
    RL_TRY(check_options(serve.sampling.sampler));
    RL_TRY(settle(serve.scheduler.speculation));
    serve.model.head = serve.scheduler.speculation.head();
    if (serve.log_json && serve.log_file.empty())
        return error("--log-json says how the lines of --log-file FILE are written: give both");
    return {};
}

Status check_together(const ServeOptions& serve, const Options& options) {
    if (options.given("--cache-size") && serve.scheduler.cache_folder.path.empty())
        return error("--cache-size says how much --cache-dir DIR may hold: give both");
    if (serve.kv_events.empty())
        for (const char* name : {"--kv-events-topic", "--kv-events-form"})
            if (options.given(name)) return error("{} is about --kv-events ENDPOINT: give both", name);
    if (serve.models.empty()) {
        for (const char* name : {"--models-max", "--idle-unload"})
            if (options.given(name))
                return error("{} is for a server with several models: --models DIR|FILE names them", name);
        return {};
    }
    if (!serve.model.model.empty() || serve.model.remote)
        return error("--models {} offers several models, and one is named beside it: leave one out",
                     serve.models);
    for (const char* name : {"--replicas", "--kv-events"})
        if (options.given(name))
            return error("{} is for a server of one model, and --models {} has several: leave one out", name,
                         serve.models);
    if (!serve.alias.empty())
        return error("--alias {} names one model, and --models {} has several: leave one out", serve.alias,
                     serve.models);
    return {};
}

void say_to_requests(ChatWriterOptions& writer) {
    static constexpr SettingNames kRequestNames = {.template_variables = "chat_template_kwargs",
                                                   .tools = "tools"};
    writer.notes = &terminal_notes();
    writer.names = &kRequestNames;
}

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

}  // namespace redline::cli
