#include "cli/options/model_options.h"

#include "cli/commands/devices.h"
#include "cli/find_model.h"
#include "cli/model_facts.h"
#include "cli/terminal/terminal.h"
#include "memory/budget.h"

#include <algorithm>
#include <chrono>

namespace redline::cli {

void add_model_options(Options& options, ModelOptions& target) {
    options.group("model");
    options.name("-m --model", "FILE",
                 "model in GGUF form, of a split model the first part; or part of the name of one that "
                 "redline models lists",
                 target.model);
    options.number("-c --ctx-size",
                   fmt::format("tokens of context; 0: as many as the model was trained for (default: {}, "
                               "or the model's own if that is less)",
                               target.default_context),
                   target.context, 0, kMostContext);
    options.number("-t --threads", "threads; 0: one per physical core", target.threads, 0, kMostThreads);
    options.number("-b --batch-size", kBatchHelp, target.batch, 1, kMostBatch);
    add_cache_options(options, [&target](const std::string& name) -> Status {
        target.cache = RL_TRY(parse_cache_type(name));
        return {};
    });
    add_device_options(options, target);
}

void add_device_options(Options& options, ModelOptions& target) {
    options.name("--device", "NAME",
                 "where to run: cpu, vulkan, vulkan:1 or part of a device's name; redline devices lists them "
                 "(default: the best GPU, or cpu when there is none)",
                 target.device);
    options.choice("--cpu-level", {"portable", "avx2", "avx512", "amx"},
                   "highest CPU instruction set to use (default: the machine's)", [&target](size_t index) {
                       constexpr const char* kNames[] = {"portable", "avx2", "avx512", "amx"};
                       target.level = kNames[index];
                   });
    options.choice("--vulkan-level", {"plain", "dot", "matrix", "bfloat16", "workgroup"},
                   "highest kind of Vulkan kernels to use: plain arithmetic, int8 dot products, matrix units "
                   "by fp16, also by bfloat16, also by matrices of a work-group (default: what the "
                   "device is good at)",
                   [&target](size_t index) {
                       constexpr const char* kNames[] = {"plain", "dot", "matrix", "bfloat16", "workgroup"};
                       target.vulkan_level = kNames[index];
                   });
    options.flag("--no-fuse", "run every operation on its own, to compare", target.fuse, false);
}

void add_voice_options(Options& options) {
    options.group("general");
    options.flag("-v --verbose", "say more on standard error", voice().verbose);
    options.flag("-q --quiet", "say nothing but errors on standard error", voice().quiet);
    options.flag("--no-color --no-colour", "no colours; the environment variable NO_COLOR does the same",
                 voice().colour, false);
}

Result<CacheType> parse_cache_type(const std::string& name) {
    if (name == "f16") return CacheType::f16;
    if (name == "q8_0") return CacheType::q8_0;
    if (name == "f32") return CacheType::f32;
    return error("takes f16, q8_0 or f32, not \"{}\"", name);
}

void add_cache_options(Options& options, std::function<Status(const std::string&)> take) {
    auto first = std::make_shared<std::string>();
    const auto same = [first, take = std::move(take)](const std::string& name) -> Status {
        if (!first->empty() && *first != name)
            return error("is {} where the other is {}: keys and values have one type here", name, *first);
        *first = name;
        return take(name);
    };
    options.each("-ctk --cache-type-k", "f16|q8_0|f32", "type of the key-value cache (default: f16)", same);
    options.each("-ctv --cache-type-v --cache-type", "f16|q8_0|f32", "the same; one type serves both", same);
}

Status check_model_given(const std::string& path) {
    if (!path.empty()) return {};
    return error("no model: name a GGUF file with -m FILE; redline --help tells how to begin");
}

Status check_device_options(const ModelOptions& options) {
    const std::string head = options.device.substr(0, options.device.find(':'));
    if (head.size() + 1 == options.device.size())
        return error("--device {}: a number, or part of a device's name, belongs behind the colon",
                     options.device);
    if (head == "cpu" && head != options.device)
        return error("--device {}: the CPU is one device, called cpu", options.device);
    if (head == "cpu" && !options.vulkan_level.empty())
        return error("--vulkan-level means nothing with --device cpu: leave it out");
    if ((head == "vulkan" || head == "hip") && !options.level.empty())
        return error("--cpu-level means nothing with --device {}: leave it out", head);
    if (head == "hip" && !options.vulkan_level.empty())
        return error("--vulkan-level means nothing with --device hip: leave it out");
    return {};
}

static double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Result<LoadedModel> inspect_model(const ModelOptions& options) {
    const auto start = std::chrono::steady_clock::now();
    LoadedModel loaded;
    const std::string path = RL_TRY(find_model(options.model));
    const DeviceChoice choice = RL_TRY(choose_device(options.device));
    loaded.device = choice.backend;
    loaded.which = choice.device;
    loaded.why = choice.why;
    loaded.cache = options.cache;
    const uint64_t context = options.context < 0 ? options.default_context : uint64_t(options.context);
    loaded.model = std::make_unique<Model>(RL_TRY(Model::inspect(path, context)));
    loaded.load_seconds = seconds_since(start);
    for (const std::string& left_out : loaded.model->notes()) note(left_out);
    for (const std::string& warning : loaded.model->tokenizer().warnings()) note(warning);
    return loaded;
}

SessionOptions session_options(const ModelOptions& options, const DeviceInfo& device, uint64_t context,
                               uint32_t outputs) {
    SessionOptions session;
    session.context = context;
    session.batch = batch_of(options, device);
    session.outputs = outputs;
    session.cache = options.cache;
    session.fuse = options.fuse;
    session.record = options.record;
    return session;
}

static void say_plan(const LoadedModel& loaded, const MemoryNeed& need, uint64_t context) {
    const uint32_t layers = loaded.model->config().layers;
    const DeviceInfo& device = loaded.backend->device();
    say(fmt::format("plan: {0}/{0} layers on {1} ({2}, {3}), KV cache {4} {5} tokens {6}", layers,
                    loaded.device, device.name, device.detail, cache_type_name(loaded.cache), context,
                    format_bytes(need.cache)));
    if (!loaded.why.empty()) say_detail(fmt::format("{}: {}", loaded.device, loaded.why));
    say_detail(fmt::format("memory: weights {}, cache {}, scratch {}, of {} that {} offers; {} while loading",
                           format_bytes(need.weights), format_bytes(need.cache), format_bytes(need.scratch),
                           format_bytes(device.memory_budget), loaded.device, format_bytes(need.staging)));
}

Status open_for(LoadedModel& loaded, const ModelOptions& options) {
    loaded.backend = RL_TRY(open_device({loaded.device, loaded.which, loaded.why}, options));
    return {};
}

Status place_model(LoadedModel& loaded, const ModelOptions& options, uint64_t context, uint32_t outputs) {
    const auto start = std::chrono::steady_clock::now();
    if (!loaded.backend) RL_TRY(open_for(loaded, options));
    const DeviceInfo& device = loaded.backend->device();
    if (context > 0) {
        const SessionOptions session = session_options(options, device, context, outputs);
        const MemoryNeed need = RL_TRY(memory_need(*loaded.model, *loaded.backend, session));
        RL_TRY(check_fits(need, *loaded.model, device, context));
        say_plan(loaded, need, context);
    }
    ProgressLine progress("loading");
    RL_TRY(loaded.model->place(*loaded.backend,
                               [&](uint64_t done, uint64_t total) { progress.update(done, total); }));
    for (const std::string& line : describe_decoding(loaded.model->file_weights(), *loaded.backend))
        note(line);
    loaded.load_seconds += seconds_since(start);
    return {};
}

Result<LoadedModel> load_model(const ModelOptions& options) {
    LoadedModel loaded = RL_TRY(inspect_model(options));
    RL_TRY(place_model(loaded, options, 0));
    return loaded;
}

uint64_t choose_context(const ModelOptions& options, const Config& config) {
    if (options.context == 0) return config.train_context;
    if (options.context < 0) return std::min(options.default_context, config.train_context);
    if (uint64_t(options.context) > config.train_context)
        note(fmt::format(
            "the model was trained for {} tokens of context; beyond them, of the {} asked for, its "
            "text may turn to nonsense",
            config.train_context, options.context));
    return uint64_t(options.context);
}

uint32_t batch_of(const ModelOptions& options, const DeviceInfo& device) {
    if (options.batch > 0) return options.batch;
    // On an H100 Llama-3.1-8B Q4_K_M reads a prompt of 4096 at 17081 tok/s so, and at 15044 in steps of 512.
    const bool wide = !device.unified && device.memory_budget >= uint64_t(15) << 30;
    return wide ? 2 * kUsualBatch : kUsualBatch;
}

Result<Session> open_session(const LoadedModel& loaded, const ModelOptions& options, uint64_t context,
                             uint32_t outputs) {
    const DeviceInfo& device = loaded.backend->device();
    return Session::create(*loaded.model, session_options(options, device, context, outputs));
}

Cost step_cost(const Plan& plan, const StepShape& shape) {
    Cost sum;
    for (const Step& step : plan.steps) sum = sum + cost(step.op, plan, shape);
    return sum;
}

}  // namespace redline::cli
