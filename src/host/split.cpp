#include "host/split.h"

#include "memory/budget.h"
#include "places/pipeline.h"

#include <algorithm>
#include <regex>

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
        found = {block->gated.gate, block->gated.up, block->linear.w};
    if (const auto* gated = std::get_if<ExpertGated>(&op)) found = {gated->gate, gated->up};
    if (const auto* linear = std::get_if<ExpertLinear>(&op)) found = {linear->w};
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

// The place of each step: whether it is the CPU.
class StepPlaces {
public:
    StepPlaces(const Plan& plan, uint32_t layers)
        : plan_(plan),
          layers_(layers),
          blocks_(blocks(plan, expert_ends(plan))),
          on_cpu_(plan.steps.size()) {}

    // The layers that would be apart though they share caches come back: they go where less has to move.
    Together put_layers(uint32_t on_device) {
        const Together together = sharing_around(layers_ - std::min(on_device, layers_));
        if (together.first < together.last) {
            const uint32_t first = layers_ - on_device;  // on the device
            const bool up = first - together.first < together.last - first;
            on_device = layers_ - (up ? together.first : together.last);
        }
        const size_t end = on_device == 0         ? plan_.steps.size()
                           : on_device >= layers_ ? 0
                                                  : first_step(plan_, layers_, on_device);
        for (size_t i = 0; i < end; ++i) on_cpu_[i] = true;
        return together;
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
            put(block, true);
        }
        return {};
    }

    // Patterns that fit no tensor come back.
    Result<std::vector<std::string>> follow(std::span<const TensorRule> rules) {
        std::vector<std::regex> patterns;
        for (const TensorRule& rule : rules) patterns.push_back(RL_TRY(compiled(rule.pattern)));
        std::vector<bool> used(rules.size());
        std::vector<std::optional<bool>> wanted;  // of each weight: whether it is to be on the CPU
        for (const WeightInfo& weight : plan_.weights) {
            wanted.emplace_back();
            for (size_t i = 0; i < rules.size(); ++i)
                if (std::regex_search(weight.tensor.name, patterns[i])) {
                    if (!wanted.back()) wanted.back() = rules[i].on_cpu;
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
        std::vector<std::optional<bool>> homes(plan_.caches.size());  // of each cache: whether it is the CPU
        std::vector<uint32_t> moved;
        for (const Block& block : blocks_) {
            const bool before = on_cpu_[block.first];
            std::optional<bool> home;  // place of the first cache that it shares
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

    std::vector<Placement> placements(Backend& cpu, Backend& device) const {
        std::vector<Placement> all;
        for (size_t i = 0; i < on_cpu_.size(); ++i) {
            Backend* const backend = on_cpu_[i] ? &cpu : &device;
            if (all.empty() || all.back().backend != backend) all.push_back({backend, i, i});
            all.back().last = i + 1;
        }
        return all;
    }

    SplitCounts counts() const {
        SplitCounts counts;
        for (uint32_t layer = 0; layer < layers_; ++layer) {
            bool device = false, experts = false, other = false;
            for (const Block& block : blocks_) {
                // A layer whose steps no cut can part is where its first is.
                if (!has_layer(block, layer)) continue;
                const bool cpu = on_cpu_[block.first];
                device |= !cpu;
                (expert_weights(plan_, block).empty() ? other : experts) |= cpu;
            }
            counts.layers += device;
            counts.experts += device && experts;
            counts.parts += device && other;
        }
        return counts;
    }

private:
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

    void put(const Block& block, bool cpu) {
        for (size_t i = block.first; i < block.last; ++i) on_cpu_[i] = cpu;
    }

    // Experts, or else the matrices, say where a block is, and what else is in it goes with them.
    Status follow(std::span<const std::optional<bool>> wanted, const Block& block) {
        std::vector<Weight> all, deciding = expert_weights(plan_, block);
        for (size_t i = block.first; i < block.last; ++i)
            for (const Weight w : weights_of(plan_.steps[i].op)) all.push_back(w);
        if (deciding.empty())
            for (const Weight w : all)
                if (plan_.weight(w).role == WeightRole::matrix) deciding.push_back(w);
        if (all.empty()) return {};
        const bool before = on_cpu_[block.first];
        const Weight first = deciding.empty() ? all[0] : deciding[0];
        const bool cpu = wanted[size_t(first.index)].value_or(before);
        for (const Weight w : deciding)
            if (wanted[size_t(w.index)].value_or(before) != cpu) return divided(first, w, cpu);
        for (const Weight w : all)
            if (wanted[size_t(w.index)].value_or(cpu) != cpu) return divided(first, w, cpu);
        put(block, cpu);
        return {};
    }

    Error divided(Weight one, Weight other, bool cpu) const {
        return error(
            "{} would be on {} and {} on {}, but they are computed together: a pattern has to fit both "
            "or none of them",
            plan_.weight(one).tensor.name, cpu ? "the CPU" : "the device", plan_.weight(other).tensor.name,
            cpu ? "the device" : "the CPU");
    }

    const Plan& plan_;
    uint32_t layers_;
    std::vector<Block> blocks_;
    std::vector<bool> on_cpu_;
};

}  // namespace

Result<Split> split_model(const Model& model, const EngineOptions& options, Backend& cpu, Backend& device,
                          const SplitWish& wish) {
    const Plan plan = RL_TRY(model.plan(1, 1, {options.context, 1, options.cache}));
    StepPlaces places(plan, model.config().layers);
    const Together together = places.put_layers(wish.layers);
    RL_TRY(places.put_experts(wish.experts));
    Split split;
    split.together_first = together.first;
    split.together_last = together.last;
    split.unused = RL_TRY(places.follow(wish.rules));
    if (!wish.rules.empty()) split.followed = places.follow_caches();
    split.counts = places.counts();
    split.placements = places.placements(cpu, device);
    split.backends = backends_of(split.placements);
    EngineOptions placed = options;
    placed.placements = split.placements;
    split.needs = RL_TRY(memory_needs(model, placed));
    return split;
}

bool fits(const Split& split) {
    uint64_t shared = 0, shared_budget = 0;
    for (size_t i = 0; i < split.needs.size(); ++i) {
        const DeviceInfo& device = split.backends[i]->device();
        if (split.needs[i].total() > device.memory.bytes) return false;
        if (!device.unified) continue;
        shared += split.needs[i].total();
        shared_budget = std::max(shared_budget, device.memory.bytes);
    }
    return shared <= shared_budget;
}

// True where the device has room for its part.
static bool fits_device(const Split& split, const Backend& device) {
    for (size_t i = 0; i < split.needs.size(); ++i)
        if (split.backends[i] == &device) return split.needs[i].total() <= device.device().memory.bytes;
    return true;
}

Result<Split> fitting_split(const Model& model, const EngineOptions& options, Backend& cpu, Backend& device,
                            const SplitWish& from, Yield yield) {
    const uint32_t all = model.config().layers;
    // Each of these steps takes the experts of a layer, or a layer, from the device.
    const uint32_t experts = yield == Yield::layers ? 0 : all - std::min(from.experts, all);
    const uint32_t layers = yield == Yield::experts ? 0 : std::min(from.layers, all);
    const auto after = [&](uint32_t steps) {
        SplitWish wish = from;
        wish.experts += std::min(steps, experts);
        if (steps > experts) wish.layers = layers - (steps - experts);
        return split_model(model, options, cpu, device, wish);
    };
    Split best = RL_TRY(after(experts + layers));
    if (fits_device(best, device)) {
        uint32_t low = 0, high = experts + layers;  // what is nearer than low does not fit, high does
        while (low < high) {
            const uint32_t middle = low + (high - low) / 2;
            Split split = RL_TRY(after(middle));
            if (fits_device(split, device)) {
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
    return error("{}: {} are needed; {} offers {} and the CPU {}, and no split between them fits",
                 model.gguf().path(), format_bytes(sum), device.device().name, device.device().memory.text(),
                 cpu.device().memory.text());
}

Result<uint64_t> fitting_context(const Model& model, const EngineOptions& options, Backend& cpu,
                                 Backend& device, const SplitWish& from, std::optional<Yield> yield) {
    constexpr uint64_t kGrain = 256;
    EngineOptions trial = options;
    const auto has_room = [&](uint64_t context) -> Result<bool> {
        trial.context = context;
        if (yield) return fitting_split(model, trial, cpu, device, from, *yield).ok();
        const Result<Split> split = split_model(model, trial, cpu, device, from);
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
    const Plan plan = RL_TRY(model.plan(1, 1, {options.context, 1, options.cache}));
    uint64_t sum = 0;
    for (const Placement& placement : placements)
        if (placement.backend == &backend) sum += step_bytes(plan, placement, position);
    return sum;
}

Result<double> most_tokens_per_second(const Model& model, const EngineOptions& options,
                                      std::span<const Placement> placements, const Bandwidth& bandwidth,
                                      uint64_t position) {
    const Plan plan = RL_TRY(model.plan(1, 1, {options.context, 1, options.cache}));
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
    return std::holds_alternative<ExpertLinear>(op);
}

Result<double> expected_tokens_per_second(const Model& model, const EngineOptions& options,
                                          std::span<const Placement> all, const PaceOf& pace_of,
                                          double crossing, uint64_t position) {
    const std::span<const Placement> placements = with_steps(all);
    const CacheSizing sizing{options.context, 1, options.cache};
    const Plan plan = RL_TRY(model.plan(1, 1, sizing));
    const std::vector<Plan> lowered = RL_TRY(Places::lowered_plans(model, sizing, placements, options.fuse));
    double seconds = 0.0;
    for (size_t i = 0; i < placements.size(); ++i) {
        const DecodePace pace = pace_of(*placements[i].backend);
        if (pace.bytes_per_second <= 0.0) return 0.0;
        const auto layers = std::count_if(
            plan.steps.begin() + ptrdiff_t(placements[i].first),
            plan.steps.begin() + ptrdiff_t(placements[i].last),
            [&](const Step& step) { return !expert_weights(plan, step.op).empty() && !is_last(step.op); });
        if (placements[(i + 1) % placements.size()].backend != placements[i].backend)
            seconds += crossing + double(kernels_of(lowered[i])) * pace.first_seconds;
        seconds += pace.run_seconds + steps_seconds(lowered[i], pace) + double(layers) * pace.expert_seconds +
                   double(step_bytes(plan, placements[i], position)) / pace.bytes_per_second;
    }
    return seconds > 0.0 ? 1.0 / seconds : 0.0;
}

}  // namespace redline
