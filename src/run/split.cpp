#include "run/split.h"

#include "memory/budget.h"

namespace redline {

// The step that the last `layers` layers begin with.
static size_t first_step(const Plan& plan, uint32_t all, uint32_t layers) {
    for (size_t i = 0; i < plan.steps.size(); ++i)
        // The embedding belongs to layer 0, and cannot be told from it by its number.
        if (i > 0 && plan.steps[i].layer >= all - layers) return i;
    return plan.steps.size();
}

Result<Split> split_layers(const Model& model, const EngineOptions& options, Backend& cpu, Backend& device,
                           uint32_t layers) {
    const Plan plan = RL_TRY(model.plan(1, 1, {options.context, 1, options.cache}));
    const uint32_t all = model.config().layers;
    const size_t end = plan.steps.size();
    Split split;
    split.layers = std::min(layers, all);
    if (layers >= all) {
        split.placements = {{&device, 0, end}};
    } else if (layers == 0) {
        split.placements = {{&cpu, 0, end}};
    } else {
        const size_t cut = first_step(plan, all, layers);
        split.placements = {{&cpu, 0, cut}, {&device, cut, end}};
    }
    EngineOptions own = options;
    own.placements = split.placements;
    split.backends = backends_of(split.placements);
    split.needs = RL_TRY(memory_needs(model, own));
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

Result<Split> most_layers(const Model& model, const EngineOptions& options, Backend& cpu, Backend& device) {
    uint32_t low = 0, high = model.config().layers + 1;
    Split best = RL_TRY(split_layers(model, options, cpu, device, 0));
    if (!fits(best))
        return error(
            "{}: {} are needed; {} offers {} and the CPU {}, and no split between them fits. A smaller "
            "context, quantization or model would",
            model.gguf().path(), format_bytes(best.needs[0].total()), device.device().name,
            device.device().memory.text(), cpu.device().memory.text());
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        Split split = RL_TRY(split_layers(model, options, cpu, device, middle));
        if (fits(split)) {
            best = std::move(split);
            low = middle;
        } else {
            high = middle;
        }
    }
    return best;
}

Result<double> most_tokens_per_second(const Model& model, const EngineOptions& options,
                                      std::span<const Placement> placements, const Bandwidth& bandwidth,
                                      uint64_t position) {
    const Plan plan = RL_TRY(model.plan(1, 1, {options.context, 1, options.cache}));
    double seconds = 0.0;
    for (const Placement& placement : placements) {
        Cost sum;
        for (size_t step = placement.first; step < placement.last; ++step)
            sum = sum + cost(plan.steps[step].op, plan, {1, 1, std::max<uint64_t>(position, 1)});
        const double bytes_per_second = bandwidth(*placement.backend);
        if (bytes_per_second <= 0.0) return 0.0;
        seconds += double(sum.weight_bytes + sum.cache_bytes) / bytes_per_second;
    }
    return seconds > 0.0 ? 1.0 / seconds : 0.0;
}

}  // namespace redline
