#include "host/load_plan.h"

#include "host/choose_stream.h"
#include "host/expected_speed.h"
#include "host/open_device.h"
#include "host/split.h"
#include "memory/budget.h"

#include <algorithm>

namespace redline {

namespace {

std::string described(const std::string& id, const DeviceInfo& device) {
    return fmt::format("{} ({}, {})", id, device.name, device.detail);
}

void say_speed(const Speed& speed, Notes& notes) {
    if (const std::string text = speed.text(); !text.empty()) notes.inform("speed: " + text);
}

void say_memory(const MemoryNeed& need, const std::string& id, const DeviceInfo& device, Notes& notes) {
    notes.detail(
        fmt::format("memory: weights {}, cache {}, scratch {}, of {} that {} offers; {} while loading",
                    format_bytes(need.weights), format_bytes(need.cache), format_bytes(need.scratch),
                    device.memory.text(), id, format_bytes(need.staging)));
}

void say_whole(const LoadedModel& loaded, const MemoryNeed& need, const Speed& speed, uint64_t context,
               Notes& notes) {
    notes.inform(plan_line(loaded, context, need.cache));
    say_speed(speed, notes);
    if (!loaded.device.choice.why.empty())
        notes.detail(fmt::format("{}: {}", loaded.device.name(), loaded.device.choice.why));
    say_memory(need, loaded.device.name(), loaded.device.backend->device(), notes);
}

Result<SplitCost> cost_of(const LoadedModel& loaded, const SessionOptions& session, const Split& split) {
    SplitCost cost;
    cost.cpu_bytes = RL_TRY(step_bytes(*loaded.model, session, split.placements, *loaded.split.cpu, 1));
    cost.speed = {
        RL_TRY(expected_tokens_per_second(*loaded.model, session, split.placements, pace_of(loaded),
                                          loaded.speed.crossing_seconds, 1)),
        RL_TRY(most_tokens_per_second(*loaded.model, session, split.placements, bandwidth_of(loaded), 1))};
    return cost;
}

void say_split(const LoadedModel& loaded, const Split& split, const SplitCost& cost,
               const StreamChoice& stream, uint64_t context, Notes& notes) {
    uint64_t cache = 0;
    for (const MemoryNeed& need : split.needs) cache += need.cache;
    notes.inform(plan_line(loaded, context, cache, stream.text()));
    say_speed(cost.speed, notes);
    notes.detail(fmt::format("the CPU reads {} per token", format_bytes(cost.cpu_bytes)));
    for (size_t i = 0; i < split.needs.size(); ++i) {
        const Backend* backend = split.backends[i];
        say_memory(split.needs[i], backend == loaded.split.cpu.get() ? "cpu" : loaded.device.name(),
                   backend->device(), notes);
    }
}

Status open_cpu(LoadedModel& loaded, const HostOptions& options) {
    if (loaded.split.cpu) return {};
    // Levels of kernels and a budget were given for the device.
    HostOptions beside = options;
    beside.memory = 0;
    beside.beside_gpu = true;
    loaded.split.cpu = RL_TRY(open_device({"cpu", "", ""}, beside));
    return {};
}

// For a mixture of experts of which the options say nothing, the error names cpu_experts as a way out.
Status check_room(const LoadedModel& loaded, const HostOptions& options, const MemoryNeed& need,
                  const DeviceInfo& device, uint64_t context) {
    const Status fits = check_fits(need, *loaded.model, device, context);
    if (fits || loaded.device.name() == "cpu" || loaded.model->config().experts == 0 || options.cpu_experts)
        return fits;
    return error("{}, or {}, which leaves experts to the CPU", fits.error().message,
                 options.names->cpu_experts_auto);
}

Result<LoadDecision> whole_decision(LoadedModel& loaded, const HostOptions& options, const MemoryNeed& need,
                                    uint64_t context) {
    RL_TRY(check_room(loaded, options, need, loaded.device.backend->device(), context));
    measure_speeds(loaded, options);
    SplitCost cost;
    cost.speed = {expected_tokens_per_second(loaded, context, 1), most_tokens_per_second(loaded, context, 1)};
    return LoadDecision{need, {}, cost};
}

Result<LoadDecision> split_decision(const LoadedModel& loaded, const HostOptions& options,
                                    const MemoryNeed& whole, Split split, const SessionOptions& session) {
    for (size_t i = 0; i < split.needs.size(); ++i)
        RL_TRY(check_room(loaded, options, split.needs[i], split.backends[i]->device(), session.context));
    const SplitCost cost = RL_TRY(cost_of(loaded, session, split));
    const StreamChoice stream = RL_TRY(choose_stream(loaded, options, session, split));
    return LoadDecision{whole, std::move(split), cost, stream};
}

// Adds the number of layers that would fit to an error about layers that were asked for.
Error with_fewer_layers(LoadedModel& loaded, const HostOptions& options, const SessionOptions& session,
                        const SplitWish& wish, const Error& problem) {
    if (loaded.device.name() == "cpu" || options.gpu_layers < 0 || !wish.rules.empty()) return problem;
    if (!open_cpu(loaded, options)) return problem;
    const Result<Split> less =
        fitting_split(*loaded.model, session, *loaded.split.cpu, *loaded.device.backend, wish, Yield::layers);
    if (!less) return problem;
    return error("{}, or {}", problem.message,
                 options.names->with(options.names->gpu_layers, less.value().counts.layers));
}

// True where the place of a tensor is the CPU; an error where it is neither the CPU nor the device.
Result<bool> is_cpu(const LoadedModel& loaded, const TensorPlace& place, const SettingNames& names) {
    if (place.device == "cpu") return true;
    const size_t colon = std::min(place.device.find(':'), place.device.size());
    const std::string kind = place.device.substr(0, colon);
    const std::string number = colon < place.device.size() ? place.device.substr(colon + 1) : "";
    const std::string& which = loaded.device.choice.device;
    if (loaded.device.name() != "cpu" && (kind == loaded.device.name() || kind == "gpu") &&
        (number.empty() || number == (which.empty() ? "0" : which)))
        return false;
    return error("{}: tensors can be on {}cpu", names.with(names.tensors, place.pattern + "=" + place.device),
                 loaded.device.name() == "cpu" ? "" : loaded.device.name() + " or ");
}

Result<SplitWish> wish_of(const LoadedModel& loaded, const HostOptions& options,
                          std::vector<std::string>& notes) {
    const uint32_t layers = loaded.model->config().layers;
    SplitWish wish;
    wish.layers = options.gpu_layers < 0 ? layers : uint32_t(std::min<int64_t>(options.gpu_layers, layers));
    const int64_t experts = options.cpu_experts.value_or(0);
    if (experts > 0 && loaded.model->config().experts == 0)
        notes.push_back(fmt::format("{}: this model has no experts", options.names->cpu_experts));
    else if (experts > 0)
        wish.experts = uint32_t(std::min<int64_t>(experts, layers));
    for (const TensorPlace& place : options.tensors)
        wish.rules.push_back({place.pattern, RL_TRY(is_cpu(loaded, place, *options.names))});
    return wish;
}

// The parts that may go to the CPU beyond those that were asked for.
std::optional<Yield> yield_of(const Model& model, const HostOptions& options) {
    const bool layers = options.gpu_layers < 0;
    const bool experts =
        model.config().experts > 0 && (options.cpu_experts ? *options.cpu_experts < 0 : layers);
    if (!options.tensors.empty() || (!layers && !experts)) return {};
    return layers && experts ? Yield::experts_first : layers ? Yield::layers : Yield::experts;
}

std::string kept_text(const Split& split, uint32_t layers) {
    const SplitCounts& counts = split.counts;
    if (counts.experts == 0)
        return fmt::format("{} of {} layers run there, the others on the CPU", counts.layers, layers);
    const std::string others =
        counts.layers < layers ? fmt::format(", and the other {}", layers - counts.layers) : "";
    return fmt::format("{} of {} layers run there, but the experts of {} on the CPU{}", counts.layers, layers,
                       counts.experts, others);
}

// The change of a setting with which a split would fit, for the error that none does.
Result<std::string> what_would_fit(const LoadedModel& loaded, const SplitWish& wish, Yield yield,
                                   const SessionOptions& session, const SettingNames& names) {
    const auto most = [&](CacheType cache) {
        SessionOptions other = session;
        other.cache = cache;
        return fitting_context(*loaded.model, other, *loaded.split.cpu, *loaded.device.backend, wish, yield);
    };
    std::vector<std::string> ways;
    if (const uint64_t context = RL_TRY(most(session.cache)); context > 0)
        ways.push_back(names.with(names.context, context));
    if (session.cache != CacheType::q8_0) {
        // Not every model's cache can be of that type.
        const Result<uint64_t> small = most(CacheType::q8_0);
        const uint64_t context = small ? small.value() : 0;
        if (context == session.context) ways.emplace_back(names.small_cache);
        if (context > 0 && ways.empty())
            ways.push_back(fmt::format("{} {}", names.small_cache, names.with(names.context, context)));
    }
    if (ways.empty()) return std::string("a smaller quantization or model would");
    return fmt::format("{} would", fmt::join(ways, ", or "));
}

// The split nearest to the wish that fits. Where both may move, the one that should be faster: experts, of
// which a token uses few, or whole layers, whose parts need not wait for each other as often.
Result<LoadDecision> fitting_decision(const LoadedModel& loaded, const HostOptions& options,
                                      const SplitWish& wish, Yield yield, const SessionOptions& session,
                                      const MemoryNeed& whole, std::vector<std::string>& notes) {
    const Model& model = *loaded.model;
    const DeviceInfo& device = loaded.device.backend->device();
    const uint32_t layers = model.config().layers;
    Result<Split> best =
        fitting_split(model, session, *loaded.split.cpu, *loaded.device.backend, wish, yield);
    std::string other;
    if (yield == Yield::experts_first) {
        Result<Split> second =
            fitting_split(model, session, *loaded.split.cpu, *loaded.device.backend, wish, Yield::layers);
        if (best && second && best.value().counts.experts > 0) {
            const SplitCost first = RL_TRY(cost_of(loaded, session, best.value()));
            const SplitCost instead = RL_TRY(cost_of(loaded, session, second.value()));
            const bool keeps = first < instead;
            if (!keeps) std::swap(best.value(), second.value());
            other = fmt::format(" ({}; the other way, {}: {})", (keeps ? first : instead).text(),
                                kept_text(second.value(), layers), (keeps ? instead : first).text());
        } else if (!best) {
            best = std::move(second);
        }
    }
    if (!best)
        return error("{}; nor between it and the CPU: {}; {}",
                     check_fits(whole, model, device, session.context).error().message, best.error().message,
                     RL_TRY(what_would_fit(loaded, wish, yield, session, *options.names)));
    RL_TRY(make_room_to_stream(loaded, options, session, wish, yield, best.value()));
    notes.push_back(
        fmt::format("{} are needed, {} offers {}: {}, which is slower{}; a smaller context ({}), {} "
                    "or a smaller quantization leaves more of them on the GPU",
                    format_bytes(whole.total()), loaded.device.name(), device.memory.text(),
                    kept_text(best.value(), layers), other, options.names->with(options.names->context, "N"),
                    options.names->small_cache));
    return split_decision(loaded, options, whole, std::move(best.value()), session);
}

}  // namespace

std::string Speed::text() const {
    if (expected <= 0.0 && most <= 0.0) return "";
    if (expected <= 0.0) return fmt::format("at most {:.1f} tok/s by the measured bandwidth", most);
    const std::string bound =
        most > 0.0 ? fmt::format(", at most {:.1f} by the measured bandwidth", most) : "";
    return fmt::format("about {:.1f} tok/s expected{}", expected, bound);
}

bool SplitCost::operator<(const SplitCost& other) const {
    if (speed.expected > 0.0 && other.speed.expected > 0.0) return speed.expected > other.speed.expected;
    if (speed.most > 0.0 && other.speed.most > 0.0) return speed.most > other.speed.most;
    return cpu_bytes < other.cpu_bytes;
}

std::string SplitCost::text() const {
    const std::string more = speed.text();
    return fmt::format("the CPU reads {} per token{}{}", format_bytes(cpu_bytes), more.empty() ? "" : ", ",
                       more);
}

std::string plan_line(const LoadedModel& loaded, uint64_t context, uint64_t cache, const std::string& more) {
    const uint32_t layers = loaded.model->config().layers;
    const SplitCounts& counts = loaded.split.counts;
    std::vector<std::string> others;
    if (counts.layers < layers) others.push_back(fmt::format("{}", layers - counts.layers));
    if (counts.experts > 0) others.push_back(fmt::format("the experts of {}", counts.experts));
    if (counts.parts > 0) others.push_back(fmt::format("parts of {}", counts.parts));
    if (others.empty() && loaded.split) others.push_back("the embedding or the output");
    std::string places = fmt::format("{}/{} layers on {}", counts.layers, layers,
                                     described(loaded.device.name(), loaded.device.backend->device()));
    if (!others.empty())
        places += fmt::format(", {} on {}", fmt::join(others, " and "),
                              described("cpu", loaded.split.cpu->device()));
    return fmt::format("plan: {}, KV cache {} {} tokens {}{}", places, cache_type_name(loaded.cache), context,
                       format_bytes(cache), more);
}

// The options that ask for parts on the CPU.
static std::vector<std::string> split_options(const HostOptions& options, const Model& model) {
    const SettingNames& names = *options.names;
    std::vector<std::string> asked;
    if (options.gpu_layers >= 0 && options.gpu_layers < int64_t(model.config().layers))
        asked.push_back(names.with(names.gpu_layers, options.gpu_layers));
    if (options.cpu_experts.value_or(0) != 0 && model.config().experts > 0)
        asked.emplace_back(names.cpu_experts);
    if (!options.tensors.empty()) asked.emplace_back(names.tensors);
    return asked;
}

void note_unsplit(const HostOptions& options, const Model& model, const std::string& device) {
    const std::vector<std::string> asked = split_options(options, model);
    if (device != "cpu" && !asked.empty())
        options.notes->note(fmt::format("{}: nothing is split here; all {} layers are on {}",
                                        fmt::join(asked, ", "), model.config().layers, device));
}

bool asks_split(const HostOptions& options, const Model& model) {
    return !split_options(options, model).empty();
}

static bool is_asked(const SplitWish& wish, uint32_t layers) {
    return wish.layers < layers || wish.experts > 0 || !wish.rules.empty();
}

Result<uint64_t> split_context(LoadedModel& loaded, const HostOptions& options, uint64_t most) {
    std::vector<std::string> unsaid;
    const Model& model = *loaded.model;
    const SplitWish wish = RL_TRY(wish_of(loaded, options, unsaid));
    if (loaded.device.name() == "cpu") return uint64_t(0);
    RL_TRY(open_cpu(loaded, options));
    SessionOptions session = session_options(options, loaded.device.backend->device(), most);
    if (is_asked(wish, model.config().layers)) {
        const uint64_t context =
            RL_TRY(fitting_context(model, session, *loaded.split.cpu, *loaded.device.backend, wish, {}));
        if (context > 0) return context;
    }
    const std::optional<Yield> yield = yield_of(model, options);
    if (!yield) return uint64_t(0);
    session.context = std::min(options.default_context, most);
    return fitting_context(model, session, *loaded.split.cpu, *loaded.device.backend, wish, yield);
}

static Result<LoadDecision> decide_wish(LoadedModel& loaded, const HostOptions& options,
                                        const SessionOptions& session, const SplitWish& wish,
                                        std::vector<std::string>& notes) {
    const Model& model = *loaded.model;
    const uint32_t layers = model.config().layers;
    const SettingNames& names = *options.names;
    const bool asked = is_asked(wish, layers);
    const std::optional<Yield> yield = yield_of(model, options);
    const MemoryNeed whole = RL_TRY(memory_need(model, *loaded.device.backend, session));
    const bool whole_fits = whole.total() <= loaded.device.backend->device().memory.bytes;
    if (loaded.device.name() == "cpu" || (!asked && (whole_fits || !yield)))
        return whole_decision(loaded, options, whole, session.context);
    RL_TRY(open_cpu(loaded, options));
    measure_speeds(loaded, options);
    if (asked) {
        Split split = RL_TRY(split_model(model, session, *loaded.split.cpu, *loaded.device.backend, wish));
        for (const std::string& pattern : split.unused)
            notes.push_back(fmt::format("{}: no tensor of this model has that in its name",
                                        names.with(names.tensors, pattern)));
        if (!split.followed.empty())
            notes.push_back(
                fmt::format("{}: in {} {} the attention reads the cache of an earlier layer, and "
                            "stays where that is",
                            names.tensors, split.followed.size() == 1 ? "layer" : "layers",
                            fmt::join(split.followed, ", ")));
        if (split.together_first < split.together_last)
            notes.push_back(
                fmt::format("{}: layers {} to {} share caches and stay together: {} of {} "
                            "layers run on {}",
                            names.with(names.gpu_layers, wish.layers), split.together_first,
                            split.together_last - 1, split.counts.layers, layers, loaded.device.name()));
        if (split.placements.size() == 1 && split.backends[0] == loaded.device.backend.get())
            return whole_decision(loaded, options, whole, session.context);
        if (fits(split) || !yield) return split_decision(loaded, options, whole, std::move(split), session);
    }
    return fitting_decision(loaded, options, wish, *yield, session, whole, notes);
}

Result<LoadDecision> decide_load(LoadedModel& loaded, const HostOptions& options,
                                 const SessionOptions& session, std::vector<std::string>& notes) {
    const SplitWish wish = RL_TRY(wish_of(loaded, options, notes));
    Result<LoadDecision> decided = decide_wish(loaded, options, session, wish, notes);
    if (decided) return decided;
    return with_fewer_layers(loaded, options, session, wish, decided.error());
}

// A GPU's driver refuses what it does not have; the system gives it, and ends the program later.
static void note_budget(const LoadedModel& loaded, const HostOptions& options, const MemoryNeed& need) {
    const MemoryBudget there = host_budget(host_memory());
    if (loaded.device.name() == "cpu" && options.memory > 0 && need.total() > there.bytes)
        options.notes->note(
            fmt::format("{} allows the {} that are needed, but the CPU has {}: the system may swap, or "
                        "end the program",
                        options.names->memory, format_bytes(need.total()), there.text()));
}

Status plan_load(LoadedModel& loaded, const HostOptions& options, const SessionOptions& session) {
    loaded.split.placements.clear();
    loaded.split.stream_rows = 0;
    loaded.split.counts = {loaded.model->config().layers, 0, 0};
    std::vector<std::string> notes;
    const Result<LoadDecision> decision = decide_load(loaded, options, session, notes);
    for (const std::string& text : notes) options.notes->note(text);
    const LoadDecision decided = RL_TRY(decision);
    loaded.speed.planned = decided.cost.speed;
    if (decided.split) {
        loaded.split.placements = decided.split->placements;
        loaded.split.counts = decided.split->counts;
        loaded.split.stream_rows = decided.stream.rows;
        loaded.split.cpu_row_seconds = decided.stream.cpu_seconds / session.batch;
        say_split(loaded, *decided.split, decided.cost, decided.stream, session.context, *options.notes);
        return {};
    }
    say_whole(loaded, decided.whole, decided.cost.speed, session.context, *options.notes);
    note_budget(loaded, options, decided.whole);
    return {};
}

}  // namespace redline
