#include "cli/split_report.h"

#include "cli/terminal/terminal.h"
#include "host/expected_speed.h"
#include "host/tensor_split.h"
#include "memory/budget.h"
#include "text/tokens/unicode.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace redline::cli {

namespace {

std::string shown(const Json& text) {
    return printable(text.get<std::string>());
}
std::string bytes(const Json& count) {
    return format_bytes(count.get<uint64_t>());
}
uint64_t number(const Json& value) {
    return value.get<uint64_t>();
}
std::string amount(const Json& count) {
    return count == 0 ? "-" : bytes(count);
}

void add_speed(const Speed& speed, Json& object) {
    const auto known = [](double value) { return value > 0.0 ? Json(value) : Json(nullptr); };
    object["expected_tokens_per_second"] = known(speed.expected);
    object["most_tokens_per_second"] = known(speed.most);
}

double known_number(const Json& object, const char* name) {
    return object.contains(name) && object[name].is_number() ? object[name].get<double>() : 0.0;
}

Json split_json(const LoadedModel& loaded, const LoadDecision& decision,
                const std::vector<std::string>& notes) {
    const Split& split = *decision.split;
    const SplitCost& cost = decision.cost;
    const StreamChoice& stream = decision.stream;
    Json parts = Json::array();
    const std::vector<const OpenDevice*> devices = loaded.devices();
    for (size_t i = 0; i < split.needs.size(); ++i) {
        const MemoryNeed& need = split.needs[i];
        const MemoryBudget& budget = split.backends[i]->device().memory;
        parts.push_back({{"id", loaded.label(split.backends[i])},
                         {"weights", need.weights},
                         {"cache", need.cache},
                         {"scratch", need.scratch},
                         {"staging", need.staging},
                         {"total", need.total()},
                         {"available", budget.bytes},
                         {"limit", budget.text()}});
        for (size_t device = 0; device < devices.size(); ++device)
            if (devices[device]->backend.get() == split.backends[i])
                parts.back()["layers"] = split.counts.by_device[device];
    }
    Json crossings = Json::array();
    for (const PlaceCrossing& crossing : split.crossings) {
        const Backend &from = *split.backends[crossing.from], &to = *split.backends[crossing.to];
        const double seconds = crossing_of(loaded)(from, to);
        crossings.push_back({{"from", loaded.label(&from)},
                             {"to", loaded.label(&to)},
                             {"count", crossing.count},
                             {"bytes_per_token", crossing.bytes},
                             {"seconds", seconds > 0.0 ? Json(seconds * crossing.count) : Json(nullptr)}});
    }
    Json all = {{"device", loaded.labels()},
                {"devices", devices.size()},
                {"layers", loaded.model->config().layers},
                {"device_layers", split.counts.layers},
                {"cpu_experts", split.counts.experts},
                {"cpu_parts", split.counts.parts},
                {"cpu_bytes_per_token", cost.cpu_bytes},
                {"places", parts},
                {"crossings", crossings},
                {"crossing_text", crossings_text(loaded, split)},
                {"stream",
                 {{"rows", stream.rows},
                  {"staging", stream.staging},
                  {"cpu_seconds", stream.cpu_seconds},
                  {"stream_seconds", stream.stream_seconds},
                  {"text", stream.text()}}},
                {"notes", notes}};
    add_speed(cost.speed, all);
    return all;
}

// The decision about a model whose layers are divided over devices.
Json tensors_json(const LoadedModel& loaded, const TensorSplit& split, uint64_t context) {
    Json ranks = Json::array();
    for (size_t i = 0; i < split.ranks.size(); ++i) {
        const Backend& backend = *split.ranks[i].backend;
        const MemoryNeed& need = split.needs[i];
        const RankSharing::Rank& its = split.sharing.ranks[i];
        ranks.push_back({{"id", loaded.label(&backend)},
                         {"weight_bytes", its.weight_bytes},
                         {"whole_bytes", its.whole_bytes},
                         {"bytes_per_token", its.read_bytes},
                         {"attention_layers", its.head_layers},
                         {"weights", need.weights},
                         {"cache", need.cache},
                         {"scratch", need.scratch},
                         {"staging", need.staging},
                         {"total", need.total()},
                         {"available", backend.device().memory.bytes},
                         {"limit", backend.device().memory.text()}});
    }
    const auto known = [](double value) { return value > 0.0 ? Json(value) : Json(nullptr); };
    Json all = {{"device", loaded.labels()},
                {"ranks", ranks},
                {"sums_per_token", split.sharing.sums},
                {"sum_bytes_per_token", split.sharing.sum_bytes},
                {"sum_seconds", known(split.sum_seconds)},
                {"layers_tokens_per_second", known(split.layers_speed)},
                {"text", tensor_plan_line(loaded, split, context)},
                {"sums_text", sums_text(split)}};
    add_speed(split.speed, all);
    return all;
}

std::vector<std::string> tensor_lines(const Json& tensors) {
    std::vector<std::string> lines = {shown(tensors["text"]).replace(0, 5, "run divides it:")};
    if (tensors["sums_text"] != "") lines.push_back(shown(tensors["sums_text"]));
    if (const std::string speed = speed_text(tensors); !speed.empty()) lines.back() += speed;
    std::vector<std::string> memories;
    for (const Json& rank : tensors["ranks"])
        memories.push_back(fmt::format("{} of {} on {} (weights {}, cache {}, scratch {})",
                                       bytes(rank["total"]), shown(rank["limit"]), shown(rank["id"]),
                                       bytes(rank["weights"]), bytes(rank["cache"]), bytes(rank["scratch"])));
    lines.push_back(fmt::format("{}", fmt::join(memories, "; ")));
    return lines;
}

}  // namespace

void add_decision(LoadedModel& loaded, const HostOptions& options, const SessionOptions& session,
                  Json& memory) {
    std::vector<std::string> notes;
    const Result<LoadDecision> decided = decide_load(loaded, options, session, notes);
    if (!decided)
        memory["refusal"] = decided.error().message;
    else if (decided.value().tensors)
        memory["tensors"] = tensors_json(loaded, *decided.value().tensors, session.context);
    else if (!decided.value().split)
        add_speed(decided.value().cost.speed, memory);
    else
        memory["split"] = split_json(loaded, decided.value(), notes);
    // The notes on a split stand beside it.
    if (!memory.contains("split") && !notes.empty()) memory["notes"] = notes;
}

std::string speed_text(const Json& memory) {
    const Speed speed{known_number(memory, "expected_tokens_per_second"),
                      known_number(memory, "most_tokens_per_second")};
    const std::string text = speed.text();
    return text.empty() ? text : ", " + text;
}

std::vector<std::string> split_lines(const Json& memory) {
    std::vector<std::string> lines;
    if (memory.contains("refusal")) lines.push_back("run refuses: " + shown(memory["refusal"]));
    if (memory.contains("notes"))
        for (const Json& text : memory["notes"]) lines.push_back("note: " + shown(text));
    if (memory.contains("tensors"))
        for (std::string& line : tensor_lines(memory["tensors"])) lines.push_back(std::move(line));
    if (!memory.contains("split")) return lines;
    const Json& split = memory["split"];
    const uint64_t layers = number(split["layers"]), there = number(split["device_layers"]);
    std::vector<std::string> on_cpu;
    if (there < layers) on_cpu.push_back(fmt::format("{}", layers - there));
    if (split["cpu_experts"] != 0)
        on_cpu.push_back(fmt::format("the experts of {}", number(split["cpu_experts"])));
    if (split["cpu_parts"] != 0) on_cpu.push_back(fmt::format("parts of {}", number(split["cpu_parts"])));
    const bool several = split["devices"] > 1;
    if (on_cpu.empty() && !several) on_cpu.emplace_back("the embedding or the output");
    std::vector<std::string> parts;
    for (const Json& place : split["places"])
        if (several && place.contains("layers"))
            parts.push_back(fmt::format("{}{} on {}", number(place["layers"]),
                                        parts.empty() ? fmt::format("/{} layers", layers) : "",
                                        shown(place["id"])));
    if (!several) parts.push_back(fmt::format("{}/{} layers on {}", there, layers, shown(split["device"])));
    if (!on_cpu.empty()) parts.push_back(fmt::format("{} on cpu", fmt::join(on_cpu, " and ")));
    std::vector<std::string> costs;
    if (split["cpu_bytes_per_token"] != 0)
        costs.push_back(fmt::format("the CPU reads {} per token", bytes(split["cpu_bytes_per_token"])));
    if (several && split["crossing_text"] != "") costs.push_back(shown(split["crossing_text"]));
    std::string cost = fmt::format("{}{}", fmt::join(costs, ", "), speed_text(split));
    if (costs.empty() && !cost.empty()) cost.erase(0, 2);
    std::vector<std::string> memories;
    for (const Json& place : split["places"])
        memories.push_back(fmt::format(
            "{} of {} on {} (weights {}, cache {}, scratch {})", bytes(place["total"]), shown(place["limit"]),
            shown(place["id"]), bytes(place["weights"]), bytes(place["cache"]), bytes(place["scratch"])));
    lines = {fmt::format("run splits it: {}{}{}{}", fmt::join(parts, ", "), cost.empty() ? "" : "; ", cost,
                         shown(split["stream"]["text"])),
             fmt::format("{}", fmt::join(memories, "; "))};
    for (const Json& text : split["notes"]) lines.push_back("note: " + shown(text));
    return lines;
}

// Adds the steps of a part, as its device runs them, to the plan.
static Status add_part(const Plan& part, Backend& backend, const std::string& device, bool fuse,
                       uint64_t context, Json& plan) {
    const BoundPlan bound = RL_TRY(lower(part, backend, fuse));
    const StepShape shape{1, 1, context};
    for (const Step& step : bound.plan.steps) {
        const Cost one = cost(step.op, bound.plan, shape);
        plan["steps"].push_back({{"layer", step.layer},
                                 {"device", device},
                                 {"op", op_text(step.op, bound.plan)},
                                 {"tensors", op_tensors(step.op, bound.plan)},
                                 {"weight_bytes", one.weight_bytes},
                                 {"cache_bytes", one.cache_bytes},
                                 {"flops", one.flops},
                                 {"barrier", step.barrier}});
    }
    const Cost sum = step_cost(bound.plan, shape);
    const auto add = [&](const char* key, uint64_t more) { plan[key] = plan.value(key, uint64_t(0)) + more; };
    add("ops", bound.plan.steps.size());
    add("weight_bytes", sum.weight_bytes);
    add("cache_bytes", sum.cache_bytes);
    add("flops", uint64_t(sum.flops));
    // Parts of a device work in the same memory.
    plan["arena_bytes"] = std::max(plan.value("arena_bytes", uint64_t(0)), bound.plan.arena_bytes);
    return {};
}

Result<Json> plan_json(LoadedModel& loaded, const HostOptions& options, uint64_t context) {
    const Plan plan = RL_TRY(loaded.model->plan(1, 1, {context, 1, options.cache}));
    Json all = {{"device", loaded.labels()},
                {"recorded_ops", plan.steps.size()},
                {"kv_len", context},
                {"steps", Json::array()}};
    std::vector<std::string> notes;
    const SessionOptions session = session_options(options, loaded.device.backend->device(), context);
    const Result<LoadDecision> decided = decide_load(loaded, options, session, notes);
    if (decided && decided.value().tensors) {
        const TensorSplit& tensors = *decided.value().tensors;
        for (size_t i = 0; i < tensors.ranks.size(); ++i) {
            Backend& backend = *tensors.ranks[i].backend;
            RL_TRY(add_part(tensors.sharing.ranks[i].plan, backend, loaded.label(&backend), options.fuse,
                            context, all));
        }
        return all;
    }
    if (!decided || !decided.value().split) {
        RL_TRY(add_part(plan, *loaded.device.backend, loaded.device.name(), options.fuse, context, all));
        return all;
    }
    const std::vector<Placement>& placements = decided.value().split->placements;
    std::vector<size_t> cuts, places;
    for (const Placement& placement : with_steps(placements)) {
        if (placement.first > 0) cuts.push_back(placement.first);
        const auto found = std::ranges::find(decided.value().split->backends, placement.backend);
        places.push_back(size_t(found - decided.value().split->backends.begin()));
    }
    const Plan whole = divided(plan, &cuts);
    const std::vector<PlanPart> parts = RL_TRY(cut(whole, cuts, places));
    for (size_t i = 0; i < parts.size(); ++i) {
        Backend& backend = *placements[i].backend;
        RL_TRY(add_part(parts[i].plan, backend, loaded.label(&backend), options.fuse, context, all));
    }
    return all;
}

std::string plan_text(const Json& p) {
    std::string out =
        fmt::format("\nplan of one token at a context of {} on {}: {} ops ({} as the model file has them)\n",
                    number(p["kv_len"]), shown(p["device"]), number(p["ops"]), number(p["recorded_ops"]));
    std::string device = shown(p["device"]);
    for (const Json& step : p["steps"]) {
        if (shown(step["device"]) != device) {
            device = shown(step["device"]);
            out += fmt::format("on {}:\n", device);
        }
        out += fmt::format("{:>4} {} {:<58} {:>10} {:>10}  {}\n", number(step["layer"]),
                           step["barrier"].get<bool>() ? "|" : " ", shown(step["op"]),
                           amount(step["weight_bytes"]), amount(step["cache_bytes"]), shown(step["tensors"]));
    }
    return out + fmt::format("reads {} of weights and {} of cache, computes {:.3f} GFLOP; scratch {}\n",
                             bytes(p["weight_bytes"]), bytes(p["cache_bytes"]),
                             double(number(p["flops"])) * 1e-9, bytes(p["arena_bytes"]));
}

}  // namespace redline::cli
