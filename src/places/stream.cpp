#include "places/stream.h"

#include "places/timing.h"

#include <algorithm>
#include <future>
#include <system_error>

namespace redline {

namespace {

constexpr uint64_t kPieceBytes = uint64_t(4) << 20;  // moved at a time when caches are copied

// Tells which blocks cannot be streamed: tables of which a step reads few rows, and ops that work on the
// outputs' rows alone.
bool stays(const Plan& plan, const Block& block) {
    for (size_t i = block.first; i < block.last; ++i) {
        const Op& op = plan.steps[i].op;
        if (std::holds_alternative<Embed>(op) || std::holds_alternative<Input>(op) ||
            std::holds_alternative<Lookup>(op))
            return true;
        const Access uses = access(op);
        for (const auto* slots : {&uses.reads, &uses.writes})
            for (const Slot s : *slots)
                if (plan.slot(s).of_outputs) return true;
    }
    return false;
}

bool has_matrices(const Plan& plan, size_t first, size_t last) {
    for (size_t i = first; i < last; ++i)
        for (const Weight w : weights_of(plan.steps[i].op))
            if (plan.weight(w).role == WeightRole::matrix) return true;
    return false;
}

// The parts of a placement on the CPU: runs of layers that stay there, and layers to stream.
std::vector<StreamedPlan::Part> parts_of(const Plan& plan, const Placement& placement,
                                         const std::vector<Block>& blocks) {
    using Place = StreamedPlan::Place;
    std::vector<StreamedPlan::Part> parts;
    for (const Block& block : blocks) {
        if (block.first < placement.first || block.last > placement.last) continue;
        const Place place = stays(plan, block) ? Place::cpu : Place::streamed;
        const bool goes_on =
            !parts.empty() && parts.back().place == place &&
            (place == Place::cpu || plan.steps[parts.back().first].layer == plan.steps[block.first].layer);
        if (goes_on)
            parts.back().last = block.last;
        else
            parts.push_back({place, block.first, block.last, {}, {}, {}});
    }
    // The placements cut the plan inside a block: then all of it stays.
    if (parts.empty() || parts.front().first != placement.first || parts.back().last != placement.last)
        return {{Place::cpu, placement.first, placement.last, {}, {}, {}}};
    return parts;
}

bool alike(const WeightInfo& a, const WeightInfo& b) {
    return a.role == b.role && a.tensor.format == b.tensor.format && a.tensor.shape == b.tensor.shape;
}
bool alike(const CacheInfo& a, const CacheInfo& b) {
    return a == b;
}

// Finds in `all` an entry that is alike and not in use yet, or appends a new one.
template <typename Info>
uint32_t place_among(std::vector<Info>& all, std::vector<uint8_t>& half_of, const Info& info, uint8_t half,
                     std::vector<uint32_t>& used) {
    for (uint32_t i = 0; i < all.size(); ++i) {
        if (half_of[i] != half || !alike(all[i], info)) continue;
        if (std::ranges::count(used, i) > 0) continue;
        used.push_back(i);
        return i;
    }
    all.push_back(info);
    half_of.push_back(half);
    used.push_back(uint32_t(all.size() - 1));
    return used.back();
}

void place_staged(StreamedPlan& plan) {
    std::vector<uint8_t> weight_halves, cache_halves;
    uint8_t half = 0;
    for (StreamedPlan::Part& part : plan.parts) {
        if (part.place != StreamedPlan::Place::streamed) continue;
        for (const WeightInfo& info : part.plan.plan.weights)
            place_among(plan.weights, weight_halves, info, half, part.weights);
        for (const CacheInfo& info : part.plan.plan.caches)
            place_among(plan.caches, cache_halves, info, 0, part.caches);
        half ^= 1;
    }
}

// Stretches of rows of a cache that are there before a step at this position, or after it.
struct Stretch {
    uint64_t row = 0, rows = 0;
};
std::vector<Stretch> rows_before(const CacheInfo& cache, const StepParams& params) {
    const uint64_t position = params.rows[0].position;
    if (position == 0) return {};
    if (cache.is_state()) return {{params.states_of(0).from, 1}};
    return {{0, std::min(position, cache.sequence_rows)}};
}
std::vector<Stretch> rows_behind(const CacheInfo& cache, const StepParams& params) {
    if (cache.is_state()) return {{params.states_of(0).to, 1}};
    const uint64_t count = std::min<uint64_t>(params.tokens.size(), cache.sequence_rows);
    const uint64_t first = (params.rows.back().position + 1 - count) % cache.sequence_rows;
    const uint64_t until_end = std::min(count, cache.sequence_rows - first);
    std::vector<Stretch> all = {{first, until_end}};
    if (count > until_end) all.push_back({0, count - until_end});
    return all;
}

Status copy_rows(CacheStore& from, Cache cache, CacheStore& to, Cache there, const CacheInfo& info,
                 const std::vector<Stretch>& stretches) {
    const uint64_t row_bytes = info.row_bytes() * info.kv_heads;
    const uint64_t most = std::max<uint64_t>(1, kPieceBytes / row_bytes);
    std::vector<std::byte> rows;
    for (const Stretch& all : stretches)
        for (uint64_t at = 0; at < all.rows; at += most) {
            const uint64_t count = std::min(most, all.rows - at);
            rows.resize(count * row_bytes);
            RL_TRY(from.read(cache, all.row + at, count, rows));
            RL_TRY(to.write(there, all.row + at, count, rows));
        }
    return {};
}

}  // namespace

std::map<const Format*, uint64_t> StreamedPlan::streamed_formats() const {
    std::map<const Format*, uint64_t> bytes;
    for (const Part& part : parts)
        if (part.place == Place::streamed)
            for (const WeightInfo& weight : part.plan.plan.weights)
                if (weight.role == WeightRole::matrix) bytes[weight.tensor.format] += weight.tensor.bytes();
    return bytes;
}

uint64_t StreamedPlan::streamed_flops(uint64_t rows) const {
    uint64_t sum = 0;
    for (const Part& part : parts)
        if (part.place == Place::streamed)
            for (const Step& step : part.plan.plan.steps)
                sum += cost(step.op, part.plan.plan, {rows, rows, rows}).flops;
    return sum;
}

std::optional<StreamedPlan> plan_stream(const Plan& recorded, std::span<const Placement> placements) {
    using Place = StreamedPlan::Place;
    const auto device =
        std::ranges::find_if(placements, [](const Placement& p) { return p.backend->refills(); });
    if (device == placements.end() || recorded.sizing.pages > 0) return {};
    const Plan plan = divided(recorded);
    std::vector<size_t> also;
    for (const Placement& placement : placements) also.insert(also.end(), {placement.first, placement.last});
    const std::vector<Block> all = blocks(plan, also);
    StreamedPlan streamed;
    for (const Placement& placement : placements) {
        if (placement.empty()) continue;
        if (placement.backend == device->backend) {
            streamed.parts.push_back({Place::device, placement.first, placement.last, {}, {}, {}});
            continue;
        }
        for (StreamedPlan::Part& part : parts_of(plan, placement, all)) {
            if (!has_matrices(plan, part.first, part.last)) part.place = Place::cpu;
            streamed.parts.push_back(std::move(part));
        }
    }
    std::vector<size_t> cuts, places;
    size_t next = 2;  // each streamed part counts as a separate place
    for (const StreamedPlan::Part& part : streamed.parts) {
        if (part.first > 0) cuts.push_back(part.first);
        places.push_back(part.place == Place::device ? 0 : part.place == Place::cpu ? 1 : next++);
    }
    if (next == 2) return {};
    const Plan whole = divided(recorded, &cuts);
    Result<std::vector<PlanPart>> parts = cut(whole, cuts, places);
    if (!parts) return {};
    for (size_t i = 0; i < streamed.parts.size(); ++i) streamed.parts[i].plan = std::move(parts.value()[i]);
    place_staged(streamed);
    return streamed;
}

Plan renumbered(Plan plan, std::span<const uint32_t> weight_at, std::span<const uint32_t> cache_at,
                std::span<const WeightInfo> weights, std::span<const CacheInfo> caches) {
    const auto move = [&](auto& index) {
        using Index = std::remove_cvref_t<decltype(index)>;
        if constexpr (std::is_same_v<Index, Weight>)
            if (index) index.index = int32_t(weight_at[size_t(index.index)]);
        if constexpr (std::is_same_v<Index, Cache>)
            if (index) index.index = int32_t(cache_at[size_t(index.index)]);
    };
    for (Step& step : plan.steps)
        std::visit([&](auto& o) { o.visit_indices([&](auto&... all) { (move(all), ...); }); }, step.op);
    plan.weights.assign(weights.begin(), weights.end());
    plan.caches.assign(caches.begin(), caches.end());
    return plan;
}

// Fills a half of the staging in another thread; where the system has none left, in wait().
class Staging::Filling {
public:
    Filling(const Staging& staging, size_t number) : number_(number) {
        const auto work = [&staging, number] { return staging.fill(number); };
        try {
            done_ = std::async(std::launch::async, work);
        } catch (const std::system_error&) {
            done_ = std::async(std::launch::deferred, work);
        }
    }
    size_t number() const { return number_; }
    Status wait() {
        if (done_.valid()) status_ = done_.get();
        return status_;
    }

private:
    size_t number_;
    std::future<Status> done_;
    Status status_;
};

Staging::Staging(const Model& model, Backend& device) : model_(model), device_(device) {}
// A fill in progress writes to the store, so that it ends first.
Staging::~Staging() {
    if (filling_) static_cast<void>(filling_->wait());
}

Result<std::shared_ptr<Staging>> Staging::create(const Model& model, Backend& device,
                                                 const StreamedPlan& plan) {
    std::shared_ptr<Staging> made(new Staging(model, device));
    for (const StreamedPlan::Part& part : plan.parts)
        if (part.place == StreamedPlan::Place::streamed)
            made->contents_.push_back({part.plan.weights, part.weights});
    ZeroSource zeros;  // placeholder content until the first fill
    made->weights_ = RL_TRY(device.load(plan.weights, zeros, {}));
    made->caches_ = RL_TRY(device.make_caches(plan.caches));
    return made;
}

Status Staging::fill(size_t number) const {
    const Content& content = contents_[number];
    try {
        return model_.refill(content.which, device_, *weights_, content.at);
    } catch (const std::bad_alloc&) {  // an exception that left the thread would end the program
        return error("not enough memory to move weights");
    }
}

Status Staging::take(size_t number) {
    if (!filling_ || filling_->number() != number) {
        if (filling_) static_cast<void>(filling_->wait());
        filling_ = std::make_unique<Filling>(*this, number);
    }
    const Status there = filling_->wait();
    if (!there) filling_.reset();
    RL_TRY(there);
    if (number + 1 < contents_.size()) filling_ = std::make_unique<Filling>(*this, number + 1);
    return {};
}

StreamedPart::StreamedPart(std::shared_ptr<Staging> staging, size_t number,
                           std::unique_ptr<Executable> executable, std::vector<Home> homes,
                           std::shared_ptr<StreamWatch> watch)
    : staging_(std::move(staging)),
      number_(number),
      executable_(std::move(executable)),
      homes_(std::move(homes)),
      watch_(std::move(watch)) {}

Status StreamedPart::run(const StepParams& params) {
    return run_on(params, [&](Executable& part) { return part.run(params); });
}

Status StreamedPart::run_traced(const StepParams& params, const TraceSink& sink) {
    return run_on(params, [&](Executable& part) { return part.run_traced(params, sink); });
}

Status StreamedPart::run_on(const StepParams& params, const std::function<Status(Executable&)>& run) {
    const double begin = watch_->now();
    for (const Home& home : homes_)
        RL_TRY(copy_rows(*home.store, home.cache, staging_->caches(), {int32_t(home.staged)}, home.info,
                         rows_before(home.info, params)));
    RL_TRY(staging_->take(number_));
    RL_TRY(run(*executable_));
    for (const Home& home : homes_)
        RL_TRY(copy_rows(staging_->caches(), {int32_t(home.staged)}, *home.store, home.cache, home.info,
                         rows_behind(home.info, params)));
    watch_->add_layer(watch_->now() - begin);
    return {};
}

Status ByRows::run(const StepParams& params) {
    const auto rows = uint32_t(params.tokens.size());
    Executable& chosen = choose(params);
    const double begin = watch_->now();
    RL_TRY(chosen.run(params));
    const double seconds = watch_->now() - begin;
    if (&chosen == many_.get())
        watch_->streamed(rows, seconds);
    else if (kind_of(params) == StepKind::alone)
        watch_->computed(rows, seconds);
    return {};
}

}  // namespace redline
