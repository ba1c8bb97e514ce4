#include "places/streamed_places.h"

#include <algorithm>

namespace redline {

namespace {

using Kind = StreamedPlan::Place;

// The index in `all` of each element of `part`.
template <typename Index>
std::vector<uint32_t> found_among(const std::vector<Index>& part, const std::vector<Index>& all) {
    std::vector<uint32_t> at;
    for (const Index index : part)
        at.push_back(uint32_t(std::find(all.begin(), all.end(), index) - all.begin()));
    return at;
}

std::vector<uint32_t> behind(std::vector<uint32_t> numbers, size_t others) {
    for (uint32_t& number : numbers) number += uint32_t(others);
    return numbers;
}

template <typename Info>
std::vector<Info> both(std::span<const Info> first, const std::vector<Info>& second) {
    std::vector<Info> all(first.begin(), first.end());
    all.insert(all.end(), second.begin(), second.end());
    return all;
}

}  // namespace

Result<std::optional<StreamedPlaces>> StreamedPlaces::plan(const Places& places, uint32_t rows,
                                                           uint32_t outputs, bool fuse) {
    const std::vector<Placement> placements = places.placements();
    if (places.places_.size() != 2) return std::optional<StreamedPlaces>();
    std::optional<StreamedPlan> plan = plan_stream(RL_TRY(places.file_plan(rows, outputs)), placements);
    if (!plan) return std::optional<StreamedPlaces>();
    StreamedPlaces made(std::move(*plan));
    made.fuse_ = fuse;
    made.placements_ = placements;
    made.device_place_ = places.places_[0].backend->refills() ? 0 : 1;
    made.cpu_place_ = 1 - made.device_place_;
    made.device_ = places.places_[made.device_place_].backend;
    made.cpu_ = places.places_[made.cpu_place_].backend;
    made.of_cpu_ = places.one_of_each(RL_TRY(places.parts(1, 1)))[made.cpu_place_];
    return std::optional(std::move(made));
}

Result<PlanGroup> StreamedPlaces::flowing(std::span<const WeightInfo> weights,
                                          std::span<const CacheInfo> caches) const {
    PlanGroup group;
    for (const StreamedPlan::Part& part : plan_.parts)
        if (part.place == Kind::streamed)
            group.push_back(RL_TRY(lower(renumbered(part.plan.plan, behind(part.weights, weights.size()),
                                                    behind(part.caches, caches.size()),
                                                    both(weights, plan_.weights), both(caches, plan_.caches)),
                                         *device_, fuse_)));
    return group;
}

Result<PlanGroup> StreamedPlaces::staying() const {
    PlanGroup group;
    for (const StreamedPlan::Part& part : plan_.parts)
        if (part.place == Kind::cpu)
            group.push_back(
                RL_TRY(lower(renumbered(part.plan.plan, found_among(part.plan.weights, of_cpu_.weights),
                                        found_among(part.plan.caches, of_cpu_.caches), of_cpu_.plan.weights,
                                        of_cpu_.plan.caches),
                             *cpu_, fuse_)));
    return group;
}

std::vector<StreamedPart::Home> StreamedPlaces::homes(const StreamedPlan::Part& part,
                                                      CacheStore& store) const {
    std::vector<StreamedPart::Home> homes;
    const std::vector<uint32_t> at = found_among(part.plan.caches, of_cpu_.caches);
    for (size_t i = 0; i < at.size(); ++i)
        homes.push_back({&store, {int32_t(at[i])}, part.caches[i], part.plan.plan.caches[i]});
    return homes;
}

Result<std::unique_ptr<Pipeline>> StreamedPlaces::record(Places& places,
                                                         const std::vector<Pipeline::Part>& plain,
                                                         Record mode,
                                                         std::shared_ptr<StreamWatch> watch) const {
    Places::Place& cpu = places.places_[cpu_place_];
    const auto staging = RL_TRY(Staging::create(*places.model_, *device_, plan_));
    PlanGroup flows = RL_TRY(this->flowing({}, {}));
    auto flowing =
        RL_TRY(device_->record_group(std::move(flows), staging->weights(), staging->caches(), mode));
    PlanGroup left = RL_TRY(this->staying());
    std::vector<std::unique_ptr<Executable>> staying;
    if (!left.empty()) staying = RL_TRY(cpu_->record_group(std::move(left), *cpu.weights, *cpu.caches, mode));
    std::vector<Pipeline::Part> in_order;
    size_t flowed = 0, stayed = 0;
    for (const StreamedPlan::Part& part : plan_.parts) {
        std::shared_ptr<Executable> executable;
        if (part.place == Kind::streamed) {
            executable = std::make_shared<StreamedPart>(staging, flowed, std::move(flowing[flowed]),
                                                        homes(part, *cpu.caches), watch);
            ++flowed;
        } else if (part.place == Kind::cpu) {
            executable = std::move(staying[stayed++]);
        } else {
            for (size_t i = 0; i < placements_.size(); ++i)
                if (placements_[i].first == part.first) executable = plain[i].executable;
        }
        const size_t place = part.place == Kind::cpu ? cpu_place_ : device_place_;
        in_order.push_back(RL_TRY(places.pipeline_part(part.plan, std::move(executable), place)));
    }
    // Parts that both executables share must exchange the same slots in both.
    for (size_t i = 0; i < plan_.parts.size(); ++i)
        for (size_t j = 0; j < placements_.size(); ++j)
            if (plan_.parts[i].place == Kind::device && placements_[j].first == plan_.parts[i].first)
                RL_CHECK(in_order[i].takes == plain[j].takes && in_order[i].leaves == plain[j].leaves,
                         "the part from step {} on takes or leaves other slots", plan_.parts[i].first);
    return std::make_unique<Pipeline>(std::move(in_order));
}

Result<std::unique_ptr<Executable>> Places::record_streamed(uint32_t rows, uint32_t outputs, Record mode,
                                                            std::shared_ptr<StreamWatch> watch, bool fuse) {
    std::vector<Pipeline::Part> plain = RL_TRY(record_parts(rows, outputs, mode, fuse));
    const std::optional<StreamedPlaces> streamed = RL_TRY(StreamedPlaces::plan(*this, rows, outputs, fuse));
    if (!streamed) return std::unique_ptr<Executable>(std::make_unique<Pipeline>(std::move(plain)));
    auto many = RL_TRY(streamed->record(*this, plain, mode, watch));
    return std::unique_ptr<Executable>(std::make_unique<ByRows>(std::make_unique<Pipeline>(std::move(plain)),
                                                                std::move(many), rows, std::move(watch)));
}

Result<Backend*> Places::add_streamed(std::vector<PlanPart>& by_place,
                                      std::vector<std::vector<PlanGroup>>& groups, uint32_t rows,
                                      uint32_t outputs, bool fuse) const {
    const std::optional<StreamedPlaces> streamed = RL_TRY(StreamedPlaces::plan(*this, rows, outputs, fuse));
    if (!streamed) return static_cast<Backend*>(nullptr);
    const size_t place = place_of(streamed->device());
    Plan& there = by_place[place].plan;
    groups[place].push_back(RL_TRY(streamed->flowing(there.weights, there.caches)));
    if (PlanGroup staying = RL_TRY(streamed->staying()); !staying.empty())
        groups[1 - place].push_back(std::move(staying));
    there.weights = both<WeightInfo>(there.weights, streamed->streamed().weights);
    there.caches = both<CacheInfo>(there.caches, streamed->streamed().caches);
    return &streamed->device();
}

}  // namespace redline
