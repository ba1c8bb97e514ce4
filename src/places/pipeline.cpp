#include "places/pipeline.h"

#include "places/flights.h"
#include "places/streamed_places.h"
#include "plan/far_backend.h"
#include "plan/stored_weights.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace redline {

static FarExecutable* far_of(const Pipeline::Part& part) {
    return dynamic_cast<FarExecutable*>(part.executable.get());
}

Pipeline::Pipeline(std::vector<Part> parts) : parts_(std::move(parts)), kept_(parts_.size()) {
    for (size_t part = 0; part + 1 < parts_.size(); ++part)
        for (const Crossing& left : parts_[part].leaves) {
            bool kept = !hands_on(part);
            for (size_t later = part + 1; later < parts_.size() && !kept; ++later) {
                kept = later > part + 1 && std::ranges::count(parts_[later].takes, left) > 0;
                if (std::ranges::count(parts_[later].leaves, left) > 0) break;
            }
            if (kept) kept_[part].push_back(left);
        }
    for (size_t part = 0; part + 1 < parts_.size(); ++part)
        if (auto* const far = far_of(parts_[part]); far && hands_on(part) && kept_[part].empty())
            far->pass_to(*parts_[part + 1].executable);
    std::set<size_t> places;
    for (const Part& part : parts_) places.insert(part.place);
    places_ = places.size();
}

Pipeline::~Pipeline() = default;

bool Pipeline::hands_on(size_t part) const {
    return parts_[part].leaves == parts_[part + 1].takes;
}

std::span<const float> Pipeline::gathered(size_t part, size_t rows, Rows& kept) const {
    const std::vector<Crossing>& takes = parts_[part].takes;
    if (takes.size() == 1) return kept.of_slots[takes[0].slot.index];
    size_t width = 0, at = 0;
    for (const Crossing& taken : takes) width += taken.width;
    kept.input.resize(rows * width);
    for (const Crossing& taken : takes) {
        const std::vector<float>& from = kept.of_slots[taken.slot.index];
        for (size_t row = 0; row < rows; ++row)
            std::copy_n(&from[row * taken.width], taken.width, &kept.input[row * width + at]);
        at += taken.width;
    }
    return kept.input;
}

void Pipeline::keep_output_of(size_t part, size_t rows, bool all, Rows& to) const {
    const std::span<const float> output = parts_[part].executable->output();
    const size_t width = output.size() / rows;
    size_t at = 0;
    for (const Crossing& left : parts_[part].leaves) {
        if (all || std::ranges::count(kept_[part], left) > 0) {
            std::vector<float>& slot = to.of_slots[left.slot.index];
            slot.resize(rows * left.width);
            for (size_t row = 0; row < rows; ++row)
                std::copy_n(&output[row * width + at], left.width, &slot[row * left.width]);
        }
        at += left.width;
    }
}

uint64_t next_step_number() {
    static std::atomic<uint64_t> last = 0;
    return ++last;
}

void number_step(Executable& executable, uint64_t number) {
    if (auto* const far = dynamic_cast<FarExecutable*>(&executable)) far->number_step(number);
}

Status Pipeline::run_parts(const StepParams& params, const RunPart& run) {
    const size_t rows = params.tokens.size();
    std::vector<uint32_t> all(rows);
    std::iota(all.begin(), all.end(), 0u);
    StepParams inner = params;
    inner.outputs = all;
    inner.best = inner.best_among = 0;
    const uint64_t number = next_step_number();
    const auto input_of = [&](size_t part) {
        return hands_on(part - 1) ? parts_[part - 1].executable->output() : gathered(part, rows, rows_);
    };
    for (size_t part = 0; part + 1 < parts_.size(); ++part) {
        if (part > 0) inner.input = input_of(part);
        number_step(*parts_[part].executable, number);
        RL_TRY(run(*parts_[part].executable, inner));
        keep_output_of(part, rows, false, rows_);
    }
    StepParams last = params;
    if (parts_.size() > 1) last.input = input_of(parts_.size() - 1);
    number_step(*parts_.back().executable, number);
    RL_TRY(run(*parts_.back().executable, last));
    flew_ = false;
    return {};
}

Status Pipeline::run(const StepParams& params) {
    return run_parts(params, [](Executable& part, const StepParams& step) { return part.run(step); });
}

Status Pipeline::run_traced(const StepParams& params, const TraceSink& sink) {
    return run_parts(params,
                     [&](Executable& part, const StepParams& step) { return part.run_traced(step, sink); });
}

std::span<const Placement> with_steps(std::span<const Placement> placements) {
    if (placements.size() < 2 || !placements.back().empty()) return placements;
    const auto before = placements.first(placements.size() - 1);
    const bool is_new = std::ranges::count(before, placements.back().backend, &Placement::backend) == 0;
    return is_new ? before : placements;
}

// The first steps of all placements but the first.
static Result<std::vector<size_t>> cuts_of(std::span<const Placement> placements, size_t steps) {
    std::vector<size_t> cuts;
    size_t placed = 0;
    for (const Placement& placement : placements) {
        if (placement.first != placed || placement.last <= placed)
            return error("the placement of steps {} to {} is empty or does not begin with step {}",
                         placement.first, placement.last, placed);
        if (placed > 0) cuts.push_back(placed);
        placed = placement.last;
    }
    if (placed != steps) return error("{} steps are placed, the plan has {}", placed, steps);
    return cuts;
}

std::vector<Backend*> backends_of(std::span<const Placement> placements) {
    std::vector<Backend*> all;
    for (const Placement& placement : placements)
        if (std::find(all.begin(), all.end(), placement.backend) == all.end())
            all.push_back(placement.backend);
    return all;
}

Result<Places> Places::empty(const Model& model, const CacheSizing& sizing,
                             std::span<const Placement> placements, const HeadsBeside& heads) {
    Places made(model, sizing);
    made.heads_ = heads;
    const Plan plan = divided(RL_TRY(model.plan(1, 1, sizing)));
    made.cuts_ = RL_TRY(cuts_of(with_steps(placements), plan.steps.size()));
    made.steps_ = divided(RL_TRY(model.plan(1, 1, sizing, heads.model))).steps.size();
    const std::vector<Backend*> backends = backends_of(placements);
    for (Backend* backend : backends) made.places_.push_back({backend, nullptr});
    for (const Placement& placement : with_steps(placements)) {
        const auto found = std::find(backends.begin(), backends.end(), placement.backend);
        made.place_of_.push_back(size_t(found - backends.begin()));
    }
    return made;
}

Result<Plan> Places::file_plan(uint32_t rows, uint32_t outputs) const {
    Plan plan = RL_TRY(model_->plan(rows, outputs, sizing_, heads_.model));
    plan.weights.assign(model_->file_weights().begin(), model_->file_weights().end());
    return plan;
}

Result<PlanPart> Places::head_part(size_t which, uint32_t rows, const PlanPart& last) const {
    Plan plan =
        RL_TRY(heads_.model->head_plan(which, rows, std::min(rows, heads_.outputs), sizing_, *model_));
    const bool same = heads_.model == model_;
    if (same) plan.weights.assign(model_->file_weights().begin(), model_->file_weights().end());
    return beside(plan, last, same);
}

Result<std::vector<PlanPart>> Places::parts(uint32_t rows, uint32_t outputs) const {
    std::vector<size_t> cuts = cuts_;
    const Plan whole = divided(RL_TRY(file_plan(rows, outputs)), &cuts);
    std::vector<PlanPart> parts = RL_TRY(cut(whole, cuts, place_of_));
    const bool same = heads_.model == model_;
    for (size_t which = 0; which < heads_.count; ++which) {
        const PlanPart head = RL_TRY(head_part(which, 1, parts.back()));
        for (size_t i = 0; i < parts.size(); ++i) {
            if (place_of_[i] != place_of_.back()) continue;
            parts[i].caches = head.caches;
            parts[i].plan.caches = head.plan.caches;
            if (!same) continue;
            parts[i].weights = head.weights;
            parts[i].plan.weights = head.plan.weights;
        }
    }
    return parts;
}

std::vector<Placement> Places::placements() const {
    std::vector<Placement> all;
    for (size_t i = 0; i < place_of_.size(); ++i)
        all.push_back(
            {places_[place_of_[i]].backend, i == 0 ? 0 : cuts_[i - 1], i < cuts_.size() ? cuts_[i] : steps_});
    for (size_t place = 0; place < places_.size(); ++place)
        if (std::ranges::count(place_of_, place) == 0)
            all.push_back({places_[place].backend, steps_, steps_});
    return all;
}

size_t Places::place_of(const Backend& backend) const {
    size_t place = 0;
    while (places_[place].backend != &backend) ++place;
    return place;
}

Result<std::vector<PlanGroup>> Places::lowered(const std::vector<PlanPart>& parts, bool fuse) const {
    std::vector<PlanGroup> groups(places_.size());
    for (size_t i = 0; i < parts.size(); ++i) {
        const size_t place = place_of_[i];
        groups[place].push_back(RL_TRY(lower(parts[i].plan, *places_[place].backend, fuse)));
    }
    return groups;
}

std::vector<PlanPart> Places::one_of_each(std::vector<PlanPart> parts) const {
    std::vector<PlanPart> by_place(places_.size());
    for (size_t i = 0; i < parts.size(); ++i) by_place[place_of_[i]] = std::move(parts[i]);
    return by_place;
}

static uint64_t file_bytes(const PlanPart& part) {
    uint64_t sum = 0;
    for (const WeightInfo& weight : part.plan.weights) sum += weight.tensor.bytes();
    return sum;
}

// Names the place of an error, where there are several.
static Error at_place(const Backend& backend, size_t place, size_t places, Error problem) {
    if (places > 1)
        problem.message =
            fmt::format("{} (place {} of {}): {}", backend.device().name, place + 1, places, problem.message);
    return problem;
}

Result<Places> Places::load(const Model& model, const CacheSizing& sizing,
                            std::span<const Placement> placements, const Progress& progress,
                            const HeadsBeside& heads) {
    Places made = RL_TRY(empty(model, sizing, placements, heads));
    const std::vector<PlanPart> by_place = made.one_of_each(RL_TRY(made.parts(1, 1)));
    uint64_t all = 0, before = 0;
    for (const PlanPart& part : by_place) all += file_bytes(part);
    for (size_t i = 0; i < by_place.size(); ++i) {
        const Progress report = [&](uint64_t done, uint64_t) {
            if (progress) progress(before + done, all);
        };
        Place& place = made.places_[i];
        auto loaded = model.load_some(by_place[i].weights, *place.backend, report);
        if (!loaded) return at_place(*place.backend, i, by_place.size(), loaded.error());
        place.weights = std::move(loaded.value());
        before += file_bytes(by_place[i]);
    }
    return made;
}

Result<std::vector<MemoryNeed>> Places::measure(const Model& model, const CacheSizing& sizing,
                                                std::span<const Placement> placements, uint32_t rows,
                                                uint32_t outputs, bool fuse, bool streamed,
                                                const HeadsBeside& heads) {
    const Places made = RL_TRY(empty(model, sizing, placements, heads));
    std::vector<std::vector<PlanGroup>> groups(made.places_.size());
    std::vector<PlanPart> parts;
    for (const uint32_t most : {1u, rows}) {
        parts = RL_TRY(made.parts(most, std::min(most, outputs)));
        std::vector<PlanGroup> lowered = RL_TRY(made.lowered(parts, fuse));
        for (size_t i = 0; i < lowered.size(); ++i) groups[i].push_back(std::move(lowered[i]));
        const size_t last = made.place_of_.back();
        for (size_t which = 0; heads.model == &model && which < heads.count; ++which) {
            const PlanPart head = RL_TRY(made.head_part(which, most, parts.back()));
            groups[last].emplace_back();
            groups[last].back().push_back(RL_TRY(lower(head.plan, *made.places_[last].backend, fuse)));
        }
        if (rows == 1) break;
    }
    std::vector<PlanPart> by_place = made.one_of_each(std::move(parts));
    Backend* device = nullptr;  // that weights flow through
    if (streamed && rows > 1) device = RL_TRY(made.add_streamed(by_place, groups, rows, outputs, fuse));
    std::vector<MemoryNeed> needs;
    for (size_t i = 0; i < by_place.size(); ++i) {
        Backend& backend = *made.places_[i].backend;
        needs.push_back(RL_TRY(backend.measure(stored_weights(by_place[i].plan.weights, backend),
                                               by_place[i].plan.caches, std::move(groups[i]))));
        if (&backend != device) continue;
        // The staging for loading is held as long as weights are streamed, and the streamed layers have a
        // separate cache store.
        needs.back().scratch += needs.back().staging;
        needs.back().cache += RL_TRY(backend.measure({}, {}, {})).cache;
    }
    return needs;
}

Result<std::vector<Plan>> Places::lowered_plans(const Model& model, const CacheSizing& sizing,
                                                std::span<const Placement> placements, bool fuse) {
    const Places made = RL_TRY(empty(model, sizing, placements));
    const std::vector<PlanPart> parts = RL_TRY(made.parts(1, 1));
    std::vector<Plan> plans;
    for (size_t i = 0; i < parts.size(); ++i)
        plans.push_back(RL_TRY(lower(parts[i].plan, *placements[i].backend, fuse)).plan);
    return plans;
}

// The caches of a whole plan, each forwarded to the store of the place where its layers are.
class PartCaches : public CacheStore, public FarCaches {
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
    Result<bool> copy(Cache cache, uint64_t from, uint64_t to, uint64_t count) override {
        const Home& home = homes_[size_t(cache.index)];
        auto* const far = dynamic_cast<FarCaches*>(home.store);
        return far ? far->copy(home.cache, from, to, count) : Result<bool>(false);
    }

private:
    std::vector<std::unique_ptr<CacheStore>> stores_;
    std::vector<Home> homes_;  // one for each cache of the whole plan
};

Result<std::unique_ptr<CacheStore>> Places::make_caches() {
    const std::vector<PlanPart> by_place = one_of_each(RL_TRY(this->parts(1, 1)));
    std::vector<std::unique_ptr<CacheStore>> stores;
    std::vector<PartCaches::Home> homes;
    for (size_t i = 0; i < by_place.size(); ++i) {
        auto made = places_[i].backend->make_caches(by_place[i].plan.caches);
        if (!made) return at_place(*places_[i].backend, i, by_place.size(), made.error());
        stores.push_back(std::move(made.value()));
        places_[i].caches = stores.back().get();
        for (size_t cache = 0; cache < by_place[i].caches.size(); ++cache) {
            const size_t whole = size_t(by_place[i].caches[cache].index);
            homes.resize(std::max(homes.size(), whole + 1));
            homes[whole] = {places_[i].caches, {int32_t(cache)}};
        }
    }
    return std::unique_ptr<CacheStore>(std::make_unique<PartCaches>(std::move(stores), std::move(homes)));
}

bool Places::lost() const {
    return std::any_of(places_.begin(), places_.end(),
                       [](const Place& place) { return !place.backend || place.backend->lost(); });
}

void Places::let_go() {
    for (Place& place : places_) {
        place.caches = nullptr;
        if (!place.backend || !place.backend->lost()) continue;
        place.weights.reset();
        place.backend = nullptr;
    }
}

Status Places::reload(std::span<const Placement> placements, const Progress& progress) {
    const std::vector<Backend*> backends = backends_of(placements);
    RL_CHECK(backends.size() == places_.size(), "{} places are now {}", places_.size(), backends.size());
    std::vector<size_t> renewed;
    for (size_t i = 0; i < places_.size(); ++i) {
        if (places_[i].weights) continue;
        places_[i].backend = backends[i];
        renewed.push_back(i);
    }
    const auto load = [&]() -> Status {
        const std::vector<PlanPart> by_place = one_of_each(RL_TRY(parts(1, 1)));
        for (const size_t i : renewed)
            places_[i].weights =
                RL_TRY(model_->load_some(by_place[i].weights, *places_[i].backend, progress));
        return {};
    };
    const Status loaded = load();
    if (loaded) return loaded;
    // The caller may give up the device, which these places must not use any more.
    for (const size_t i : renewed) {
        places_[i].weights.reset();
        places_[i].backend = nullptr;
    }
    return loaded;
}

Result<Pipeline::Part> Places::pipeline_part(const PlanPart& part, std::shared_ptr<Executable> executable,
                                             size_t place) const {
    const Plan whole = RL_TRY(model_->plan(1, 1, sizing_, heads_.model));
    const auto crossings = [&](const std::vector<Slot>& slots) {
        std::vector<Pipeline::Crossing> all;
        for (const Slot slot : slots) all.push_back({slot, whole.slot(slot).width});
        return all;
    };
    return Pipeline::Part{std::move(executable), crossings(part.takes), crossings(part.leaves), place};
}

Result<std::vector<Pipeline::Part>> Places::record_parts(uint32_t rows, uint32_t outputs, Record mode,
                                                         bool fuse) {
    const std::vector<PlanPart> parts = RL_TRY(this->parts(rows, outputs));
    std::vector<PlanGroup> groups = RL_TRY(lowered(parts, fuse));
    std::vector<std::vector<std::unique_ptr<Executable>>> recorded;
    for (size_t i = 0; i < groups.size(); ++i) {
        Place& place = places_[i];
        if (groups[i].empty()) {
            recorded.emplace_back();
            continue;
        }
        auto made = place.backend->record_group(std::move(groups[i]), *place.weights, *place.caches, mode);
        if (!made) return at_place(*place.backend, i, groups.size(), made.error());
        recorded.push_back(std::move(made.value()));
    }
    std::vector<size_t> next(places_.size());
    std::vector<Pipeline::Part> in_order;
    for (size_t i = 0; i < parts.size(); ++i) {
        const size_t place = place_of_[i];
        in_order.push_back(RL_TRY(pipeline_part(parts[i], std::move(recorded[place][next[place]++]), place)));
    }
    return in_order;
}

Result<std::unique_ptr<Executable>> Places::record_head(size_t which, uint32_t rows, Record mode, bool fuse) {
    const std::vector<PlanPart> parts = RL_TRY(this->parts(1, 1));
    const PlanPart head = RL_TRY(head_part(which, rows, parts.back()));
    const Place& place = places_[place_of_.back()];
    WeightStore& weights = heads_.model == model_ ? *place.weights : heads_.model->weights();
    return place.backend->record(RL_TRY(lower(head.plan, *place.backend, fuse)), weights, *place.caches,
                                 mode);
}

Result<std::unique_ptr<Pipeline>> Places::record(uint32_t rows, uint32_t outputs, Record mode, bool fuse) {
    return std::make_unique<Pipeline>(RL_TRY(record_parts(rows, outputs, mode, fuse)));
}

}  // namespace redline
