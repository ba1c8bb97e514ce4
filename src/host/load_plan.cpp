#include "host/load_plan.h"

#include "host/choose_stream.h"
#include "host/expected_speed.h"
#include "host/open_device.h"
#include "host/rank_job.h"
#include "host/split.h"
#include "host/tensor_split.h"
#include "memory/budget.h"

#include <fmt/ranges.h>

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
    if (const Backend* cpu = loaded.split.cpu.backend.get())
        cost.cpu_bytes = RL_TRY(step_bytes(*loaded.model, session, split.placements, *cpu, 1));
    cost.speed = {
        RL_TRY(expected_tokens_per_second(*loaded.model, session, split.placements, pace_of(loaded),
                                          crossing_of(loaded), 1)),
        RL_TRY(most_tokens_per_second(*loaded.model, session, split.placements, bandwidth_of(loaded), 1))};
    return cost;
}

void say_split(const LoadedModel& loaded, const Split& split, const SplitCost& cost,
               const StreamChoice& stream, uint64_t context, Notes& notes) {
    uint64_t cache = 0;
    for (const MemoryNeed& need : split.needs) cache += need.cache;
    notes.inform(plan_line(loaded, context, cache, stream.text()));
    say_speed(cost.speed, notes);
    const std::string crossings = crossings_text(loaded, split);
    if (loaded.is_shared() && !crossings.empty()) notes.inform(crossings);
    if (!loaded.is_shared() && !crossings.empty()) notes.detail(crossings);
    if (cost.cpu_bytes > 0)
        notes.detail(fmt::format("the CPU reads {} per token", format_bytes(cost.cpu_bytes)));
    for (size_t i = 0; i < split.needs.size(); ++i)
        say_memory(split.needs[i], loaded.label(split.backends[i]), split.backends[i]->device(), notes);
}

void say_tensors(const LoadedModel& loaded, const TensorSplit& split, uint64_t context, Notes& notes) {
    notes.inform(tensor_plan_line(loaded, split, context));
    say_speed(split.speed, notes);
    if (const std::string sums = sums_text(split); !sums.empty()) notes.inform(sums);
    for (size_t i = 0; i < split.needs.size(); ++i) {
        const Backend* backend = split.ranks[i].backend;
        say_memory(split.needs[i], loaded.label(backend), backend->device(), notes);
        if (const uint64_t whole = split.sharing.ranks[i].whole_bytes; whole > 0)
            notes.detail(fmt::format("{} of the weights on {} are there as a whole", format_bytes(whole),
                                     loaded.label(backend)));
    }
}

Status open_cpu(LoadedModel& loaded, const HostOptions& options) {
    OpenDevice& cpu = loaded.split.cpu;
    if (cpu.backend) return {};
    // Levels of kernels and a budget were given for the device.
    HostOptions beside = options;
    beside.memory = 0;
    beside.beside_gpu = true;
    cpu.choice = {"cpu", "", ""};
    cpu.backend = RL_TRY(open_device(cpu.choice, beside));
    return {};
}

// True where a device is the CPU, which has nothing beside that then.
bool has_cpu(const LoadedModel& loaded) {
    return std::ranges::any_of(loaded.devices(), [](const OpenDevice* one) { return one->name() == "cpu"; });
}

// "vulkan offers 8.0 GiB (free video memory)", of several devices "hip:0 8.0 GiB (...), hip:1 ...".
std::string offers_text(const LoadedModel& loaded) {
    std::vector<std::string> all;
    for (const OpenDevice* one : loaded.devices())
        all.push_back(fmt::format("{} {}{}", loaded.label(one->backend.get()), all.empty() ? "offers " : "",
                                  one->backend->device().memory.text()));
    return fmt::format("{}", fmt::join(all, ", "));
}

// For a mixture of experts of which the options say nothing, the error names cpu_experts as a way out.
Status check_room(const LoadedModel& loaded, const HostOptions& options, const MemoryNeed& need,
                  const DeviceInfo& device, uint64_t context) {
    const Status fits = check_fits(need, *loaded.model, device, context);
    if (fits || has_cpu(loaded) || loaded.model->config().experts == 0 || options.cpu_experts) return fits;
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
    if (has_cpu(loaded) || options.gpu_layers < 0 || !wish.rules.empty()) return problem;
    if (!open_cpu(loaded, options)) return problem;
    const Result<Split> less =
        fitting_split(*loaded.model, session, loaded.split_places(), wish, Yield::layers);
    if (!less) return problem;
    return error("{}, or {}", problem.message,
                 options.names->with(options.names->gpu_layers, less.value().counts.layers));
}

// The place of a tensor: the CPU or a device of the model; others are errors.
Result<TensorRule> rule_of(const LoadedModel& loaded, const TensorPlace& place, const SettingNames& names) {
    if (place.device == "cpu") return TensorRule{place.pattern, true};
    const size_t colon = std::min(place.device.find(':'), place.device.size());
    const std::string kind = place.device.substr(0, colon);
    const std::string number = colon < place.device.size() ? place.device.substr(colon + 1) : "";
    const std::vector<const OpenDevice*> devices = loaded.devices();
    for (size_t i = 0; i < devices.size(); ++i) {
        const OpenDevice& device = *devices[i];
        const std::string& which = device.choice.device;
        if (device.name() != "cpu" && (kind == device.name() || kind == "gpu") &&
            (number.empty() || number == (which.empty() ? "0" : which)))
            return TensorRule{place.pattern, false, uint32_t(i)};
    }
    return error("{}: tensors can be on {}cpu", names.with(names.tensors, place.pattern + "=" + place.device),
                 loaded.device.name() == "cpu" ? "" : loaded.labels() + " or ");
}

// The shares of the layers that each device is to have: as asked, or by how fast it reads, or else by its
// memory. Beside GPUs the CPU then counts for little: it has much memory, and reads slowly.
void add_shares(const LoadedModel& loaded, SplitWish& wish) {
    if (!loaded.is_shared()) return;
    constexpr double kSlower = 0.1;
    std::vector<double> asked, rates, rooms;
    for (const OpenDevice* one : loaded.devices()) {
        if (one->share > 0.0) asked.push_back(one->share);
        if (one->bandwidth > 0.0) rates.push_back(one->bandwidth / one->times);
        const bool slow = one->name() == "cpu" && one->times < loaded.devices().size();
        rooms.push_back(double(one->backend->device().memory.bytes) * (slow ? kSlower : 1.0));
    }
    const size_t count = loaded.devices().size();
    wish.exact = asked.size() == count;
    wish.shares = wish.exact ? asked : rates.size() == count ? rates : rooms;
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
        wish.rules.push_back(RL_TRY(rule_of(loaded, place, *options.names)));
    add_shares(loaded, wish);
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
    const auto most = [&](CacheTypes cache) {
        SessionOptions other = session;
        other.cache = cache;
        return fitting_context(*loaded.model, other, loaded.split_places(), wish, yield);
    };
    std::vector<std::string> ways;
    if (const uint64_t context = RL_TRY(most(session.cache)); context > 0)
        ways.push_back(names.with(names.context, context));
    if (cache_code(session.cache.keys).bits > 8 || cache_code(session.cache.values).bits > 8) {
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

// The error that a whole model has no room on the device, or on all of them together.
std::string no_room(const LoadedModel& loaded, const MemoryNeed& whole, uint64_t context) {
    if (loaded.is_shared())
        return fmt::format("{}: {} are needed, {}", loaded.model->gguf().path(), format_bytes(whole.total()),
                           offers_text(loaded));
    return check_fits(whole, *loaded.model, loaded.device.backend->device(), context).error().message;
}

// The split nearest to the wish that fits. Where both may move, the one that should be faster: experts, of
// which a token uses few, or whole layers, whose parts need not wait for each other as often.
Result<LoadDecision> fitting_decision(const LoadedModel& loaded, const HostOptions& options,
                                      const SplitWish& wish, Yield yield, const SessionOptions& session,
                                      const MemoryNeed& whole, std::vector<std::string>& notes) {
    const Model& model = *loaded.model;
    const uint32_t layers = model.config().layers;
    const SplitPlaces where = loaded.split_places();
    Result<Split> best = fitting_split(model, session, where, wish, yield);
    std::string other;
    if (yield == Yield::experts_first) {
        Result<Split> second = fitting_split(model, session, where, wish, Yield::layers);
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
        return error("{}; nor between {} and the CPU: {}; {}", no_room(loaded, whole, session.context),
                     loaded.is_shared() ? "them" : "it", best.error().message,
                     RL_TRY(what_would_fit(loaded, wish, yield, session, *options.names)));
    RL_TRY(make_room_to_stream(loaded, options, session, wish, yield, best.value()));
    notes.push_back(
        fmt::format("{} are needed, {}: {}, which is slower{}; a smaller context ({}), {} or a smaller "
                    "quantization leaves more of them on the GPU{}",
                    format_bytes(whole.total()), offers_text(loaded), kept_text(best.value(), layers), other,
                    options.names->with(options.names->context, "N"), options.names->small_cache,
                    loaded.is_shared() ? "s" : ""));
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
    const Backend* const cpu = loaded.split.cpu.backend.get();
    const bool on_cpu = std::ranges::count(loaded.split.placements, cpu, &Placement::backend) > 0;
    std::vector<std::string> others;
    if (counts.layers < layers) others.push_back(fmt::format("{}", layers - counts.layers));
    if (counts.experts > 0) others.push_back(fmt::format("the experts of {}", counts.experts));
    if (counts.parts > 0) others.push_back(fmt::format("parts of {}", counts.parts));
    if (others.empty() && on_cpu && cpu) others.push_back("the embedding or the output");
    std::vector<std::string> places;
    const std::vector<const OpenDevice*> devices = loaded.devices();
    for (size_t i = 0; i < devices.size(); ++i) {
        const Backend* backend = devices[i]->backend.get();
        const uint32_t there = loaded.is_shared() ? counts.by_device[i] : counts.layers;
        const std::string on = described(loaded.label(backend), backend->device());
        places.push_back(i == 0 ? fmt::format("{}/{} layers on {}", there, layers, on)
                                : fmt::format("{} on {}", there, on));
    }
    if (!others.empty() && cpu)
        places.push_back(
            fmt::format("{} on {}", fmt::join(others, " and "), described("cpu", cpu->device())));
    return fmt::format("plan: {}, KV cache {} {} tokens {}{}", fmt::join(places, ", "),
                       cache_types_name(loaded.cache), context, format_bytes(cache), more);
}

std::string crossings_text(const LoadedModel& loaded, const Split& split) {
    std::vector<std::string> all;
    double seconds = 0.0;
    bool known = true;
    for (const PlaceCrossing& crossing : split.crossings) {
        const Backend &from = *split.backends[crossing.from], &to = *split.backends[crossing.to];
        const double each = crossing_of(loaded)(from, to);
        known &= each > 0.0;
        seconds += each * crossing.count;
        all.push_back(fmt::format("{} from {} to {}{}", format_bytes(crossing.bytes), loaded.label(&from),
                                  loaded.label(&to),
                                  crossing.count > 1 ? fmt::format(" in {} parts", crossing.count) : ""));
    }
    if (all.empty()) return "";
    return fmt::format("crossings of a token: {}{}", fmt::join(all, ", "),
                       known ? fmt::format("; about {:.0f} us", seconds * 1e6) : "");
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
    if (loaded.divides) return tensor_context(loaded, options, most);
    if (loaded.is_shared()) measure_speeds(loaded, options);
    const SplitWish wish = RL_TRY(wish_of(loaded, options, unsaid));
    if (loaded.device.name() == "cpu" && !loaded.is_shared()) return uint64_t(0);
    SessionOptions session = session_options(options, loaded.device.backend->device(), most);
    const uint64_t enough = std::min(options.default_context, most);
    if (!has_cpu(loaded)) RL_TRY(open_cpu(loaded, options));
    const SplitPlaces where = loaded.split_places();
    const bool asked = is_asked(wish, model.config().layers);
    if (asked || loaded.is_shared()) {
        const uint64_t context = RL_TRY(fitting_context(model, session, where, wish, {}));
        if (asked ? context > 0 : context >= enough) return context;
        if (has_cpu(loaded)) return context;
    }
    const std::optional<Yield> yield = yield_of(model, options);
    if (!yield) return uint64_t(0);
    session.context = enough;
    return fitting_context(model, session, where, wish, yield);
}

// Notes what differs from the wish.
static void note_differences(const LoadedModel& loaded, const HostOptions& options, const SplitWish& wish,
                             const Split& split, std::vector<std::string>& notes) {
    const SettingNames& names = *options.names;
    for (const std::string& pattern : split.unused)
        notes.push_back(fmt::format("{}: no tensor of this model has that in its name",
                                    names.with(names.tensors, pattern)));
    if (!split.followed.empty())
        notes.push_back(fmt::format(
            "{}: in {} {} the attention reads the cache of an earlier layer, and "
            "stays where that is",
            names.tensors, split.followed.size() == 1 ? "layer" : "layers", fmt::join(split.followed, ", ")));
    if (split.together_first < split.together_last)
        notes.push_back(fmt::format(
            "{}: layers {} to {} share caches and stay together: {} of {} "
            "layers run on {}",
            names.with(names.gpu_layers, wish.layers), split.together_first, split.together_last - 1,
            split.counts.layers, loaded.model->config().layers, loaded.labels()));
}

// The need of all devices together when they have all layers.
static MemoryNeed together(std::span<const MemoryNeed> needs) {
    MemoryNeed whole;
    for (const MemoryNeed& need : needs) {
        whole.weights += need.weights;
        whole.cache += need.cache;
        whole.scratch += need.scratch;
        whole.staging += need.staging;
    }
    return whole;
}

Result<SessionNeed> session_need(const LoadedModel& loaded, const SessionOptions& session) {
    if (!loaded.is_shared()) {
        const uint64_t budget = loaded.device.backend->device().memory.bytes;
        const MemoryNeed need = RL_TRY(memory_need(*loaded.model, *loaded.device.backend, session));
        return SessionNeed{need, budget, need.total() <= budget};
    }
    if (loaded.divides) return tensor_need(loaded, session);
    SplitWish all;
    add_shares(loaded, all);
    const Split split = RL_TRY(split_model(*loaded.model, session, loaded.split_places(), all));
    SessionNeed shared{together(split.needs), 0, fits(split)};
    for (const OpenDevice* one : loaded.devices()) shared.budget += one->backend->device().memory.bytes;
    return shared;
}

static Result<LoadDecision> decide_wish(LoadedModel& loaded, const HostOptions& options,
                                        const SessionOptions& session, const SplitWish& wish,
                                        std::vector<std::string>& notes) {
    const Model& model = *loaded.model;
    const bool asked = is_asked(wish, model.config().layers);
    const std::optional<Yield> yield = yield_of(model, options);
    MemoryNeed whole;
    if (loaded.is_shared()) {
        SplitWish all;
        all.shares = wish.shares;
        all.exact = wish.exact;
        Split split = RL_TRY(split_model(model, session, loaded.split_places(), all));
        whole = together(split.needs);
        if (!asked && (fits(split) || has_cpu(loaded) || !yield))
            return split_decision(loaded, options, whole, std::move(split), session);
    } else {
        whole = RL_TRY(memory_need(model, *loaded.device.backend, session));
        const bool whole_fits = whole.total() <= loaded.device.backend->device().memory.bytes;
        if (loaded.device.name() == "cpu" || (!asked && (whole_fits || !yield)))
            return whole_decision(loaded, options, whole, session.context);
    }
    RL_TRY(open_cpu(loaded, options));
    measure_speeds(loaded, options);
    if (asked) {
        Split split = RL_TRY(split_model(model, session, loaded.split_places(), wish));
        note_differences(loaded, options, wish, split, notes);
        if (!loaded.is_shared() && split.placements.size() == 1 &&
            split.backends[0] == loaded.device.backend.get())
            return whole_decision(loaded, options, whole, session.context);
        if (fits(split) || !yield) return split_decision(loaded, options, whole, std::move(split), session);
    }
    return fitting_decision(loaded, options, wish, *yield, session, whole, notes);
}

// Decides for a model whose layers are divided over its devices.
static Result<LoadDecision> tensor_decision(LoadedModel& loaded, const HostOptions& options,
                                            const SessionOptions& session, std::vector<std::string>& notes) {
    LoadDecision decision;
    auto split = std::make_shared<TensorSplit>(RL_TRY(divide_tensors(loaded, options, session)));
    decision.whole = together(split->needs);
    decision.cost.speed = split->speed;
    for (std::string& text : tensor_notes(loaded, *split)) notes.push_back(std::move(text));
    decision.tensors = std::move(split);
    return decision;
}

Result<LoadDecision> decide_load(LoadedModel& loaded, const HostOptions& options,
                                 const SessionOptions& session, std::vector<std::string>& notes) {
    if (loaded.divides) return tensor_decision(loaded, options, session, notes);
    if (options.split_mode == SplitMode::tensor)
        notes.push_back(fmt::format("{}: there is one device, {}, and nothing is divided",
                                    options.names->with(options.names->split_mode, "tensor"),
                                    loaded.device.name()));
    if (loaded.is_shared()) measure_speeds(loaded, options);
    const SplitWish wish = RL_TRY(wish_of(loaded, options, notes));
    Result<LoadDecision> decided = decide_wish(loaded, options, session, wish, notes);
    const std::vector<const OpenDevice*> devices = std::as_const(loaded).devices();
    for (size_t i = 0; decided && decided.value().split && loaded.is_shared() && i < devices.size(); ++i)
        if (decided.value().split->counts.by_device[i] == 0)
            notes.push_back(fmt::format("{} has no layer: its share or its room is too small for one",
                                        loaded.label(devices[i]->backend.get())));
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
    loaded.split.ranks.clear();
    loaded.split.stream_rows = 0;
    loaded.split.counts = {loaded.model->config().layers, 0, 0, {}};
    std::vector<std::string> notes;
    const Result<LoadDecision> decision = decide_load(loaded, options, session, notes);
    for (const std::string& text : notes) options.notes->note(text);
    const LoadDecision decided = RL_TRY(decision);
    loaded.speed.planned = decided.cost.speed;
    if (decided.tensors) {
        loaded.split.ranks = decided.tensors->ranks;
        loaded.split.counts.by_device.assign(loaded.devices().size(), loaded.model->config().layers);
        say_tensors(loaded, *decided.tensors, session.context, *options.notes);
        return {};
    }
    if (decided.split) {
        loaded.split.placements = decided.split->placements;
        loaded.split.counts = decided.split->counts;
        loaded.split.stream_rows = decided.stream.rows;
        loaded.split.cpu_row_seconds = decided.stream.cpu_seconds / session.batch;
        say_split(loaded, *decided.split, decided.cost, decided.stream, session.context, *options.notes);
        if (options.job)
            for (const std::string& line : options.job->plan_lines(loaded)) options.notes->inform(line);
        return {};
    }
    say_whole(loaded, decided.whole, decided.cost.speed, session.context, *options.notes);
    note_budget(loaded, options, decided.whole);
    return {};
}

}  // namespace redline
