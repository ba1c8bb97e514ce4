#include "cli/options/model_options.h"

#include "cli/commands/devices.h"
#include "cli/demo_model.h"
#include "cli/file_notes.h"
#include "cli/find_model.h"
#include "cli/kernel_check.h"
#include "cli/load_plan.h"
#include "cli/model_facts.h"
#include "cli/quick_tune.h"
#include "cli/terminal/terminal.h"
#include "cli/tuned.h"
#include "memory/budget.h"

#include <algorithm>
#include <cctype>
#include <chrono>

namespace redline::cli {

void add_model_options(Options& options, ModelOptions& target) {
    options.group("model");
    options.name("-m --model", "FILE",
                 "model in GGUF form, of a split model the first part; or part of the name of one that "
                 "redline models lists",
                 target.model);
    options.common("a GGUF file, or a name of redline models");
    options.each(
        "-c --context-length --ctx-size", "N|auto",
        fmt::format("tokens of context; 0 or auto: as many as fit, at most those that the model was trained "
                    "for (default: {}, or the model's own if that is less)",
                    target.default_context),
        [&target](const std::string& text) -> Status {
            target.context = text == "auto" ? 0 : RL_TRY(parse_integer(text, 0, kMostContext));
            return {};
        });
    options.common("tokens of context (usually 4096)");
    add_threads_option(options, "physical core", target.threads);
    options.common("threads (usually one per core)");
    // llama.cpp has two sizes; what is read at a time is the second of them.
    auto physical = std::make_shared<bool>(false);
    const auto batch = [&target, physical](bool second) {
        return [&target, physical, second](const std::string& text) -> Status {
            const int64_t tokens = RL_TRY(parse_integer(text, 1, kMostBatch));
            if (second || !*physical) target.batch = uint32_t(tokens);
            *physical |= second;
            return {};
        };
    };
    options.each("-b --batch-size", "N", kBatchHelp, batch(false));
    options.each("-ub --ubatch-size", "N", "the same, and goes before it", batch(true));
    add_cache_options(options, [&target](const std::string& name) -> Status {
        target.cache = RL_TRY(parse_cache_type(name));
        return {};
    });
    add_device_options(options, target);
}

void add_threads_option(Options& options, std::string_view cores, uint32_t& target) {
    options.each("-t --threads", "N", fmt::format("threads; 0 or -1: one per {} (default: 0)", cores),
                 [&target](const std::string& text) -> Status {
                     target = uint32_t(std::max<int64_t>(RL_TRY(parse_integer(text, -1, kMostThreads)), 0));
                     return {};
                 });
}

// "Vulkan0", "ROCm1": a kind of device and a number, as llama.cpp writes them.
static std::string with_colon(const std::string& name) {
    const size_t digits = name.find_last_not_of("0123456789") + 1;
    const std::string kind = name.substr(0, digits);
    if (digits == name.size() || (kind != "vulkan" && kind != "hip" && kind != "rocm" && kind != "cuda"))
        return name;
    return (kind == "vulkan" ? kind : "hip") + ":" + name.substr(digits);
}

Result<std::string> device_name(const std::string& text) {
    std::string name = text;
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char letter) { return std::tolower(letter); });
    if (name.find_first_not_of("0123456789") == std::string::npos)
        return error("{}: a number alone names no device; vulkan:{} may be meant", text, text);
    if (name == "auto") return std::string();
    return name == "none" ? "cpu" : with_colon(name);
}

void add_device_options(Options& options, ModelOptions& target) {
    options.each(
        "-dev --device", "NAME",
        "where to run: cpu (or none), gpu, vulkan, vulkan:1 or part of a device's name, in any case; redline "
        "devices lists them; none other is taken, and where it cannot be had the exit status is 3 (default: "
        "auto, the best GPU, or cpu when there is none)",
        [&target](const std::string& name) -> Status {
            if (name.empty()) return error("was given an empty name");
            target.device = RL_TRY(device_name(name));
            return {};
        });
    options.common("cpu, gpu, vulkan, ...: redline devices");
    add_split_options(options, target);
    options.each(
        "--mem-budget", "SIZE",
        "memory of the device to plan with, like 12G or 800M (default: the least of what its driver, the "
        "kernel and control groups leave)",
        [&target](const std::string& text) -> Status {
            target.memory = RL_TRY(parse_bytes(text));
            return {};
        });
    options.number("-mg --main-gpu", "the GPU by its number (default: the best)", target.main_gpu, 0, 63);
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
    options.flag("--self-test", "check the device's kernels now, even if that was done before",
                 [&target] { target.kernel_check = KernelCheck::always; });
    options.flag("--no-self-test", "use the device's kernels unchecked (default: checked on first use)",
                 [&target] { target.kernel_check = KernelCheck::never; });
    options.flag("--no-tune",
                 "run kernels as they do by default: neither as redline tune has found them to be fast, nor "
                 "timed for up to 5 s before a GPU's first use of them",
                 target.tuned, false);
    options.flag("--quick-tune",
                 "time kernels so now, even if that was done before or the device computes on the CPU",
                 [&target] { target.quick_tune = TuneBefore::always; });
    options.flag("--no-fuse", "run every operation on its own, to compare", target.fuse, false);
}

// "exps=CPU,blk\\.1\\.=Vulkan0".
static Result<std::vector<TensorPlace>> parse_places(const std::string& text) {
    std::vector<TensorPlace> places;
    for (size_t at = 0; at <= text.size();) {
        const size_t end = std::min(text.find(',', at), text.size());
        const std::string one = text.substr(at, end - at);
        const size_t equals = one.rfind('=');
        if (equals == std::string::npos || equals == 0 || equals + 1 == one.size())
            return error("takes PATTERN=DEVICE, like ffn_.*_exps=CPU, not \"{}\"", one);
        places.push_back({one.substr(0, equals), RL_TRY(device_name(one.substr(equals + 1)))});
        at = end + 1;
    }
    return places;
}

void add_split_options(Options& options, ModelOptions& target) {
    constexpr int64_t kAll = std::numeric_limits<int32_t>::max();
    options.each(
        "-ngl --gpu-layers --n-gpu-layers", "N|all|auto",
        "layers on the GPU, the last ones; the others run on the CPU (default: auto, as many as fit)",
        [&target](const std::string& text) -> Status {
            // llama.cpp writes -1 for auto and -2 for all.
            const int64_t layers = text == "all"    ? -2
                                   : text == "auto" ? -1
                                                    : RL_TRY(parse_integer(text, -2, kAll));
            target.gpu_layers = layers == -2 ? kAll : layers;
            return {};
        });
    options.common("layers on the GPU (usually what fits)");
    options.each(
        "-cmoe --cpu-moe", "[all|auto|N]",
        "experts on the CPU: of all layers (as without a value), as many as the GPU has no room for, or "
        "those of the first N layers (default: auto, unless -ngl says what is on the GPU)",
        [&target](const std::string& text) -> Status {
            target.cpu_experts = text == "on" || text == "all" ? kAll
                                 : text == "auto"              ? -1
                                 : text == "off"               ? 0
                                                               : RL_TRY(parse_integer(text, 0, kAll));
            return {};
        });
    options.flag("--op-offload",
                 "prompts are computed on the GPU, also in layers of the CPU, whose weights flow through it "
                 "(default: where that should be faster; with -ngl 0: not)",
                 [&target] { target.streams = true; });
    options.flag("--no-op-offload", "prompts are computed where the layers are",
                 [&target] { target.streams = false; });
    options.flag("--no-keep-awake",
                 "let the GPU's clocks fall while it waits for the CPU's layers or experts (default: where "
                 "it has memory of its own, and that makes tokens faster, it is kept busy meanwhile, which "
                 "takes power)",
                 target.keep_awake, false);
    options.each("-ncmoe --n-cpu-moe", "N", "experts of the first N layers on the CPU",
                 [&target](const std::string& text) -> Status {
                     target.cpu_experts = RL_TRY(parse_integer(text, 0, kAll));
                     return {};
                 });
    options.each("-ot --override-tensor", "PATTERN=DEVICE[,...]",
                 "tensors that have the regular expression in their names on cpu, or on the GPU: experts "
                 "(ffn_.*_exps=CPU), the feed-forward or the attention of a layer, or all of it "
                 "(blk\\.(1|2)\\.=CPU); what is computed with them moves along",
                 [&target](const std::string& text) -> Status {
                     for (TensorPlace& place : RL_TRY(parse_places(text)))
                         target.tensors.push_back(std::move(place));
                     return {};
                 });
}

void add_voice_options(Options& options) {
    options.group("general");
    options.knows_foreign();
    options.flag("-v --verbose", "say more on standard error", voice().verbose);
    options.common("say more on standard error");
    options.flag("-q --quiet", "say nothing but errors on standard error", voice().quiet);
    options.common("say nothing but errors there");
    options.each("-co --color", "[on|off|auto]", "colours on a terminal (default: auto)",
                 [](const std::string& text) -> Status {
                     if (text != "on" && text != "off" && text != "auto")
                         return error("takes on, off or auto, not \"{}\"", text);
                     if (text != "auto") voice().colour = text == "on";
                     return {};
                 });
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

Status check_device_options(ModelOptions& options) {
    if (options.gpu_layers == 0 && !options.streams.value_or(false)) {
        if (!options.device.empty() && options.device != "cpu")
            return error(
                "-ngl 0 means the CPU, --device {} another: leave one of them out, or have prompts computed "
                "there with --op-offload",
                options.device);
        options.device = "cpu";
    }
    if (options.main_gpu >= 0 && options.device != "cpu") {
        if (options.device.find(':') != std::string::npos)
            return error("-mg/--main-gpu {} and --device {} both name a GPU: leave one of them out",
                         options.main_gpu, options.device);
        options.device =
            fmt::format("{}:{}", options.device.empty() ? "gpu" : options.device, options.main_gpu);
    }
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
    DeviceChoice choice = RL_TRY(choose_device(options.device));
    if (options.device.empty() && options.tuned) choice = faster_choice(path, std::move(choice));
    loaded.device = choice.backend;
    loaded.which = choice.device;
    loaded.why = choice.why;
    loaded.cache = options.cache;
    const uint64_t context = options.context < 0 ? options.default_context : uint64_t(options.context);
    loaded.model = std::make_unique<Model>(RL_TRY(Model::inspect(path, context)));
    loaded.load_seconds = seconds_since(start);
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

Status open_for(LoadedModel& loaded, const ModelOptions& options) {
    DeviceChoice choice{loaded.device, loaded.which, loaded.why};
    loaded.backend = RL_TRY(open_best(choice, options));
    loaded.device = choice.backend;
    loaded.which = choice.device;
    loaded.why = choice.why;
    if (loaded.device == "cpu" && options.streams.value_or(false))
        note("--op-offload: no GPU is used, so that prompts are computed on the CPU");
    return {};
}

Result<std::unique_ptr<Backend>> open_again(const LoadedModel& loaded, const ModelOptions& options) {
    ModelOptions own = options;
    if (!loaded.vulkan_level.empty()) own.vulkan_level = loaded.vulkan_level;
    std::unique_ptr<Backend> backend = RL_TRY(open_device({loaded.device, loaded.which, loaded.why}, own));
    backend->refuse(loaded.refused);
    return backend;
}

static std::vector<std::string> file_notes(const Model& model, const Backend& backend) {
    std::vector<std::string> notes = model.notes();
    for (const std::string& warning : model.tokenizer().warnings()) notes.push_back(warning);
    for (const std::string& line : describe_decoding(model.file_weights(), backend)) notes.push_back(line);
    return notes;
}

Status place_model(LoadedModel& loaded, const ModelOptions& options, uint64_t context, uint32_t outputs) {
    const auto start = std::chrono::steady_clock::now();
    note_demo_model(options);
    if (!loaded.backend) RL_TRY(open_for(loaded, options));
    if (context > 0) {
        RL_TRY(check_kernels(loaded, options, context, outputs));
        RL_TRY(quick_tune(loaded, options, context, outputs));
        const DeviceInfo& device = loaded.backend->device();
        RL_TRY(plan_load(loaded, options, session_options(options, device, context, outputs)));
    }
    if (loaded.placements.empty()) {
        ProgressLine progress("loading");
        RL_TRY(loaded.model->place(*loaded.backend,
                                   [&](uint64_t done, uint64_t total) { progress.update(done, total); }));
    }
    say_file_notes(loaded.model->gguf().path(), file_notes(*loaded.model, *loaded.backend), cache_folder());
    loaded.load_seconds += seconds_since(start);
    return {};
}

Result<LoadedModel> load_model(const ModelOptions& options) {
    LoadedModel loaded = RL_TRY(inspect_model(options));
    note_unsplit(options, *loaded.model, loaded.device);
    RL_TRY(place_model(loaded, options, 0));
    return loaded;
}

// Into the device whole, unless there is next to no room for that and the model can be split.
static Result<uint64_t> context_that_fits(LoadedModel& loaded, const ModelOptions& options) {
    if (!loaded.backend) RL_TRY(open_for(loaded, options));
    const uint64_t most = loaded.model->config().train_context;
    const DeviceInfo& device = loaded.backend->device();
    const bool asked = loaded.device != "cpu" && asks_split(options, *loaded.model);
    uint64_t context = 0;
    if (!asked)
        context = RL_TRY(
            largest_context(*loaded.model, *loaded.backend, session_options(options, device, most), most));
    if (asked || context < std::min(options.default_context, most)) {
        const uint64_t split = RL_TRY(split_context(loaded, options, most));
        if (split > context) {
            if (split < most)
                note(fmt::format(
                    "a context of {} tokens is taken, with which the model fits {}; it was trained "
                    "for {}, and -c N asks for another",
                    split, asked ? "as it is split" : "once it is split", most));
            return split;
        }
    }
    if (context == 0)
        return error("{}: no context fits into the {} that {} offers. A smaller quantization or model would",
                     loaded.model->gguf().path(), device.memory.text(), device.name);
    if (context < most)
        note(fmt::format("a context of {} tokens is the most that fits into {}; the model was trained for {}",
                         context, device.memory.text(), most));
    return context;
}

Result<uint64_t> choose_context(LoadedModel& loaded, const ModelOptions& options) {
    const Config& config = loaded.model->config();
    if (options.context == 0) return context_that_fits(loaded, options);
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
    return usual_batch(device);
}

Result<Session> open_session(const LoadedModel& loaded, const ModelOptions& options, uint64_t context,
                             uint32_t outputs) {
    SessionOptions session = session_options(options, loaded.backend->device(), context, outputs);
    if (loaded.placements.empty()) return Session::create(*loaded.model, session);
    ProgressLine progress("loading");
    session.placements = loaded.placements;
    session.stream_rows = loaded.stream_rows;
    session.stream_expected = {loaded.stream_cpu_row_seconds, [](const std::string& slow) { note(slow); }};
    session.progress = [&](uint64_t done, uint64_t total) { progress.update(done, total); };
    return Session::create(*loaded.model, session);
}

Cost step_cost(const Plan& plan, const StepShape& shape) {
    Cost sum;
    for (const Step& step : plan.steps) sum = sum + cost(step.op, plan, shape);
    return sum;
}

}  // namespace redline::cli
