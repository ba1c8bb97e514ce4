// Writes what redline launches in steps of several numbers of rows, with the choices that it has for a device
// before it tunes: for each op its weights and the kernels with their grids, as JSON. Nothing is computed, so
// stand-ins will do: for Vulkan tools/vulkan/vulkan-lab run navi31 PROGRAM, for HIP the test double's folder
// in LD_LIBRARY_PATH. The model may be hollow (tools/measure/make_random_model.py --hollow).
//   step_kernels vulkan MODEL.gguf ROWS,ROWS,... CODE UNITS [fragments]   CODE gets the kernels' machine code
//   step_kernels hip MODEL.gguf ROWS,ROWS,... TARGET UNITS
// With "plans" behind these it also writes the plans, with scratch, choices and precision of each kernel, and
// the same steps with rows of several sequences; no kernel is compiled then, and CODE stays unwritten. See
// tools/measure/step_lists.py.
#include "step_kernels.h"

#include "backends/shared/layout.h"
#include "engine/engine.h"
#include "measure/pages.h"
#include "plan/stored_weights.h"

#include <charconv>
#include <cstdio>
#include <map>

using namespace redline;

namespace {

Result<std::vector<uint32_t>> numbers(std::string_view text) {
    std::vector<uint32_t> out;
    for (const char *at = text.data(), *const end = at + text.size(); at < end; ++at) {
        uint32_t value = 0;
        const auto [rest, code] = std::from_chars(at, end, value);
        if (code != std::errc() || value == 0 || (rest != end && *rest != ','))
            return error("{} is no list of numbers of rows, such as 1,2,4", text);
        out.push_back(value);
        at = rest;
    }
    return out;
}

// The matrices that an op multiplies with, in its order.
Json matrices_of(const Op& op, const Plan& plan) {
    std::map<std::string_view, const Tensor*> known;
    for (const WeightInfo& weight : plan.weights)
        if (weight.role == WeightRole::matrix) known[weight.tensor.name] = &weight.tensor;
    Json out = Json::array();
    const std::string names = op_tensors(op, plan);
    for (size_t at = 0; at < names.size();) {
        const size_t end = std::min(names.find(", ", at), names.size());
        if (const auto found = known.find(std::string_view(names).substr(at, end - at));
            found != known.end()) {
            const Tensor& tensor = *found->second;
            const WeightLayout* layout = weight_layout(*tensor.format);
            out.push_back({{"name", tensor.name},
                           {"format", layout ? layout->name : tensor.format->name},
                           {"bytes", tensor.bytes()},
                           {"count", tensor.shape.count},
                           {"rows", tensor.shape.rows},
                           {"cols", tensor.shape.cols}});
        }
        at = end + 2;
    }
    return out;
}

// A step of so many rows at the beginning of a text, of which the last has an output.
Result<Json> step(Executable& executable, const Plan& plan, uint32_t rows, Noted& noted) {
    const std::vector<int32_t> tokens(rows, 1);
    const SequenceStep params(tokens, 0, 1);
    Json ops = Json::array();
    noted.take();
    RL_TRY(executable.run_traced(params, [&](const TraceStep& traced) {
        const Op& op = traced.step->op;
        ops.push_back({{"op", op_name(op)},
                       {"text", op_text(op, plan)},
                       {"matrices", matrices_of(op, plan)},
                       {"bytes", traced.cost.weight_bytes + traced.cost.cache_bytes},
                       {"waits", traced.step->barrier},
                       {"launches", noted.take()}});
    }));
    return Json{{"rows", rows}, {"ops", std::move(ops)}};
}

Json json_of(const Rounding& rounding) {
    return {rounding.unit, rounding.block, rounding.group};
}

Json json_of(const MemoryNeed& need) {
    return {need.weights, need.cache, need.scratch, need.staging};
}

// The decisions of a plan, beside its launches.
Json facts_of(const BoundPlan& bound, const Noted& noted) {
    const Plan& plan = bound.plan;
    Json slots = Json::array(), steps = Json::array();
    for (const SlotInfo& slot : plan.slots)
        slots.push_back({slot.width, slot.of_outputs, slot.offset, slot.handed_one, slot.handed_few});
    for (size_t i = 0; i < plan.steps.size(); ++i) {
        const Step& step = plan.steps[i];
        const Kernel& kernel = *bound.kernels[i];
        Json choices = Json::array(), precision = Json::array();
        for (const RowClass rows : kRowClassList) {
            Json all = Json::array();
            for (const Choice& one : kernel.choices(rows)) all.push_back({one.name, one.values, one.any});
            choices.push_back(std::move(all));
        }
        for (const uint32_t rows : {1, 2, 8, 9, 16, 17, 64, 65, 128, 129, 512}) {
            const Precision p = kernel.precision(rows);
            precision.push_back(
                {json_of(p.weights), json_of(p.activations), json_of(p.keys), json_of(p.values)});
        }
        steps.push_back({{"text", op_text(step.op, plan)},
                         {"layer", step.layer},
                         {"waits", step.barrier},
                         {"leaves", step.leaves.index},
                         {"takes", step.takes.index},
                         {"scratch", noted.scratch(kernel, plan)},
                         {"choices", std::move(choices)},
                         {"precision", std::move(precision)},
                         {"takes_int8", kernel.takes_int8()},
                         {"leaves_int8", kernel.leaves_int8()},
                         {"takes_few", kernel.takes_few()},
                         {"leaves_few", kernel.leaves_few()},
                         {"mixes", kernel.mixes()},
                         {"wanted", kernel.wanted()}});
    }
    return {{"rows", plan.max_rows},
            {"sequences", plan.sizing.sequences},
            {"arena", plan.arena_bytes},
            {"slots", std::move(slots)},
            {"steps", std::move(steps)}};
}

// The executables of an engine; of one row and of several.
struct Executables {
    std::vector<Plan> plans;
    std::unique_ptr<CacheStore> caches;
    std::vector<std::unique_ptr<Executable>> all;
    Json facts = Json::array();  // with plans

    size_t of(uint32_t rows) const { return rows == 1 ? 0 : all.size() - 1; }
};

Result<Executables> record(const Model& model, const EngineOptions& options, const Noted& noted) {
    Backend& backend = noted.backend();
    Executables made;
    const std::vector<Plan> plans = RL_TRY(engine_plans(model, options));
    made.caches = RL_TRY(backend.make_caches(plans[0].caches));
    PlanGroup group;
    for (const Plan& plan : plans) group.push_back(RL_TRY(lower(plan, backend)));
    for (const BoundPlan& bound : group) {
        made.plans.push_back(bound.plan);
        made.facts.push_back(facts_of(bound, noted));
    }
    made.all = RL_TRY(backend.record_group(std::move(group), model.weights(), *made.caches, Record::direct));
    return made;
}

// The launches of a step of as many sequences as there may be: each has a row, the last one what is left.
// `best`: the device picks the largest outputs.
Result<Json> launches(Executable& executable, const Plan& plan, uint32_t count, bool best, Noted& noted) {
    const std::vector<int32_t> tokens(count, 1);
    const std::vector<float> lookups(plan.lookup_floats(count));
    const uint32_t sequences = std::min(count, plan.sizing.sequences);
    std::vector<Row> rows;
    std::vector<uint32_t> outputs;
    for (uint32_t i = 0; i < count; ++i) {
        const uint32_t sequence = std::min(i, sequences - 1);
        rows.push_back({sequence, i - sequence});
        if (i + 1 == count || i + 1 < sequences) outputs.push_back(i);
    }
    const auto pages = scattered_pages(plan.caches, plan.sizing.sequences);
    const std::vector<std::span<const uint32_t>> lists(pages.begin(), pages.begin() + sequences);
    StepParams params{tokens, rows, outputs};
    if (plan.sizing.pages > 0) params.pages = lists;
    params.lookups = lookups;
    params.best = best ? 1 : 0;
    params.best_among = best ? plan.slot(plan.output).width : 0;
    noted.take();
    RL_TRY(executable.run(params));
    return Json{
        {"rows", count}, {"sequences", plan.sizing.sequences}, {"best", best}, {"launches", noted.take()}};
}

// The plans of an engine for so many sequences, and the launches of its steps.
Status add_plans(const Model& model, EngineOptions options, uint32_t sequences,
                 std::span<const uint32_t> rows, Noted& noted, Json& out) {
    options.sequences = options.outputs = sequences;
    out["memory"].push_back(json_of(RL_TRY(memory_need(model, noted.backend(), options))));
    const Executables made = RL_TRY(record(model, options, noted));
    for (const Json& facts : made.facts) out["plans"].push_back(facts);
    for (const uint32_t count : rows) {
        const size_t which = made.of(count);
        for (const bool best : {false, true})
            if (!best || made.all[which]->most_best() > 0)
                out["launches"].push_back(
                    RL_TRY(launches(*made.all[which], made.plans[which], count, best, noted)));
    }
    return {};
}

Result<Json> steps(const std::string& path, std::span<const uint32_t> rows, bool with_plans, Noted& noted) {
    constexpr uint32_t kSequences = 4;
    Model model = RL_TRY(Model::inspect(path));
    EngineOptions options;
    options.context = 1024;
    options.batch = *std::max_element(rows.begin(), rows.end());
    const DeviceInfo& device = noted.backend().device();
    RL_TRY(model.place(noted.backend(), {}));
    Json out = {{"device", device.name}, {"detail", device.detail}};
    if (with_plans) {
        RL_TRY(add_plans(model, options, 1, rows, noted, out));
        RL_TRY(add_plans(model, options, kSequences, rows, noted, out));
        return out;
    }
    out["steps"] = Json::array();
    const Executables made = RL_TRY(record(model, options, noted));
    for (const uint32_t count : rows)
        out["steps"].push_back(
            RL_TRY(step(*made.all[made.of(count)], made.plans[made.of(count)], count, noted)));
    return out;
}

Status run(std::span<char*> given) {
    const std::string kind = given[0];
    const std::vector<uint32_t> rows = RL_TRY(numbers(given[2]));
    std::unique_ptr<Noted> noted;
    const uint32_t units = RL_TRY(numbers(given[4])).front();
    const std::string_view last = given.back();
    const bool with_plans = last == "plans";
    noted = kind == "vulkan" ? RL_TRY(noted_vulkan(units, last == "fragments", !with_plans))
                             : RL_TRY(noted_hip(given[3], units));
    const Json all = RL_TRY(steps(given[1], rows, with_plans, *noted));
    std::printf("%s\n", all.dump().c_str());
    if (kind != "vulkan" || with_plans) return {};
    std::FILE* code = std::fopen(given[3], "w");
    if (!code) return error("{} cannot be written", given[3]);
    const Status written = noted->write_code(code);
    std::fclose(code);
    return written;
}

}  // namespace

int main(int count, char** arguments) {
    const std::span<char*> given(arguments + 1, size_t(count - 1));
    const std::string_view kind = given.empty() ? "" : given[0];
    const std::string_view more = given.size() == 6 ? given[5] : "";
    const bool known = more == "plans" || (kind == "vulkan" && more == "fragments");
    if ((kind != "vulkan" && kind != "hip") || (given.size() != 5 && !known)) {
        std::fprintf(stderr,
                     "usage: step_kernels vulkan MODEL.gguf ROWS CODE UNITS [fragments|plans]\n"
                     "       step_kernels hip MODEL.gguf ROWS TARGET UNITS [plans]\n");
        return 2;
    }
    const Status done = run(given);
    if (!done) std::fprintf(stderr, "step_kernels: %s\n", done.error().message.c_str());
    return done ? 0 : 1;
}
