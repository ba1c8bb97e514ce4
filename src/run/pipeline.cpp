#include "run/pipeline.h"

#include "plan/stored_weights.h"

#include <algorithm>
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

static uint64_t file_bytes(const PlanPart& part) {
    uint64_t sum = 0;
    for (const WeightInfo& weight : part.plan.weights) sum += weight.tensor.bytes();
    return sum;
}

Result<Places> Places::load(const Model& model, const CacheSizing& sizing,
                            std::span<const Placement> placements, const Progress& progress) {
    Places made(model, sizing);
    const Plan plan = RL_TRY(model.plan(1, 1, sizing));
    made.cuts_ = RL_TRY(cuts_of(placements, plan.steps.size()));
    const std::vector<PlanPart> parts = RL_TRY(made.parts(1, 1));
    uint64_t all = 0, before = 0;
    for (const PlanPart& part : parts) all += file_bytes(part);
    for (size_t i = 0; i < parts.size(); ++i) {
        Backend& backend = *placements[i].backend;
        const Progress own = [&](uint64_t done, uint64_t) {
            if (progress) progress(before + done, all);
        };
        made.places_.push_back({&backend, RL_TRY(model.load_some(parts[i].weights, backend, own))});
        before += file_bytes(parts[i]);
    }
    return made;
}

Result<std::vector<MemoryNeed>> Places::measure(const Model& model, const CacheSizing& sizing,
                                                std::span<const Placement> placements, uint32_t rows,
                                                uint32_t outputs, bool fuse) {
    Places made(model, sizing);
    const Plan plan = RL_TRY(model.plan(1, 1, sizing));
    made.cuts_ = RL_TRY(cuts_of(placements, plan.steps.size()));
    std::vector<std::vector<BoundPlan>> plans(placements.size());
    std::vector<PlanPart> parts;
    for (const uint32_t most : {1u, rows}) {
        parts = RL_TRY(made.parts(most, std::min(most, outputs)));
        for (size_t i = 0; i < parts.size(); ++i)
            plans[i].push_back(RL_TRY(lower(parts[i].plan, *placements[i].backend, fuse)));
        if (rows == 1) break;
    }
    std::vector<MemoryNeed> needs;
    for (size_t i = 0; i < parts.size(); ++i)
        needs.push_back(RL_TRY(
            placements[i].backend->measure(stored_weights(parts[i].plan.weights, *placements[i].backend),
                                           parts[i].plan.caches, std::move(plans[i]))));
    return needs;
}

// Each cache of a whole plan is one of a part's.
class PartCaches : public CacheStore {
public:
    struct Home {
        CacheStore* store = nullptr;
        Cache cache;
    };
    PartCaches(std::vector<std::unique_ptr<CacheStore>> stores, std::vector<Home> homes)
        : stores_(std::move(stores)), homes_(std::move(homes)) {}

    uint64_t bytes() const override {
        uint64_t sum = 0;
        for (const auto& store : stores_) sum += store->bytes();
        return sum;
    }
    Status read(Cache cache, uint64_t first, uint64_t count, std::span<std::byte> out) override {
        const Home& home = homes_[size_t(cache.index)];
        return home.store->read(home.cache, first, count, out);
    }
    Status write(Cache cache, uint64_t first, uint64_t count, std::span<const std::byte> in) override {
        const Home& home = homes_[size_t(cache.index)];
        return home.store->write(home.cache, first, count, in);
    }

private:
    std::vector<std::unique_ptr<CacheStore>> stores_;
    std::vector<Home> homes_;  // one for each of the whole plan's
};

Result<std::unique_ptr<CacheStore>> Places::make_caches() {
    const std::vector<PlanPart> parts = RL_TRY(this->parts(1, 1));
    std::vector<std::unique_ptr<CacheStore>> stores;
    std::vector<PartCaches::Home> homes;
    for (size_t i = 0; i < parts.size(); ++i) {
        stores.push_back(RL_TRY(places_[i].backend->make_caches(parts[i].plan.caches)));
        places_[i].caches = stores.back().get();
        for (size_t own = 0; own < parts[i].caches.size(); ++own) {
            const size_t whole = size_t(parts[i].caches[own].index);
            homes.resize(std::max(homes.size(), whole + 1));
            homes[whole] = {places_[i].caches, {int32_t(own)}};
        }
    }
    return std::unique_ptr<CacheStore>(std::make_unique<PartCaches>(std::move(stores), std::move(homes)));
}

bool Places::lost() const {
    return std::any_of(places_.begin(), places_.end(),
                       [](const Place& place) { return place.backend->lost(); });
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
