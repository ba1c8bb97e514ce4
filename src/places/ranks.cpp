#include "places/ranks.h"

#include "places/job_step.h"
#include "places/rank_caches.h"
#include "places/remote_backend.h"
#include "plan/stored_weights.h"

#include <algorithm>

namespace redline {

namespace {

// Names the rank of an error.
Error at_rank(const Backend& backend, size_t rank, size_t ranks, Error problem) {
    problem.message =
        fmt::format("{} (rank {} of {}): {}", backend.device().name, rank + 1, ranks, problem.message);
    return problem;
}

uint64_t part_bytes(const PlanPart& part) {
    uint64_t sum = 0;
    for (const WeightInfo& weight : part.plan.weights) sum += weight.tensor.bytes();
    return sum;
}

// Weights and caches get the numbers that they have in the stores, which are those of the parts.
class Renumbered {
public:
    explicit Renumbered(const PlanPart& part) : part_(part) {}
    void operator()(Op& op) const {
        std::visit([this](auto& o) { o.visit_indices([&](auto&... index) { (take(index), ...); }); }, op);
    }

private:
    template <typename Index>
    static void find(Index& index, const std::vector<Index>& all) {
        if (index) index = {int32_t(std::ranges::find(all, index) - all.begin())};
    }
    void take(Weight& w) const { find(w, part_.weights); }
    void take(Cache& cache) const { find(cache, part_.caches); }
    void take(auto&) const {}

    const PlanPart& part_;
};

RankPlan as_stored(RankPlan rank, const PlanPart& part) {
    const Renumbered renumber(part);
    for (Step& step : rank.plan.steps) renumber(step.op);
    rank.plan.weights = part.plan.weights;
    rank.plan.caches = part.plan.caches;
    return rank;
}

// Null: the backend is of this process.
const RemoteBackend* remote(const Backend* backend) {
    return dynamic_cast<const RemoteBackend*>(backend);
}

bool attends(const Op& op) {
    return std::holds_alternative<Attend>(op) || std::holds_alternative<Attention>(op) ||
           std::holds_alternative<DeltaNet>(op) || std::holds_alternative<StateScan>(op);
}

}  // namespace

Ranks::Ranks(const Model& model, const CacheSizing& sizing, std::span<const RankPlace> places)
    : model_(&model), sizing_(sizing) {
    for (const RankPlace& place : places) places_.push_back({place.backend, place.share});
}

Result<std::vector<RankPlan>> Ranks::plans(uint32_t rows, uint32_t outputs) const {
    Plan plan = RL_TRY(model_->plan(rows, outputs, sizing_));
    // In the file's formats, whose blocks are not cut.
    const std::span<const WeightInfo> in_file = model_->file_weights();
    for (size_t i = 0; i < in_file.size(); ++i) plan.weights[i].tensor = in_file[i].tensor;
    std::vector<double> shares;
    for (const Place& place : places_) shares.push_back(place.share);
    Result<std::vector<RankPlan>> ranks = shard(plan, shares);
    if (!ranks) return error("{}: {}", model_->gguf().path(), ranks.error().message);
    return ranks;
}

Result<std::vector<Ranks::Divided>> Ranks::divided(uint32_t rows, uint32_t outputs) const {
    std::vector<Divided> all;
    for (RankPlan& rank : RL_TRY(plans(rows, outputs))) {
        std::vector<size_t> cuts;
        for (const RankSum& sum : rank.sums) cuts.push_back(sum.before);
        std::vector<PlanPart> parts =
            RL_TRY(cut(rank.plan, cuts, std::vector<size_t>(cuts.size() + 1, size_t(0))));
        all.push_back({std::move(rank), std::move(parts)});
    }
    return all;
}

Result<std::unique_ptr<WeightStore>> Ranks::load_rank(const Divided& rank, Backend& backend,
                                                      const Progress& progress) const {
    std::vector<WeightSlice> slices;
    for (const Weight w : rank.parts[0].weights) slices.push_back(rank.rank.weights[size_t(w.index)]);
    return model_->load_slices(slices, backend, progress);
}

Result<PlanGroup> Ranks::lowered(const Divided& rank, Backend& backend, bool fuse) const {
    PlanGroup group;
    for (const PlanPart& part : rank.parts) group.push_back(RL_TRY(lower(part.plan, backend, fuse)));
    return group;
}

Result<Ranks> Ranks::load(const Model& model, const CacheSizing& sizing, std::span<const RankPlace> places,
                          const Progress& progress) {
    Ranks made(model, sizing, places);
    const std::vector<Divided> ranks = RL_TRY(made.divided(1, 1));
    if (job_ranks(places).empty()) made.team_ = RL_TRY(RankTeam::start(places.size()));
    // Other processes load while this one does.
    std::vector<size_t> order;
    for (const bool here : {false, true})
        for (size_t i = 0; i < ranks.size(); ++i)
            if ((remote(places[i].backend) == nullptr) == here) order.push_back(i);
    uint64_t all = 0, before = 0;
    for (const Divided& rank : ranks) all += part_bytes(rank.parts[0]);
    for (const size_t i : order) {
        Place& place = made.places_[i];
        auto loaded = made.load_rank(ranks[i], *place.backend, [&](uint64_t done, uint64_t) {
            if (progress) progress(before + done, all);
        });
        if (!loaded) return at_rank(*place.backend, i, ranks.size(), loaded.error());
        place.weights = std::move(loaded.value());
        before += part_bytes(ranks[i].parts[0]);
    }
    RL_TRY(made.link());
    return made;
}

static std::vector<Backend*> backends_of(std::span<const RankPlace> places) {
    std::vector<Backend*> all;
    for (const RankPlace& place : places) all.push_back(place.backend);
    return all;
}

bool Ranks::may_link(std::span<const RankPlace> places) {
    const auto* first = dynamic_cast<const LinksRanks*>(places.front().backend);
    return first && first->may_link(backends_of(places));
}

static std::shared_ptr<RemoteTeam> team_of(std::span<const RankPlace> places) {
    for (const RankPlace& place : places)
        if (const RemoteBackend* there = remote(place.backend)) return there->team();
    return nullptr;
}

std::vector<uint32_t> Ranks::job_ranks(std::span<const RankPlace> places) {
    std::vector<uint32_t> ranks;
    for (const RankPlace& place : places) {
        const RemoteBackend* const there = remote(place.backend);
        ranks.push_back(there ? there->rank() : 0);
    }
    if (!team_of(places)) ranks.clear();
    return ranks;
}

double Ranks::sum_seconds(std::span<const RankPlace> places, uint64_t floats) {
    if (const auto team = team_of(places)) return team->sum_seconds(job_ranks(places), floats);
    if (!may_link(places)) return 0.0;
    auto made = dynamic_cast<LinksRanks&>(*places[0].backend).link(backends_of(places), floats);
    return made ? made.value()->sum_seconds() : 0.0;
}

Result<uint64_t> Ranks::most_floats() const {
    uint64_t most = 0;
    const std::vector<RankPlan> ranks = RL_TRY(plans(1, 1));
    for (const RankSum& sum : ranks[0].sums)
        for (const Slot slot : sum.slots)
            most = std::max(most, uint64_t(ranks[0].plan.slot(slot).width) * sizing_.batch);
    return most;
}

Status Ranks::link() {
    std::vector<RankPlace> places;
    for (const Place& place : places_) places.push_back({place.backend, place.share});
    link_.reset();
    link_problem_.clear();
    const uint64_t floats = RL_TRY(most_floats());
    if (floats == 0 || !may_link(places)) return {};
    auto made = dynamic_cast<LinksRanks&>(*places[0].backend).link(backends_of(places), floats);
    if (made) {
        link_ = std::move(made.value());
        if (const std::string why = link_->problem(); !why.empty())
            link_problem_ = "NCCL or RCCL does not add rows over the devices, their kernels do: " + why;
        return {};
    }
    // A device that is lost by the trial has nothing to fall back on.
    if (lost()) return error("{}", made.error().message);
    link_problem_ =
        "sums over the devices go through the host's memory, which takes longer: " + made.error().message;
    return {};
}

Result<std::vector<MemoryNeed>> Ranks::measure(const Model& model, const CacheSizing& sizing,
                                               std::span<const RankPlace> places, uint32_t rows,
                                               uint32_t outputs, bool fuse) {
    const Ranks made(model, sizing, places);
    std::vector<std::vector<PlanGroup>> groups(places.size());
    std::vector<Divided> ranks;
    const bool links = may_link(places);
    for (const uint32_t most : {1u, rows}) {
        ranks = RL_TRY(made.divided(most, std::min(most, outputs)));
        for (size_t i = 0; i < ranks.size(); ++i) {
            groups[i].emplace_back();
            if (links)
                groups[i].back().push_back(RL_TRY(
                    lower(as_stored(ranks[i].rank, ranks[i].parts[0]).plan, *places[i].backend, fuse)));
            else
                groups[i].back() = RL_TRY(made.lowered(ranks[i], *places[i].backend, fuse));
        }
        if (rows == 1) break;
    }
    const uint64_t exchanged = links ? dynamic_cast<const LinksRanks&>(*places[0].backend)
                                           .link_bytes(places.size(), RL_TRY(made.most_floats()))
                                     : 0;
    std::vector<MemoryNeed> needs;
    for (size_t i = 0; i < ranks.size(); ++i) {
        const Plan& any = ranks[i].parts[0].plan;
        needs.push_back(RL_TRY(places[i].backend->measure(stored_weights(any.weights, *places[i].backend),
                                                          any.caches, std::move(groups[i]))));
        needs.back().scratch += exchanged;
    }
    return needs;
}

Result<RankSharing> Ranks::sharing(const Model& model, const CacheSizing& sizing,
                                   std::span<const RankPlace> places, uint64_t position) {
    RankSharing sharing;
    for (RankPlan& rank : RL_TRY(Ranks(model, sizing, places).plans(1, 1))) {
        RankSharing::Rank its;
        for (size_t i = 0; i < rank.weights.size(); ++i) {
            const uint64_t bytes = rank.plan.weights[i].tensor.bytes();
            its.weight_bytes += bytes;
            if (rank.weights[i].is_whole()) its.whole_bytes += bytes;
        }
        for (const Step& step : rank.plan.steps) {
            const Cost one = cost(step.op, rank.plan, {1, 1, std::max<uint64_t>(position, 1)});
            its.read_bytes += one.weight_bytes + one.cache_bytes;
            its.head_layers += attends(step.op);
        }
        if (sharing.ranks.empty())
            for (const RankSum& sum : rank.sums)
                for (const Slot slot : sum.slots) {
                    ++sharing.sums;
                    sharing.sum_bytes += uint64_t(rank.plan.slot(slot).width) * sizeof(float);
                }
        its.plan = std::move(rank.plan);
        sharing.ranks.push_back(std::move(its));
    }
    return sharing;
}

Result<std::vector<Plan>> Ranks::plans_of(const Model& model, const CacheSizing& sizing,
                                          std::span<const RankPlace> places, uint32_t rows, uint32_t outputs,
                                          const Backend& backend) {
    std::vector<Plan> all;
    for (const uint32_t most : {1u, rows}) {
        std::vector<RankPlan> ranks =
            RL_TRY(Ranks(model, sizing, places).plans(most, std::min(most, outputs)));
        for (size_t i = 0; i < ranks.size(); ++i)
            if (places[i].backend == &backend) all.push_back(std::move(ranks[i].plan));
        if (rows == 1) break;
    }
    return all;
}

Result<std::unique_ptr<CacheStore>> Ranks::make_caches() {
    const std::vector<Divided> ranks = RL_TRY(divided(1, 1));
    const Plan whole = RL_TRY(model_->plan(1, 1, sizing_));
    std::vector<RankCaches::Rank> all;
    for (size_t i = 0; i < ranks.size(); ++i) {
        auto made = places_[i].backend->make_caches(ranks[i].parts[0].plan.caches);
        if (!made) return at_rank(*places_[i].backend, i, ranks.size(), made.error());
        places_[i].caches = made.value().get();
        all.push_back({std::move(made.value()), ranks[i].parts[0].caches, ranks[i].rank.caches});
    }
    return std::unique_ptr<CacheStore>(std::make_unique<RankCaches>(whole.caches, std::move(all)));
}

Result<std::unique_ptr<Executable>> Ranks::record_linked(uint32_t rows, uint32_t outputs, Record mode,
                                                         bool fuse) {
    std::vector<RankedStep::Rank> all;
    std::vector<Divided> ranks = RL_TRY(divided(rows, outputs));
    for (size_t i = 0; i < ranks.size(); ++i) {
        Place& place = places_[i];
        RankPlan rank = as_stored(std::move(ranks[i].rank), ranks[i].parts[0]);
        BoundPlan bound = RL_TRY(lower_rank(rank.plan, *place.backend, fuse, rank.sums));
        auto recorded = dynamic_cast<LinksRanks&>(*place.backend)
                            .record_rank(std::move(bound), std::move(rank.sums), link_, i, *place.weights,
                                         *place.caches, mode);
        if (!recorded) return at_rank(*place.backend, i, ranks.size(), recorded.error());
        all.push_back({{{std::move(recorded.value())}}, rank.outputs});
    }
    return std::unique_ptr<Executable>(std::make_unique<RankedStep>(std::move(all), team_, link_));
}

Result<std::vector<RankedStep::Rank>> Ranks::record_parts(uint32_t rows, uint32_t outputs, Record mode,
                                                          bool fuse) {
    std::vector<RankedStep::Rank> all;
    const std::vector<Divided> ranks = RL_TRY(divided(rows, outputs));
    for (size_t i = 0; i < ranks.size(); ++i) {
        const Divided& rank = ranks[i];
        Place& place = places_[i];
        const auto crossings = [&](const std::vector<Slot>& slots) {
            std::vector<RankedStep::Crossing> made;
            for (const Slot slot : slots) made.push_back({slot, rank.rank.plan.slot(slot).width});
            return made;
        };
        auto recorded = place.backend->record_group(RL_TRY(lowered(rank, *place.backend, fuse)),
                                                    *place.weights, *place.caches, mode);
        if (!recorded) return at_rank(*place.backend, i, ranks.size(), recorded.error());
        all.push_back({{}, rank.rank.outputs});
        for (size_t part = 0; part < rank.parts.size(); ++part)
            all.back().parts.push_back({std::move(recorded.value()[part]), crossings(rank.parts[part].takes),
                                        crossings(rank.parts[part].leaves),
                                        part < rank.rank.sums.size() ? crossings(rank.rank.sums[part].slots)
                                                                     : std::vector<RankedStep::Crossing>()});
    }
    return all;
}

Result<std::unique_ptr<Executable>> Ranks::record(uint32_t rows, uint32_t outputs, Record mode, bool fuse) {
    if (link_) return record_linked(rows, outputs, mode, fuse);
    std::vector<RankedStep::Rank> all = RL_TRY(record_parts(rows, outputs, mode, fuse));
    std::vector<RankPlace> places;
    for (const Place& place : places_) places.push_back({place.backend, place.share});
    const std::vector<uint32_t> numbers = job_ranks(places);
    if (numbers.empty())
        return std::unique_ptr<Executable>(std::make_unique<RankedStep>(std::move(all), team_));
    std::vector<JobStep::Rank> ranks;
    for (size_t i = 0; i < all.size(); ++i)
        ranks.push_back({std::move(all[i].parts), all[i].outputs, numbers[i]});
    return std::unique_ptr<Executable>(RL_TRY(JobStep::join(std::move(ranks), team_of(places))));
}

bool Ranks::lost() const {
    return std::ranges::any_of(places_,
                               [](const Place& place) { return !place.backend || place.backend->lost(); });
}

void Ranks::let_go() {
    if (lost()) link_.reset();
    for (Place& place : places_) {
        place.caches = nullptr;
        if (!place.backend || !place.backend->lost()) continue;
        place.weights.reset();
        place.backend = nullptr;
    }
}

Status Ranks::reload(std::span<const RankPlace> places, const Progress& progress) {
    RL_CHECK(places.size() == places_.size(), "{} ranks are now {}", places_.size(), places.size());
    std::vector<size_t> renewed;
    for (size_t i = 0; i < places_.size(); ++i) {
        if (places_[i].weights) continue;
        places_[i].backend = places[i].backend;
        renewed.push_back(i);
    }
    const auto load = [&]() -> Status {
        const std::vector<Divided> ranks = RL_TRY(divided(1, 1));
        for (const size_t i : renewed)
            places_[i].weights = RL_TRY(load_rank(ranks[i], *places_[i].backend, progress));
        return renewed.empty() ? Status() : link();
    };
    const Status loaded = load();
    if (loaded) return loaded;
    // The caller may give up the device, which these ranks must not use any more.
    for (const size_t i : renewed) {
        places_[i].weights.reset();
        places_[i].backend = nullptr;
    }
    return loaded;
}

}  // namespace redline
