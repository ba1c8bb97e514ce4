#include "run/session.h"

#include "memory/budget.h"

#include <algorithm>

namespace redline {

namespace {

Status check_caches(std::span<const CacheInfo> caches, const Model& model) {
    for (const CacheInfo& cache : caches)
        if (cache.type == CacheType::q8_0 && cache.head_dim % 32 != 0)
            return error("{}: heads of {} cannot be cached as q8_0, which needs a multiple of 32; use f16",
                         model.gguf().path(), cache.head_dim);
    return {};
}

Result<SessionOptions> checked(SessionOptions options) {
    if (options.context == 0) return error("a context of 0 tokens holds nothing");
    if (options.batch == 0 || options.outputs == 0) return error("the batch size must be at least 1");
    options.batch = uint32_t(std::min<uint64_t>(options.batch, options.context));
    options.outputs = std::min(options.outputs, options.batch);
    return options;
}

CacheSizing sizing(const SessionOptions& options) {
    return {options.context, options.batch, options.cache};
}

// For steps of at most so many rows; those of all that share caches are sized alike.
Result<Plan> plan_of(const Model& model, const SessionOptions& options, uint32_t rows) {
    return model.plan(rows, std::min(rows, options.outputs), sizing(options));
}

// The largest context that would have fitted, for the message.
std::string smaller_context(const MemoryNeed& need, uint64_t context, uint64_t budget) {
    const uint64_t rest = need.weights + need.scratch;
    const uint64_t per_token = std::max<uint64_t>(1, need.cache / context);
    if (budget <= rest || (budget - rest) / per_token < 256) return "a smaller model would";
    return fmt::format("a context of {} would", (budget - rest) / per_token / 256 * 256);
}

}  // namespace

Result<MemoryNeed> memory_need(const Model& model, Backend& backend, const SessionOptions& given) {
    const SessionOptions options = RL_TRY(checked(given));
    std::vector<BoundPlan> plans;
    for (const uint32_t rows : {1u, options.batch}) {
        const Plan plan = RL_TRY(plan_of(model, options, rows));
        RL_TRY(check_caches(plan.caches, model));
        // What no device could even be asked to size.
        const MemoryNeed least{model.weight_bytes(backend), cache_bytes(plan.caches), plan.arena_bytes, 0};
        if (least.total() > backend.device().memory_budget) return least;
        plans.push_back(RL_TRY(lower(plan, backend, options.fuse)));
        if (options.batch == 1) break;
    }
    const std::vector<WeightInfo> weights = plans[0].plan.weights;
    const std::vector<CacheInfo> caches = plans[0].plan.caches;
    return backend.measure(weights, caches, std::move(plans));
}

Status check_fits(const MemoryNeed& need, const Model& model, const DeviceInfo& device, uint64_t context) {
    if (need.total() <= device.memory_budget) return {};
    return error("{}: weights need {}, cache {}, scratch {}; {} offers {}: {} fit", model.gguf().path(),
                 format_bytes(need.weights), format_bytes(need.cache), format_bytes(need.scratch),
                 device.name, format_bytes(device.memory_budget),
                 smaller_context(need, context, device.memory_budget));
}

Result<Session> Session::create(const Model& model, const SessionOptions& options) {
    Session session;
    session.model_ = &model;
    session.options_ = RL_TRY(checked(options));
    Backend& backend = model.backend();
    session.memory_ = RL_TRY(memory_need(model, backend, options));
    // The budget was measured before the weights were loaded, so they count.
    RL_TRY(check_fits(session.memory_, model, backend.device(), options.context));
    session.cache_infos_ = RL_TRY(plan_of(model, session.options_, 1)).caches;
    session.caches_ = RL_TRY(backend.make_caches(session.cache_infos_));
    return session;
}

Result<Executable*> Session::executable(uint32_t rows) {
    std::unique_ptr<Executable>& slot = rows == 1 ? single_ : many_;
    if (slot) return slot.get();
    const Plan plan = RL_TRY(plan_of(*model_, options_, rows == 1 ? 1 : options_.batch));
    BoundPlan bound = RL_TRY(lower(plan, model_->backend(), options_.fuse));
    slot = RL_TRY(model_->backend().record(std::move(bound), model_->weights(), *caches_, options_.record));
    return slot.get();
}

Status Session::step(const StepParams& params, uint32_t outputs, const TraceSink* trace) {
    const Status done = try_step(params, outputs, trace);
    if (done || !rescue_) return done;
    if (caches_ && !model_->backend().lost()) return done;
    RL_TRY(rescue_(*this, done.error()));
    RL_TRY(read_again(params.cancel));
    return try_step(params, outputs, trace);
}

Status Session::read_again(const std::atomic<bool>* cancel) {
    const std::vector<Token> all = std::exchange(tokens_, {});
    written_ = oldest_ = 0;
    for (std::span<const Token> rest = all; !rest.empty();) {
        const auto chunk = rest.first(std::min<size_t>(rest.size(), options_.batch));
        RL_TRY(try_step({.tokens = chunk, .cancel = cancel}, 1, nullptr));
        rest = rest.subspan(chunk.size());
    }
    return {};
}

void Session::close() {
    single_.reset();
    many_.reset();
    caches_.reset();
    logits_ = {};
    best_ = {};
}

Status Session::reopen() {
    close();
    caches_ = RL_TRY(model_->backend().make_caches(cache_infos_));
    return {};
}

Status Session::check_open() const {
    if (caches_) return {};
    return error("the session lost its device");
}

// The rows are the session's next, and the best are wanted only where they can be had.
Status Session::try_step(StepParams params, uint32_t outputs, const TraceSink* trace) {
    RL_TRY(check_open());
    Executable* target = RL_TRY(executable(uint32_t(params.tokens.size())));
    const SequenceStep next(params.tokens, position(), outputs);
    const StepParams placed = next;
    params.rows = placed.rows;
    params.outputs = placed.outputs;
    if (params.best > target->most_best()) params.best = 0;
    written_ = std::max(written_, params.kv_len());
    if (trace)
        RL_TRY(target->run_traced(params, *trace));
    else
        RL_TRY(target->run(params));
    tokens_.insert(tokens_.end(), params.tokens.begin(), params.tokens.end());
    const std::span<const float> all = target->output();
    logits_ = params.best > 0 ? all : all.last(model_->config().vocab);
    best_ = target->best();
    return {};
}

Status Session::check_room(std::span<const Token> tokens) const {
    if (tokens.empty()) return error("no tokens to read");
    if (tokens.size() > context() - position())
        return error("{} tokens do not fit: the context of {} has {} left", tokens.size(), context(),
                     context() - position());
    for (const Token token : tokens)
        if (token < 0 || uint32_t(token) >= model_->config().vocab)
            return error("token id {} is outside the model's vocabulary of {}", token,
                         model_->config().vocab);
    return {};
}

Status Session::feed(std::span<const Token> tokens, const std::atomic<bool>* cancel) {
    RL_TRY(check_room(tokens));
    while (!tokens.empty()) {
        const auto chunk = tokens.first(std::min<size_t>(tokens.size(), options_.batch));
        RL_TRY(step({.tokens = chunk, .cancel = cancel}, 1, nullptr));
        tokens = tokens.subspan(chunk.size());
    }
    return {};
}

Status Session::feed_for_best(Token token, uint32_t count, const std::atomic<bool>* cancel) {
    const std::span<const Token> tokens(&token, 1);
    RL_TRY(check_room(tokens));
    StepParams params{.tokens = tokens, .cancel = cancel};
    params.best = count;
    params.best_among = uint32_t(model_->usable_vocab());
    return step(params, 1, nullptr);
}

Status Session::feed_all(std::span<const Token> tokens, const LogitsSink& sink,
                         const std::atomic<bool>* cancel) {
    RL_TRY(check_room(tokens));
    for (size_t first = 0; first < tokens.size();) {
        const auto chunk = tokens.subspan(first, std::min<size_t>(tokens.size() - first, options_.outputs));
        RL_TRY(step({.tokens = chunk, .cancel = cancel}, uint32_t(chunk.size()), nullptr));
        Executable* target = RL_TRY(executable(uint32_t(chunk.size())));
        sink(first, target->output());
        first += chunk.size();
    }
    return {};
}

Status Session::feed_traced(std::span<const Token> tokens, const TraceSink& sink) {
    RL_TRY(check_room(tokens));
    if (tokens.size() > options_.batch) return error("a traced step takes at most {} tokens", options_.batch);
    return step({.tokens = tokens}, 1, &sink);
}

bool Session::holds_all_before(uint64_t position) const {
    return std::all_of(cache_infos_.begin(), cache_infos_.end(), [&](const CacheInfo& cache) {
        if (cache.window == 0) return true;
        return first_seen(cache, position) >= first_held(cache);
    });
}

uint64_t Session::first_held(const CacheInfo& cache) const {
    if (cache.window == 0) return 0;
    return std::max(oldest_, written_ > cache.capacity ? written_ - cache.capacity : 0);
}

uint64_t Session::rewind(uint64_t count) {
    if (count < tokens_.size()) tokens_.resize(holds_all_before(count) ? count : 0);
    if (tokens_.empty()) written_ = oldest_ = 0;
    logits_ = {};
    best_ = {};
    return tokens_.size();
}

Status Session::shift(uint64_t keep, uint64_t discard, const std::atomic<bool>* cancel) {
    RL_CHECK(keep + discard <= position(), "shift of {} + {} in {} tokens", keep, discard, position());
    std::vector<Token> left = tokens_;
    left.erase(left.begin() + int64_t(keep), left.begin() + int64_t(keep + discard));
    const uint64_t held = rewind(keep);
    if (held == left.size()) return {};
    return feed(std::span(left).subspan(held), cancel);
}

}  // namespace redline
