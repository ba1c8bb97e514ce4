#include "run/pipeline.h"

#include <numeric>

namespace redline {

// Runs all parts, each with what the one before it left.
static Status run_parts(std::span<const std::unique_ptr<Executable>> parts, const StepParams& params,
                        const std::function<Status(Executable&, const StepParams&)>& run) {
    StepParams own = params;
    std::vector<uint32_t> all(params.tokens.size());
    std::iota(all.begin(), all.end(), 0u);
    own.outputs = all;
    own.best = own.best_among = 0;
    for (const std::unique_ptr<Executable>& part : parts.first(parts.size() - 1)) {
        RL_TRY(run(*part, own));
        own.input = part->output();
    }
    StepParams last = params;
    last.input = own.input;
    return run(*parts.back(), last);
}

Status Pipeline::run(const StepParams& params) {
    return run_parts(parts_, params, [](Executable& part, const StepParams& own) { return part.run(own); });
}

Status Pipeline::run_traced(const StepParams& params, const TraceSink& sink) {
    return run_parts(parts_, params,
                     [&](Executable& part, const StepParams& own) { return part.run_traced(own, sink); });
}

// The steps that placements but the first begin with.
static Result<std::vector<size_t>> cuts_of(std::span<const Placement> placements, size_t steps) {
    std::vector<size_t> cuts;
    size_t placed = 0;
    for (const Placement& placement : placements) {
        if (placement.first != placed || placement.last <= placed)
            return error("steps {} to {} are placed, which is none or does not begin with step {}",
                         placement.first, placement.last, placed);
        if (placed > 0) cuts.push_back(placed);
        placed = placement.last;
    }
    if (placed != steps) return error("{} steps are placed, the plan has {}", placed, steps);
    return cuts;
}

Result<std::vector<PlanPart>> Places::parts(uint32_t rows, uint32_t outputs) const {
    Plan plan = RL_TRY(model_->plan(rows, outputs, sizing_));
    // As the file has them: each backend decides how it stores its own.
    plan.weights.assign(model_->file_weights().begin(), model_->file_weights().end());
    return cut(plan, cuts_);
}

Result<Places> Places::load(const Model& model, const CacheSizing& sizing,
                            std::span<const Placement> placements) {
    Places made(model, sizing);
    const Plan plan = RL_TRY(model.plan(1, 1, sizing));
    made.cuts_ = RL_TRY(cuts_of(placements, plan.steps.size()));
    const std::vector<PlanPart> parts = RL_TRY(made.parts(1, 1));
    for (size_t i = 0; i < parts.size(); ++i) {
        Backend& backend = *placements[i].backend;
        std::unique_ptr<WeightStore> weights = RL_TRY(model.load_some(parts[i].weights, backend));
        std::unique_ptr<CacheStore> caches = RL_TRY(backend.make_caches(parts[i].plan.caches));
        made.places_.push_back({&backend, std::move(weights), std::move(caches)});
    }
    return made;
}

Result<std::unique_ptr<Executable>> Places::record(uint32_t rows, uint32_t outputs, Record mode, bool fuse) {
    std::vector<PlanPart> parts = RL_TRY(this->parts(rows, outputs));
    std::vector<std::unique_ptr<Executable>> recorded;
    for (size_t i = 0; i < parts.size(); ++i) {
        Place& place = places_[i];
        BoundPlan bound = RL_TRY(lower(parts[i].plan, *place.backend, fuse));
        recorded.push_back(
            RL_TRY(place.backend->record(std::move(bound), *place.weights, *place.caches, mode)));
    }
    return std::unique_ptr<Executable>(std::make_unique<Pipeline>(std::move(recorded)));
}

}  // namespace redline
