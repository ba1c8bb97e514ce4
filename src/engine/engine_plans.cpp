#include "engine/engine_plans.h"

#include "memory/budget.h"
#include "plan/alike_rows.h"

#include <algorithm>

namespace redline {

Result<EngineOptions> checked(EngineOptions options) {
    if (options.context == 0) return error("a context of 0 tokens holds nothing");
    if (options.batch == 0 || options.outputs == 0) return error("the batch size must be at least 1");
    options.batch = uint32_t(std::min<uint64_t>(options.batch, options.context));
    // A product of one output is one of one row.
    if (options.alike_rows) options.outputs = std::max(options.outputs, kFewAlike);
    options.outputs = std::min(std::max(options.outputs, options.sequences), options.batch);
    if (options.sequences == 0) return error("an engine for 0 sequences reads nothing");
    if (options.pages == 0 && (options.sequences + options.kept > 1 || options.alike_rows))
        options.pages = options.sequences * ((options.context + kPageRows - 1) / kPageRows);
    return options;
}

CacheSizing sizing(const EngineOptions& options) {
    // A sequence has its current states and snapshots, and in a step the states that this writes: those
    // behind its drafts, too.
    const uint32_t all = options.sequences + options.kept;
    // So has each further step in flight, of a place more.
    const size_t places = std::max<size_t>(1, backends_of(options.placements).size());
    const uint32_t states =
        all * (1 + options.snapshots) + options.sequences + options.drafts + uint32_t(places - 1);
    return {options.context, options.batch, options.cache, all, options.pages, states, options.alike_rows};
}

bool has_single(const EngineOptions& options) {
    return !options.alike_rows || options.batch == 1;
}

const Model* head_of(const Model& model, const EngineOptions& options) {
    if (options.drafts == 0 || !options.ranks.empty()) return nullptr;
    return options.head ? options.head : model.has_head() ? &model : nullptr;
}

size_t head_count(const Model& head, const EngineOptions& options) {
    return std::min<size_t>({head.heads(), options.drafts, options.batch});
}

Result<Plan> plan_of(const Model& model, const EngineOptions& options, uint32_t rows) {
    return model.plan(rows, std::min(rows, options.outputs), sizing(options), head_of(model, options));
}

Result<Plan> head_plan_of(const Model& model, const EngineOptions& options, size_t which, uint32_t rows) {
    return head_of(model, options)
        ->head_plan(which, rows, std::min(rows, options.sequences), sizing(options), model);
}

HeadsBeside heads_beside(const Model& model, const EngineOptions& options) {
    const Model* head = head_of(model, options);
    if (!head) return {};
    return {head, head_count(*head, options), options.sequences};
}

namespace {

Status check_caches(std::span<const CacheInfo> caches, const Model& model) {
    for (const CacheInfo& cache : caches) {
        if (cache.is_state()) continue;
        const CacheTypes types = cache.types;
        for (const CacheType type : {types.keys, types.values})
            if (cache_code(type).is_quantized() && cache.head_dim % kCacheBlock != 0)
                return error(
                    "{}: heads of {} cannot be cached as {}, which needs a multiple of {}; use f16 or bf16",
                    model.gguf().path(), cache.head_dim, cache_type_name(type), kCacheBlock);
        if (cache.rank > 0 && !types.are(types.keys))
            return error(
                "{}: its values are parts of its keys, so that the cache has one type and not {} and {}; "
                "use one for both",
                model.gguf().path(), cache_type_name(types.keys), cache_type_name(types.values));
    }
    return {};
}

// The plans of all heads, for one row and for a whole batch.
Result<std::vector<Plan>> head_plans(const Model& model, const EngineOptions& options) {
    std::vector<Plan> plans;
    for (size_t which = 0; which < head_count(*head_of(model, options), options); ++which) {
        plans.push_back(RL_TRY(head_plan_of(model, options, which, 1)));
        if (options.batch > 1) plans.push_back(RL_TRY(head_plan_of(model, options, which, options.batch)));
    }
    return plans;
}

// Names the largest context that would have fitted, for the message.
std::string smaller_context(const MemoryNeed& need, uint64_t context, uint64_t budget) {
    const uint64_t rest = need.weights + need.scratch;
    const uint64_t per_token = std::max<uint64_t>(1, need.cache / context);
    const bool loads = need.weights + need.staging <= budget;
    if (!loads || budget <= rest || (budget - rest) / per_token < 256) return "a smaller model would";
    return fmt::format("a context of {} would", (budget - rest) / per_token / 256 * 256);
}

}  // namespace

Result<std::vector<Plan>> engine_plans(const Model& model, const EngineOptions& given) {
    const EngineOptions options = RL_TRY(checked(given));
    std::vector<Plan> plans;
    if (has_single(options)) plans.push_back(RL_TRY(plan_of(model, options, 1)));
    if (options.batch > 1) plans.push_back(RL_TRY(plan_of(model, options, options.batch)));
    if (head_of(model, options) != &model) return plans;
    for (Plan& plan : RL_TRY(head_plans(model, options))) plans.push_back(std::move(plan));
    return plans;
}

Result<Plan> placed_plan(const Model& model, const EngineOptions& options) {
    return model.plan(1, 1, sizing(RL_TRY(checked(options))));
}

Result<std::vector<Plan>> kernel_plans(const Model& model, const EngineOptions& given,
                                       const Backend& backend) {
    if (given.ranks.empty()) return engine_plans(model, given);
    const EngineOptions options = RL_TRY(checked(given));
    return Ranks::plans_of(model, sizing(options), options.ranks, options.batch, options.outputs, backend);
}

// The need of another model's heads: its weights, and the scratch of its plans.
static Result<MemoryNeed> head_need(const Model& model, Backend& backend, const EngineOptions& options) {
    std::vector<PlanGroup> plans;
    for (const Plan& plan : RL_TRY(head_plans(model, options))) {
        plans.emplace_back();
        plans.back().push_back(RL_TRY(lower(plan, backend, options.fuse)));
    }
    const std::vector<WeightInfo> weights = plans[0][0].plan.weights;
    const std::vector<CacheInfo> caches = plans[0][0].plan.caches;
    MemoryNeed need = RL_TRY(backend.measure(weights, caches, std::move(plans)));
    need.cache = 0;  // counted with the text's
    return need;
}

Result<MemoryNeed> memory_need(const Model& model, Backend& backend, const EngineOptions& given) {
    const EngineOptions options = RL_TRY(checked(given));
    const std::vector<Plan> recorded = RL_TRY(engine_plans(model, options));
    std::vector<PlanGroup> plans;
    for (const Plan& plan : recorded) {
        RL_TRY(check_caches(plan.caches, model));
        // A plan so large that no device could even be asked to size it.
        MemoryNeed least{model.weight_bytes(backend), cache_bytes(plan.caches), plan.arena_bytes, 0};
        if (least.total() > backend.device().memory.bytes) {
            for (const Plan& other : recorded)  // those for whole batches
                least.scratch = std::max(least.scratch, other.arena_bytes);
            return least;
        }
        plans.emplace_back();
        plans.back().push_back(RL_TRY(lower(plan, backend, options.fuse)));
    }
    const std::vector<WeightInfo> weights = plans[0][0].plan.weights;
    const std::vector<CacheInfo> caches = plans[0][0].plan.caches;
    MemoryNeed need = RL_TRY(backend.measure(weights, caches, std::move(plans)));
    const Model* head = head_of(model, options);
    if (!head || head == &model) return need;
    const MemoryNeed further = RL_TRY(head_need(model, backend, options));
    need.weights += further.weights;
    need.scratch += further.scratch;
    return need;
}

Status check_fits(const MemoryNeed& need, const Model& model, const DeviceInfo& device, uint64_t context) {
    if (need.total() <= device.memory.bytes) return {};
    const std::string loading = need.staging > need.cache + need.scratch
                                    ? fmt::format(", loading {}", format_bytes(need.staging))
                                    : "";
    return error("{}: weights need {}, cache {}, scratch {}{}; {} offers {}: {} fit", model.gguf().path(),
                 format_bytes(need.weights), format_bytes(need.cache), format_bytes(need.scratch), loading,
                 device.name, device.memory.text(), smaller_context(need, context, device.memory.bytes));
}

Result<std::vector<MemoryNeed>> memory_needs(const Model& model, const EngineOptions& given) {
    const EngineOptions options = RL_TRY(checked(given));
    if (!options.ranks.empty())
        return Ranks::measure(model, sizing(options), options.ranks, options.batch, options.outputs,
                              options.fuse);
    const HeadsBeside heads = heads_beside(model, options);
    std::vector<MemoryNeed> needs =
        RL_TRY(Places::measure(model, sizing(options), options.placements, options.batch, options.outputs,
                               options.fuse, options.stream_rows > 0, heads));
    if (!heads.model || heads.model == &model) return needs;
    Backend& last = *with_steps(options.placements).back().backend;
    const std::vector<Backend*> backends = backends_of(options.placements);
    MemoryNeed& there = needs[size_t(std::ranges::find(backends, &last) - backends.begin())];
    const MemoryNeed further = RL_TRY(head_need(model, last, options));
    there.weights += further.weights;
    there.scratch += further.scratch;
    return needs;
}

Result<uint64_t> largest_context(const Model& model, Backend& backend, EngineOptions options, uint64_t most) {
    constexpr uint64_t kGrain = 256;
    const uint64_t budget = backend.device().memory.bytes;
    const auto need_of = [&](uint64_t context) {
        options.context = context;
        return memory_need(model, backend, options);
    };
    // Allocation can fail although the memory has room, where a device limits the size of a buffer.
    const auto fits = [&](uint64_t context) {
        const Result<MemoryNeed> need = need_of(context);
        return need && need.value().total() <= budget;
    };
    if (fits(most)) return most;
    RL_TRY(need_of(std::min(most, kGrain)));                // an error with any context
    uint64_t low = 0, high = (most + kGrain - 1) / kGrain;  // in grains: low fits or is 0, high does not fit
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        (fits(middle * kGrain) ? low : high) = middle;
    }
    return low * kGrain;
}

}  // namespace redline
