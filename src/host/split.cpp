#include "host/split.h"

#include "host/share_layers.h"
#include "memory/budget.h"
#include "places/pipeline.h"

#include <algorithm>
#include <map>
#include <regex>
#include <set>

namespace redline {

namespace {

// The step that the last `layers` layers begin with.
size_t first_step(const Plan& plan, uint32_t all, uint32_t layers) {
    for (size_t i = 0; i < plan.steps.size(); ++i)
        // The embedding belongs to layer 0, and cannot be told from it by its number.
        if (i > 0 && plan.steps[i].layer >= all - layers) return i;
    return plan.steps.size();
}

// The matrices of experts, of which there are several.
std::vector<Weight> expert_weights(const Plan& plan, const Op& op) {
    std::vector<Weight> found;
    if (const auto* block = std::get_if<ExpertBlock>(&op))
        found = {block->gated.w(0), block->gated.w(1), block->linear.w()};
    if (const auto* product = product_by(By::expert, op))
        for (const Product::Part& part : product->all()) found.push_back(part.w);
    std::erase_if(found, [&](Weight w) { return plan.weight(w).tensor.shape.count < 2; });
    return found;
}

std::vector<Weight> expert_weights(const Plan& plan, const Block& block) {
    std::vector<Weight> all;
    for (size_t i = block.first; i < block.last; ++i) {
        const std::vector<Weight> weights = expert_weights(plan, plan.steps[i].op);
        all.insert(all.end(), weights.begin(), weights.end());
    }
    return all;
}

// The steps that the experts of each layer begin with, and those behind them: where only their rows, their
// routing and what they are added to have to cross, so that shared experts and routers need not go along.
std::vector<size_t> expert_ends(const Plan& plan) {
    std::vector<size_t> ends;
    for (size_t i = 0; i < plan.steps.size(); ++i) {
        if (expert_weights(plan, plan.steps[i].op).empty()) continue;
        const bool goes_on = !ends.empty() && plan.steps[ends.back() - 1].layer == plan.steps[i].layer;
        if (goes_on)
            ends.back() = i + 1;
        else
            ends.insert(ends.end(), {i, i + 1});
    }
    return ends;
}

// Layers [first, last) that are to be in one place.
struct Together {
    uint32_t first = 0, last = 0;
};

constexpr uint8_t kCpu = 0;  // a place; device i is place i + 1

// The place of each step.
class StepPlaces {
public:
    StepPlaces(const Plan& plan, uint32_t layers)
        : plan_(plan),
          layers_(layers),
          blocks_(blocks(plan, expert_ends(plan))),
          place_(plan.steps.size(), 1) {}

    // The last layers are on the first device. The layers that would be apart though they share caches come
    // back: they go where less has to move.
    Together put_layers(uint32_t on_device) {
        const Together together = sharing_around(layers_ - std::min(on_device, layers_));
        if (together.first < together.last) on_device = layers_ - nearest(together, layers_ - on_device);
        const size_t end = on_device == 0         ? plan_.steps.size()
                           : on_device >= layers_ ? 0
                                                  : first_step(plan_, layers_, on_device);
        for (size_t i = 0; i < end; ++i) place_[i] = kCpu;
        return together;
    }

    // The sizes of the layers that have steps on devices: the last ones.
    std::vector<LayerSize> device_layers() const {
        std::vector<LayerSize> sizes(layers_);
        std::vector<std::set<int32_t>> weights(layers_);
        uint32_t first = layers_;
        for (size_t i = 0; i < place_.size(); ++i) {
            if (place_[i] == kCpu) continue;
            const Op& op = plan_.steps[i].op;
            const uint32_t layer = std::min(plan_.steps[i].layer, layers_ - 1);
            first = std::min(first, layer);
            for (const Weight w : weights_of(op))
                if (weights[layer].insert(w.index).second)
                    sizes[layer].held += plan_.weight(w).tensor.bytes();
            for (const Cache cache : caches_of(op))
                sizes[layer].held += cache_bytes({&plan_.cache(cache), 1});
            const Cost one = cost(op, plan_, {1, 1, 1});
            sizes[layer].read += one.weight_bytes + one.cache_bytes;
        }
        sizes.erase(sizes.begin(), sizes.begin() + first);
        return sizes;
    }

    // Puts so many of these layers on each device, in order, or the nearest number where layers share caches.
    void spread(std::span<const uint32_t> counts) {
        uint32_t layer = layers_;
        for (const uint32_t count : counts) layer -= std::min(count, layer);
        for (size_t device = 1; device < counts.size(); ++device) {
            layer += counts[device - 1];
            const Together together = sharing_around(layer);
            const uint32_t first = together.first < together.last ? nearest(together, layer) : layer;
            if (first >= layers_) break;
            const size_t begin = first == 0 ? 0 : first_step(plan_, layers_, layers_ - first);
            for (size_t i = begin; i < place_.size(); ++i)
                if (place_[i] != kCpu) place_[i] = uint8_t(device + 1);
        }
    }

    Status put_experts(uint32_t first_layers) {
        for (const Block& block : blocks_) {
            const uint32_t layer = plan_.steps[block.first].layer;
            if (layer >= first_layers || expert_weights(plan_, block).empty()) continue;
            if (plan_.steps[block.last - 1].layer != layer)
                return error(
                    "the experts of layer {} cannot be computed apart from what follows them in this "
                    "model: leave --cpu-moe out",
                    layer);
            put(block, kCpu);
        }
        return {};
    }

    // Patterns that fit no tensor come back.
    Result<std::vector<std::string>> follow(std::span<const TensorRule> rules) {
        std::vector<std::regex> patterns;
        for (const TensorRule& rule : rules) patterns.push_back(RL_TRY(compiled(rule.pattern)));
        std::vector<bool> used(rules.size());
        std::vector<std::optional<uint8_t>> wanted;  // of each weight: its place
        for (const WeightInfo& weight : plan_.weights) {
            wanted.emplace_back();
            for (size_t i = 0; i < rules.size(); ++i)
                if (std::regex_search(weight.tensor.name, patterns[i])) {
                    if (!wanted.back()) wanted.back() = rules[i].on_cpu ? kCpu : uint8_t(rules[i].device + 1);
                    used[i] = true;
                }
        }
        for (const Block& block : blocks_) RL_TRY(follow(wanted, block));
        std::vector<std::string> unused;
        for (size_t i = 0; i < rules.size(); ++i)
            if (!used[i]) unused.push_back(rules[i].pattern);
        return unused;
    }

    // Steps that read a cache go to the place of the first that uses it. Returns the layers of those that
    // moved.
    std::vector<uint32_t> follow_caches() {
        std::vector<std::optional<uint8_t>> homes(plan_.caches.size());  // of each cache: its place
        std::vector<uint32_t> moved;
        for (const Block& block : blocks_) {
            const uint8_t before = place_[block.first];
            std::optional<uint8_t> home;  // place of the first cache that it shares
            std::vector<Cache> used;
            for (size_t i = block.first; i < block.last; ++i)
                for (const Cache cache : caches_of(plan_.steps[i].op)) used.push_back(cache);
            for (const Cache cache : used)
                if (!home) home = homes[size_t(cache.index)];
            if (home && *home != before) {
                put(block, *home);
                moved.push_back(plan_.steps[block.first].layer);
            }
            for (const Cache cache : used)
                if (!homes[size_t(cache.index)]) homes[size_t(cache.index)] = home.value_or(before);
        }
        return moved;
    }

    std::vector<Placement> placements(const SplitPlaces& where) const {
        std::vector<Placement> all;
        for (size_t i = 0; i < place_.size(); ++i) {
            Backend* const backend = place_[i] == kCpu ? where.cpu : where.devices[place_[i] - 1];
            if (all.empty() || all.back().backend != backend) all.push_back({backend, i, i});
            all.back().last = i + 1;
        }
        return all;
    }

    SplitCounts counts(size_t devices) const {
        SplitCounts counts;
        counts.by_device.resize(devices);
        for (uint32_t layer = 0; layer < layers_; ++layer) {
            std::vector<bool> there(devices);
            bool experts = false, other = false;
            for (const Block& block : blocks_) {
                // A layer whose steps no cut can part is where its first is.
                if (!has_layer(block, layer)) continue;
                const uint8_t place = place_[block.first];
                if (place != kCpu) there[place - 1] = true;
                (expert_weights(plan_, block).empty() ? other : experts) |= place == kCpu;
            }
            const bool device = std::ranges::count(there, true) > 0;
            for (size_t i = 0; i < devices; ++i) counts.by_device[i] += there[i];
            counts.layers += device;
            counts.experts += device && experts;
            counts.parts += device && other;
        }
        return counts;
    }

private:
    // The end of layers that stay together which is nearer to `layer`.
    static uint32_t nearest(const Together& together, uint32_t layer) {
        return layer - together.first < together.last - layer ? together.first : together.last;
    }
    // The layers that share caches with such before and behind the first that `layer` names.
    Together sharing_around(uint32_t layer) const {
        std::vector<Together> users(plan_.caches.size(), {layers_, 0});
        for (const Step& step : plan_.steps)
            for (const Cache cache : caches_of(step.op)) {
                Together& group = users[size_t(cache.index)];
                group = {std::min(group.first, step.layer), std::max(group.last, step.layer + 1)};
            }
        Together all{layer, layer};
        for (bool grows = true; grows;) {
            grows = false;
            for (const Together& group : users) {
                const bool apart = (group.first < all.first && all.first < group.last) ||
                                   (group.first < all.last && all.last < group.last);
                if (!apart) continue;
                all = {std::min(all.first, group.first), std::max(all.last, group.last)};
                grows = true;
            }
        }
        return all;
    }
    static Result<std::regex> compiled(const std::string& pattern) {
        try {
            return std::regex(pattern);
        } catch (const std::regex_error& problem) {
            return error("\"{}\" is no pattern: {}", pattern, problem.what());
        }
    }

    // The embedding is a separate block, and of no layer.
    bool has_layer(const Block& block, uint32_t layer) const {
        for (size_t i = std::max<size_t>(block.first, 1); i < block.last; ++i)
            if (plan_.steps[i].layer == layer) return true;
        return false;
    }

    void put(const Block& block, uint8_t place) {
        for (size_t i = block.first; i < block.last; ++i) place_[i] = place;
    }

    // Experts, or else the matrices, say where a block is, and what else is in it goes with them.
    Status follow(std::span<const std::optional<uint8_t>> wanted, const Block& block) {
        std::vector<Weight> all, deciding = expert_weights(plan_, block);
        for (size_t i = block.first; i < block.last; ++i)
            for (const Weight w : weights_of(plan_.steps[i].op)) all.push_back(w);
        if (deciding.empty())
            for (const Weight w : all)
                if (plan_.weight(w).role == WeightRole::matrix) deciding.push_back(w);
        if (all.empty()) return {};
        const uint8_t before = place_[block.first];
        const Weight first = deciding.empty() ? all[0] : deciding[0];
        const uint8_t place = wanted[size_t(first.index)].value_or(before);
        for (const Weight w : deciding)
            if (const uint8_t its = wanted[size_t(w.index)].value_or(before); its != place)
                return divided(first, place, w, its);
        for (const Weight w : all)
            if (const uint8_t its = wanted[size_t(w.index)].value_or(place); its != place)
                return divided(first, place, w, its);
        put(block, place);
        return {};
    }

    Error divided(Weight one, uint8_t place, Weight other, uint8_t its) const {
        const bool devices = place != kCpu && its != kCpu;
        const auto name = [&](uint8_t of) {
            return of == kCpu ? "the CPU" : !devices ? "the device" : of == place ? "one device" : "another";
        };
        return error(
            "{} would be on {} and {} on {}, but they are computed together: a pattern has to fit both "
            "or none of them",
            plan_.weight(one).tensor.name, name(place), plan_.weight(other).tensor.name, name(its));
    }

    const Plan& plan_;
    uint32_t layers_;
    std::vector<Block> blocks_;
    std::vector<uint8_t> place_;
};

// The activations between the parts of a plan.
Result<std::vector<PlaceCrossing>> crossings_of(const Plan& plan, const Split& split) {
    std::vector<size_t> cuts, places;
    for (const Placement& placement : split.placements) {
        const auto found = std::ranges::find(split.backends, placement.backend);
        places.push_back(size_t(found - split.backends.begin()));
        if (placement.first > 0) cuts.push_back(placement.first);
    }
    std::vector<PlaceCrossing> all;
    const std::vector<PlanPart> parts = RL_TRY(cut(plan, cuts, places));
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
        const auto same = [&](const PlaceCrossing& c) {
            return c.from == places[i] && c.to == places[i + 1];
        };
        auto found = std::ranges::find_if(all, same);
        if (found == all.end()) found = all.insert(found, {places[i], places[i + 1]});
        ++found->count;
        for (const Slot slot : parts[i].leaves) found->bytes += uint64_t(plan.slot(slot).width) * 4;
    }
    return all;
}

// True where all devices have room for their parts.
bool fits_devices(const Split& split, const Backend* cpu) {
    for (size_t i = 0; i < split.needs.size(); ++i)
        if (split.backends[i] != cpu && split.needs[i].total() > split.backends[i]->device().memory.bytes)
            return false;
    return true;
}

// A split with so many layers on each device; on a single one, with all that are not on the CPU.
class Splitter {
public:
    Splitter(const Model& model, const EngineOptions& options, const SplitPlaces& where,
             const SplitWish& wish)
        : model_(model), options_(options), where_(where), wish_(wish) {}

    Result<Split> split() {
        // Caches are as large as those of the engine.
        EngineOptions placed = options_;
        placed.placements = {{where_.devices.front(), 0, 0}};
        placed.batch = 1;
        const Plan plan = divided(RL_TRY(placed_plan(model_, placed)));
        StepPlaces places(plan, model_.config().layers);
        const Together together = places.put_layers(wish_.layers);
        RL_TRY(places.put_experts(wish_.experts));
        Split split = RL_TRY(where_.devices.size() == 1 ? with(plan, places, {}) : shared(plan, places));
        split.together_first = together.first;
        split.together_last = together.last;
        return split;
    }

private:
    Result<Split> with(const Plan& plan, StepPlaces places, std::span<const uint32_t> counts) const {
        places.spread(counts);
        Split split;
        split.unused = RL_TRY(places.follow(wish_.rules));
        if (!wish_.rules.empty()) split.followed = places.follow_caches();
        split.counts = places.counts(where_.devices.size());
        split.placements = places.placements(where_);
        split.backends = backends_of(split.placements);
        split.crossings = RL_TRY(crossings_of(plan, split));
        EngineOptions placed = options_;
        placed.placements = split.placements;
        split.needs = RL_TRY(memory_needs(model_, placed));
        return split;
    }

    // Layers are shared out anew as long as a device has no room for what its part really takes.
    Result<Split> shared(const Plan& plan, const StepPlaces& places) const {
        constexpr int kTries = 8;
        std::vector<LayerSize> sizes = places.device_layers();
        std::vector<uint64_t> room;
        std::vector<double> shares = wish_.shares;
        for (const Backend* device : where_.devices) {
            room.push_back(wish_.exact ? UINT64_MAX : device->device().memory.bytes);
            if (wish_.shares.empty()) shares.push_back(double(device->device().memory.bytes));
        }
        if (wish_.exact) std::ranges::fill(sizes, LayerSize{1, 1});
        std::vector<uint32_t> counts = share_out(sizes, shares, room);
        Split split = RL_TRY(with(plan, places, counts));
        for (int i = 0; i < kTries && !wish_.exact && !fits_devices(split, where_.cpu); ++i) {
            const std::vector<uint64_t> less = room_beside(split, sizes, counts);
            for (size_t device = 0; device < room.size(); ++device)
                room[device] = std::min(room[device], less[device]);
            std::vector<uint32_t> next = share_out(sizes, shares, room);
            if (next == counts) break;
            counts = std::move(next);
            split = RL_TRY(with(plan, places, counts));
        }
        return split;
    }

    // The room that each device has for layers, beside what its part takes in addition to them.
    std::vector<uint64_t> room_beside(const Split& split, std::span<const LayerSize> sizes,
                                      std::span<const uint32_t> counts) const {
        std::vector<uint64_t> room;
        for (size_t device = 0; device < where_.devices.size(); ++device) {
            uint64_t held = 0, total = 0;
            for (const LayerSize& size : sizes.first(counts[device])) held += size.held;
            sizes = sizes.subspan(counts[device]);
            for (size_t i = 0; i < split.backends.size(); ++i)
                if (split.backends[i] == where_.devices[device]) total = split.needs[i].total();
            const uint64_t beside = total - std::min(total, held);
            const uint64_t budget = where_.devices[device]->device().memory.bytes;
            room.push_back(budget - std::min(budget, beside));
        }
        return room;
    }

    const Model& model_;
    const EngineOptions& options_;
    const SplitPlaces& where_;
    const SplitWish& wish_;
};

// "a offers 1 GiB, b 2 GiB".
std::string offers_of(const SplitPlaces& where) {
    std::string text;
    for (const Backend* device : where.devices)
        text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", device->device().name,
                            text.empty() ? "offers " : "", device->device().memory.text());
    return text;
}

}  // namespace

Result<Split> split_model(const Model& model, const EngineOptions& options, const SplitPlaces& where,
                          const SplitWish& wish) {
    return Splitter(model, options, where, wish).split();
}

bool fits(const Split& split) {
    uint64_t shared = 0;
    std::map<std::string, uint64_t> offered;  // by each device that shares the host's memory
    for (size_t i = 0; i < split.needs.size(); ++i) {
        const DeviceInfo& device = split.backends[i]->device();
        if (split.needs[i].total() > device.memory.bytes) return false;
        if (!device.unified) continue;
        shared += split.needs[i].total();
        offered[device.name] += device.memory.bytes;
    }
    uint64_t most = 0;
    for (const auto& [name, bytes] : offered) most = std::max(most, bytes);
    return shared <= most;
}

Result<Split> fitting_split(const Model& model, const EngineOptions& options, const SplitPlaces& where,
                            const SplitWish& from, Yield yield) {
    const uint32_t all = model.config().layers;
    // Each of these steps takes the experts of a layer, or a layer, from the devices.
    const uint32_t experts = yield == Yield::layers ? 0 : all - std::min(from.experts, all);
    const uint32_t layers = yield == Yield::experts ? 0 : std::min(from.layers, all);
    const auto after = [&](uint32_t steps) {
        SplitWish wish = from;
        wish.experts += std::min(steps, experts);
        if (steps > experts) wish.layers = layers - (steps - experts);
        return split_model(model, options, where, wish);
    };
    Split best = RL_TRY(after(experts + layers));
    if (fits_devices(best, where.cpu)) {
        uint32_t low = 0, high = experts + layers;  // what is nearer than low does not fit, high does
        while (low < high) {
            const uint32_t middle = low + (high - low) / 2;
            Split split = RL_TRY(after(middle));
            if (fits_devices(split, where.cpu)) {
                best = std::move(split);
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        if (fits(best)) return best;
    }
    uint64_t sum = 0;
    for (const MemoryNeed& need : best.needs) sum += need.total();
    return error("{}: {} are needed; {} and the CPU {}, and no split between them fits", model.gguf().path(),
                 format_bytes(sum), offers_of(where), where.cpu->device().memory.text());
}

Result<uint64_t> fitting_context(const Model& model, const EngineOptions& options, const SplitPlaces& where,
                                 const SplitWish& from, std::optional<Yield> yield) {
    constexpr uint64_t kGrain = 256;
    EngineOptions trial = options;
    const auto has_room = [&](uint64_t context) -> Result<bool> {
        trial.context = context;
        if (yield) return fitting_split(model, trial, where, from, *yield).ok();
        const Result<Split> split = split_model(model, trial, where, from);
        if (!split && context <= kGrain) return split.error();
        return split && fits(split.value());  // a device may have no buffers for so long a cache
    };
    if (RL_TRY(has_room(options.context))) return options.context;
    uint64_t low = 1, high = (options.context + kGrain - 1) / kGrain;  // in grains
    if (high < 2 || !RL_TRY(has_room(kGrain))) return uint64_t(0);
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        (RL_TRY(has_room(middle * kGrain)) ? low : high) = middle;
    }
    return low * kGrain;
}

// Bytes that a step of one token reads in these of the plan's.
static uint64_t step_bytes(const Plan& plan, const Placement& placement, uint64_t position) {
    Cost sum;
    for (size_t step = placement.first; step < placement.last; ++step)
        sum = sum + cost(plan.steps[step].op, plan, {1, 1, std::max<uint64_t>(position, 1)});
    return sum.weight_bytes + sum.cache_bytes;
}

Result<uint64_t> step_bytes(const Model& model, const EngineOptions& options,
                            std::span<const Placement> placements, const Backend& backend,
                            uint64_t position) {
    const Plan plan = divided(RL_TRY(model.plan(1, 1, {options.context, 1, options.cache})));
    uint64_t sum = 0;
    for (const Placement& placement : placements)
        if (placement.backend == &backend) sum += step_bytes(plan, placement, position);
    return sum;
}

Result<double> most_tokens_per_second(const Model& model, const EngineOptions& options,
                                      std::span<const Placement> placements, const Bandwidth& bandwidth,
                                      uint64_t position) {
    const Plan plan = divided(RL_TRY(model.plan(1, 1, {options.context, 1, options.cache})));
    double seconds = 0.0;
    for (const Placement& placement : with_steps(placements)) {
        const double bytes_per_second = bandwidth(*placement.backend);
        if (bytes_per_second <= 0.0) return 0.0;
        seconds += double(step_bytes(plan, placement, position)) / bytes_per_second;
    }
    return seconds > 0.0 ? 1.0 / seconds : 0.0;
}

// A layer's experts are several steps, of which these are not the first.
static bool is_last(const Op& op) {
    const Product* product = product_by(By::expert, op);
    return product && !product->act;
}

size_t expert_layers(const Plan& plan, size_t first, size_t last) {
    return size_t(std::count_if(
        plan.steps.begin() + ptrdiff_t(first), plan.steps.begin() + ptrdiff_t(last),
        [&](const Step& step) { return !expert_weights(plan, step.op).empty() && !is_last(step.op); }));
}

Result<double> expected_tokens_per_second(const Model& model, const EngineOptions& options,
                                          std::span<const Placement> all, const PaceOf& pace_of,
                                          const CrossingOf& crossing, uint64_t position) {
    const std::span<const Placement> placements = with_steps(all);
    const CacheSizing sizing{options.context, 1, options.cache};
    const Plan plan = divided(RL_TRY(model.plan(1, 1, sizing)));
    const std::vector<Plan> lowered = RL_TRY(Places::lowered_plans(model, sizing, placements, options.fuse));
    double seconds = 0.0;
    for (size_t i = 0; i < placements.size(); ++i) {
        const DecodePace pace = pace_of(*placements[i].backend);
        if (pace.bytes_per_second <= 0.0) return 0.0;
        const size_t layers = expert_layers(plan, placements[i].first, placements[i].last);
        const Backend& next = *placements[(i + 1) % placements.size()].backend;
        if (&next != placements[i].backend)
            seconds +=
                crossing(*placements[i].backend, next) + double(kernels_of(lowered[i])) * pace.first_seconds;
        seconds += pace.run_seconds + steps_seconds(lowered[i], pace) + double(layers) * pace.expert_seconds +
                   double(step_bytes(plan, placements[i], position)) / pace.bytes_per_second;
    }
    return seconds > 0.0 ? 1.0 / seconds : 0.0;
}

}  // namespace redline
