#include "cli/options/model_options.h"

#include "cli/surroundings.h"
#include "cli/terminal/terminal.h"

#include <algorithm>

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
    options.common(fmt::format("tokens of context (usually {})", target.default_context));
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
    add_cache_options(options, target.cache);
    add_device_options(options, target);
}

void add_threads_option(Options& options, std::string_view cores, uint32_t& target) {
    options.each("-t --threads", "N", fmt::format("threads; 0 or -1: one per {} (default: 0)", cores),
                 [&target](const std::string& text) -> Status {
                     target = uint32_t(std::max<int64_t>(RL_TRY(parse_integer(text, -1, kMostThreads)), 0));
                     return {};
                 });
}

void add_device_options(Options& options, ModelOptions& target) {
    take_surroundings(target);
    options.each(
        "-dev --device", "NAME[,...]",
        "where to run: cpu (or none), gpu, vulkan, vulkan:1 or part of a device's name, in any case; redline "
        "devices lists them; none other is taken, and where it cannot be had the exit status is 3 (default: "
        "auto, the best GPU, or cpu when there is none). Several (hip:0,hip:1) share the layers, in this "
        "order; one that is named twice counts as two",
        [&target](const std::string& names) { return take_devices(names, target); });
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
    options.number("-mg --main-gpu",
                   "the GPU by its number (default: the best); with -sm none, which device of the list",
                   target.main_gpu, 0, 63);
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
    options.flag(
        "--batch-invariant",
        "a token is computed on a GPU as it would be alone, bit for bit, whatever is computed beside "
        "it, up to 8 in a step: the same seed gives the same text with guesses and without; single "
        "tokens take longer for it (on a CPU that is so without)",
        [&target] { target.alike_rows = true; });
    options.flag(
        "--precise",
        "products of prompts take activations in 16 bits on a GPU, even where redline tune has found "
        "8 bits to be faster",
        target.precise);
    options.flag("--no-fuse", "run every operation on its own, to compare", target.fuse, false);
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
    options.each(
        "-sm --split-mode", "none|layer|tensor|auto",
        "layer: a model's layers are shared out over the devices that -dev names, or over all GPUs; "
        "tensor: each of these computes a part of every layer; auto: layer, or tensor where equal GPUs "
        "should be faster so by more than a tenth; none: one device has them (default: auto over the "
        "devices that -dev names)",
        [&target](const std::string& name) -> Status {
            target.split_mode = RL_TRY(parse_split_mode(name));
            return {};
        });
    options.each(
        "-ts --tensor-split", "N,N[,...]",
        "the layers of each device, or its part of every layer, in proportion (default: by how fast each "
        "reads, as far as it has memory)",
        [&target](const std::string& shares) -> Status {
            target.shares = RL_TRY(parse_shares(shares));
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
                     for (TensorPlace& place : RL_TRY(parse_tensor_places(text)))
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

std::vector<std::string> split_list(const std::string& text) {
    std::vector<std::string> parts;
    for (size_t at = 0; at <= text.size();) {
        const size_t end = std::min(text.find(',', at), text.size());
        if (end > at) parts.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return parts;
}

constexpr const char* kRotationHelp =
    "cache keys and values of 4 or 5 bits as they are: else they are rotated before, where heads are a multiple "
    "of 64, and lose less";

void add_cache_options(Options& options, CacheTypes& target) {
    const auto sets = [](std::initializer_list<CacheType*> types) {
        return [types = std::vector(types)](const std::string& name) -> Status {
            const CacheType given = RL_TRY(parse_cache_type(name));
            for (CacheType* const type : types) *type = given;
            return {};
        };
    };
    options.each("-ctk --cache-type-k", "TYPE", kKeysHelp, sets({&target.keys}));
    options.each("-ctv --cache-type-v", "TYPE", kValuesHelp, sets({&target.values}));
    options.each("--cache-type", "TYPE", "type of both", sets({&target.keys, &target.values}));
    options.flag("--no-cache-rotation", kRotationHelp, target.rotate, false);
}

void add_cache_lists(Options& options, std::vector<CacheTypes>& target) {
    struct Lists {
        std::vector<CacheType> keys = {CacheType::f16}, values = {CacheType::f16};
        std::vector<CacheTypes> alike;
        bool rotate = true;
    };
    const auto lists = std::make_shared<Lists>();
    const auto settle = [lists, &target] {
        target = lists->alike;
        for (const CacheType keys : lists->keys)
            for (const CacheType values : lists->values)
                if (lists->alike.empty()) target.emplace_back(keys, values);
        for (CacheTypes& types : target) types.rotate = lists->rotate;
    };
    const auto takes = [settle](auto each) {
        return [settle, each](const std::string& text) -> Status {
            std::vector<CacheType> types;
            for (const std::string& name : split_list(text)) types.push_back(RL_TRY(parse_cache_type(name)));
            if (types.empty()) return parse_cache_type("").error();
            each(types);
            settle();
            return {};
        };
    };
    options.each("-ctk --cache-type-k", "TYPE[,...]", kKeysHelp,
                 takes([lists](const auto& types) { lists->keys = types; }));
    options.each("-ctv --cache-type-v", "TYPE[,...]", kValuesHelp,
                 takes([lists](const auto& types) { lists->values = types; }));
    options.each("--cache-type", "TYPE[,...]", "type of both, in place of these",
                 takes([lists](const auto& types) { lists->alike.assign(types.begin(), types.end()); }));
    options.flag("--no-cache-rotation", kRotationHelp, [lists, settle] {
        lists->rotate = false;
        settle();
    });
}

Status check_model_given(const std::string& path) {
    if (!path.empty()) return {};
    return error("no model: name a GGUF file with -m FILE; redline --help tells how to begin");
}

}  // namespace redline::cli
