#include "cli/load_plan.h"

#include "cli/command.h"
#include "cli/commands/devices.h"
#include "cli/expected_speed.h"
#include "cli/terminal/terminal.h"
#include "run/split.h"

namespace redline::cli {

namespace {

std::string described(const std::string& id, const DeviceInfo& device) {
    return fmt::format("{} ({}, {})", id, device.name, device.detail);
}

// Small models are bound by other things than memory.
void measure_bandwidths(LoadedModel& loaded) {
    if (loaded.model->gguf().file_bytes() < uint64_t(1) << 30) return;
    loaded.bandwidth = known_bandwidth(*loaded.backend, cache_folder());
    if (loaded.cpu) loaded.cpu_bandwidth = known_bandwidth(*loaded.cpu, cache_folder());
}

void say_speed(double most) {
    if (most > 0.0) say(fmt::format("speed: at most {:.1f} tok/s by the measured bandwidth", most));
}

void say_memory(const MemoryNeed& need, const std::string& id, const DeviceInfo& device) {
    say_detail(fmt::format("memory: weights {}, cache {}, scratch {}, of {} that {} offers; {} while loading",
                           format_bytes(need.weights), format_bytes(need.cache), format_bytes(need.scratch),
                           device.memory.text(), id, format_bytes(need.staging)));
}

void say_whole(const LoadedModel& loaded, const MemoryNeed& need, uint64_t context) {
    say(plan_line(loaded, context, need.cache));
    say_speed(most_tokens_per_second(loaded, context, 1));
    if (!loaded.why.empty()) say_detail(fmt::format("{}: {}", loaded.device, loaded.why));
    say_memory(need, loaded.device, loaded.backend->device());
}

void say_split(const LoadedModel& loaded, const Split& split, uint64_t context) {
    uint64_t cache = 0;
    for (const MemoryNeed& need : split.needs) cache += need.cache;
    say(plan_line(loaded, context, cache));
    say_speed(most_tokens_per_second(loaded, context, 1));
    for (size_t i = 0; i < split.needs.size(); ++i) {
        const Backend* backend = split.backends[i];
        say_memory(split.needs[i], backend == loaded.cpu.get() ? "cpu" : loaded.device, backend->device());
    }
}

Status open_cpu(LoadedModel& loaded, const ModelOptions& options) {
    if (loaded.cpu) return {};
    // Levels of kernels and a budget were given for the device.
    ModelOptions own = options;
    own.memory = 0;
    loaded.cpu = RL_TRY(open_device({"cpu", "", ""}, own));
    return {};
}

Status take_split(LoadedModel& loaded, const Split& split, const SessionOptions& session) {
    for (size_t i = 0; i < split.needs.size(); ++i)
        RL_TRY(check_fits(split.needs[i], *loaded.model, split.backends[i]->device(), session.context));
    loaded.placements = split.placements;
    loaded.device_layers = split.layers;
    measure_bandwidths(loaded);
    say_split(loaded, split, session.context);
    return {};
}

}  // namespace

std::string plan_line(const LoadedModel& loaded, uint64_t context, uint64_t cache) {
    const uint32_t layers = loaded.model->config().layers, own = loaded.device_layers;
    std::string places =
        fmt::format("{}/{} layers on {}", own, layers, described(loaded.device, loaded.backend->device()));
    if (own < layers)
        places += fmt::format(", {} on {}", layers - own, described("cpu", loaded.cpu->device()));
    return fmt::format("plan: {}, KV cache {} {} tokens {}", places, cache_type_name(loaded.cache), context,
                       format_bytes(cache));
}

void note_unsplit(const ModelOptions& options, const Model& model, const std::string& device) {
    const uint32_t layers = model.config().layers;
    if (device != "cpu" && options.gpu_layers > 0 && options.gpu_layers < int64_t(layers))
        note(fmt::format("-ngl {}: run, chat and eval split layers; here all {} are on {}",
                         options.gpu_layers, layers, device));
}

Status plan_load(LoadedModel& loaded, const ModelOptions& options, const SessionOptions& session) {
    const Model& model = *loaded.model;
    const DeviceInfo& device = loaded.backend->device();
    const uint32_t layers = model.config().layers;
    loaded.placements.clear();
    loaded.device_layers = layers;
    if (loaded.device != "cpu" && options.gpu_layers > 0 && options.gpu_layers < int64_t(layers)) {
        RL_TRY(open_cpu(loaded, options));
        return take_split(
            loaded,
            RL_TRY(split_layers(model, session, *loaded.cpu, *loaded.backend, uint32_t(options.gpu_layers))),
            session);
    }
    const MemoryNeed need = RL_TRY(memory_need(model, *loaded.backend, session));
    const bool splits =
        need.total() > device.memory.bytes && loaded.device != "cpu" && options.gpu_layers < 0;
    if (!splits) {
        RL_TRY(check_fits(need, model, device, session.context));
        measure_bandwidths(loaded);
        say_whole(loaded, need, session.context);
        return {};
    }
    RL_TRY(open_cpu(loaded, options));
    const Result<Split> most = most_layers(model, session, *loaded.cpu, *loaded.backend);
    if (!most)
        return error("{}; nor between it and the CPU: {}",
                     check_fits(need, model, device, session.context).error().message, most.error().message);
    const Split& split = most.value();
    note(fmt::format(
        "{} are needed, {} offers {}: {} of {} layers run there, the others on the CPU, which is slower; "
        "a smaller context (-c N), -ctk q8_0 or a smaller quantization leaves more of them on the GPU",
        format_bytes(need.total()), loaded.device, device.memory.text(), split.layers, layers));
    return take_split(loaded, split, session);
}

}  // namespace redline::cli
