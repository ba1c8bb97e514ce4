// Writes what redline launches in steps of several numbers of rows, with the choices that it has for a device
// before it tunes: for each op its weights and the kernels with their grids, as JSON. Nothing is computed, so
// stand-ins will do: for Vulkan tools/vulkan/vulkan-lab run navi31 PROGRAM, for HIP the test double's folder
// in LD_LIBRARY_PATH. The model may be hollow (tools/measure/make_random_model.py --hollow).
//   step_kernels vulkan MODEL.gguf ROWS,ROWS,... CODE UNITS [fragments]   CODE gets the kernels' machine code
//   step_kernels hip MODEL.gguf ROWS,ROWS,... TARGET UNITS
#include "step_kernels.h"

#include "backends/shared/layout.h"
#include "engine/engine.h"
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

Result<Json> steps(const std::string& path, std::span<const uint32_t> rows, Noted& noted) {
    Backend& backend = noted.backend();
    Model model = RL_TRY(Model::inspect(path));
    EngineOptions options;
    options.context = 1024;
    options.batch = *std::max_element(rows.begin(), rows.end());
    const std::vector<Plan> plans = RL_TRY(engine_plans(model, options));
    RL_TRY(model.place(backend, {}));
    const auto caches = RL_TRY(backend.make_caches(plans[0].caches));
    PlanGroup group;
    for (const Plan& plan : plans) group.push_back(RL_TRY(lower(plan, backend)));
    std::vector<Plan> lowered;
    for (const BoundPlan& bound : group) lowered.push_back(bound.plan);
    const auto made =
        RL_TRY(backend.record_group(std::move(group), model.weights(), *caches, Record::direct));
    Json out = {
        {"device", backend.device().name}, {"detail", backend.device().detail}, {"steps", Json::array()}};
    for (const uint32_t count : rows) {
        const size_t which = count == 1 ? 0 : made.size() - 1;
        out["steps"].push_back(RL_TRY(step(*made[which], lowered[which], count, noted)));
    }
    return out;
}

Status run(std::span<char*> given) {
    const std::string kind = given[0];
    const std::vector<uint32_t> rows = RL_TRY(numbers(given[2]));
    std::unique_ptr<Noted> noted;
    const uint32_t units = RL_TRY(numbers(given[4])).front();
    noted =
        kind == "vulkan" ? RL_TRY(noted_vulkan(units, given.size() > 5)) : RL_TRY(noted_hip(given[3], units));
    const Json all = RL_TRY(steps(given[1], rows, *noted));
    std::printf("%s\n", all.dump().c_str());
    if (kind != "vulkan") return {};
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
    const bool more = given.size() == 6 && std::string_view(given[5]) == "fragments";
    if (!((kind == "vulkan" && (given.size() == 5 || more)) || (kind == "hip" && given.size() == 5))) {
        std::fprintf(stderr,
                     "usage: step_kernels vulkan MODEL.gguf ROWS CODE UNITS [fragments]\n"
                     "       step_kernels hip MODEL.gguf ROWS TARGET UNITS\n");
        return 2;
    }
    const Status done = run(given);
    if (!done) std::fprintf(stderr, "step_kernels: %s\n", done.error().message.c_str());
    return done ? 0 : 1;
}
