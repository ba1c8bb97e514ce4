#include "run/session.h"

#include "base/file.h"
#include "base/hash.h"
#include "memory/budget.h"

#include <algorithm>
#include <cstring>

namespace redline {

static Status check_cache(const CacheShape& shape, const Model& model) {
    if (shape.type == CacheType::q8_0 && shape.head_dim % 32 != 0)
        return error("{}: heads of {} cannot be cached as q8_0, which needs a multiple of 32; use f16",
                     model.gguf().path(), shape.head_dim);
    return {};
}

// The largest context that would have fitted, for the message.
static std::string smaller_context(const MemoryNeed& need, const CacheShape& cache, uint64_t budget) {
    const uint64_t rest = need.weights + need.scratch;
    const uint64_t per_token = std::max<uint64_t>(1, cache.bytes() / std::max<uint64_t>(1, cache.capacity));
    if (budget <= rest || (budget - rest) / per_token < 256) return "a smaller model would";
    return fmt::format("a context of {} would", (budget - rest) / per_token / 256 * 256);
}

Result<Session> Session::create(const Model& model, const SessionOptions& options) {
    Session session;
    session.model_ = &model;
    session.options_ = options;
    if (options.context == 0) return error("a context of 0 tokens holds nothing");
    if (options.batch == 0 || options.outputs == 0) return error("the batch size must be at least 1");
    session.options_.batch = uint32_t(std::min<uint64_t>(options.batch, options.context));
    session.options_.outputs = std::min(options.outputs, session.options_.batch);
    const CacheShape shape = model.cache_shape(options.context, options.cache);
    RL_TRY(check_cache(shape, model));

    const Plan plan = RL_TRY(model.plan(session.options_.batch, session.options_.outputs, shape));
    session.memory_ = {model.weights().bytes(), shape.bytes(), plan.arena_bytes};
    const DeviceInfo& device = model.backend().device();
    // The budget was measured before the weights were loaded, so they count.
    if (session.memory_.total() > device.memory_budget)
        return error("weights need {}, cache {}, scratch {}; {} offers {}: {} fit",
                     format_bytes(session.memory_.weights), format_bytes(session.memory_.cache),
                     format_bytes(session.memory_.scratch), device.name, format_bytes(device.memory_budget),
                     smaller_context(session.memory_, shape, device.memory_budget));
    session.cache_ = RL_TRY(model.backend().make_cache(shape));
    return session;
}

Result<Executable*> Session::executable(uint32_t rows) {
    std::unique_ptr<Executable>& slot = rows == 1 ? single_ : many_;
    if (slot) return slot.get();
    const uint32_t max_rows = rows == 1 ? 1 : options_.batch;
    const Plan plan = RL_TRY(model_->plan(max_rows, std::min(max_rows, options_.outputs), cache_->shape()));
    BoundPlan bound = RL_TRY(lower(plan, model_->backend(), options_.fuse));
    slot = RL_TRY(model_->backend().record(std::move(bound), model_->weights(), *cache_, options_.record));
    return slot.get();
}

Status Session::step(const StepParams& params, const TraceSink* trace) {
    const Status done = try_step(params, trace);
    if (done || !rescue_) return done;
    if (cache_ && !model_->backend().lost()) return done;
    RL_TRY(rescue_(*this, done.error()));
    RL_TRY(read_again(params.cancel));
    return try_step(params, trace);
}

Status Session::read_again(const std::atomic<bool>* cancel) {
    const std::vector<Token> all = std::exchange(tokens_, {});
    for (std::span<const Token> rest = all; !rest.empty();) {
        const auto chunk = rest.first(std::min<size_t>(rest.size(), options_.batch));
        RL_TRY(try_step({chunk, 0, uint32_t(chunk.size() - 1), cancel}, nullptr));
        rest = rest.subspan(chunk.size());
    }
    return {};
}

void Session::close() {
    single_.reset();
    many_.reset();
    cache_.reset();
    logits_ = {};
    best_ = {};
}

Status Session::reopen() {
    close();
    cache_ = RL_TRY(model_->backend().make_cache(model_->cache_shape(options_.context, options_.cache)));
    return {};
}

Status Session::check_open() const {
    if (cache_) return {};
    return error("the session lost its device");
}

// The position is the session's own, and the best are wanted only where they can be had.
Status Session::try_step(StepParams params, const TraceSink* trace) {
    RL_TRY(check_open());
    Executable* target = RL_TRY(executable(uint32_t(params.tokens.size())));
    params.position = position();
    if (params.best > target->most_best()) params.best = 0;
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
        RL_TRY(step({chunk, 0, uint32_t(chunk.size() - 1), cancel}, nullptr));
        tokens = tokens.subspan(chunk.size());
    }
    return {};
}

Status Session::feed_for_best(Token token, uint32_t count, const std::atomic<bool>* cancel) {
    const std::span<const Token> tokens(&token, 1);
    RL_TRY(check_room(tokens));
    StepParams params{tokens, 0, 0, cancel};
    params.best = count;
    params.best_among = uint32_t(model_->usable_vocab());
    return step(params, nullptr);
}

Status Session::feed_all(std::span<const Token> tokens, const LogitsSink& sink,
                         const std::atomic<bool>* cancel) {
    RL_TRY(check_room(tokens));
    for (size_t first = 0; first < tokens.size();) {
        const auto chunk = tokens.subspan(first, std::min<size_t>(tokens.size() - first, options_.outputs));
        RL_TRY(step({chunk, 0, 0, cancel}, nullptr));
        Executable* target = RL_TRY(executable(uint32_t(chunk.size())));
        sink(first, target->output());
        first += chunk.size();
    }
    return {};
}

Status Session::feed_traced(std::span<const Token> tokens, const TraceSink& sink) {
    RL_TRY(check_room(tokens));
    if (tokens.size() > options_.batch) return error("a traced step takes at most {} tokens", options_.batch);
    return step({tokens, 0, uint32_t(tokens.size() - 1)}, &sink);
}

void Session::truncate(uint64_t count) {
    if (count < tokens_.size()) tokens_.resize(count);
    logits_ = {};
    best_ = {};
}

Status Session::shift(uint64_t keep, uint64_t discard, const std::atomic<bool>* cancel) {
    RL_CHECK(keep + discard <= position(), "shift of {} + {} in {} tokens", keep, discard, position());
    const std::vector<Token> rest(tokens_.begin() + int64_t(keep + discard), tokens_.end());
    truncate(keep);
    if (rest.empty()) return {};
    return feed(rest, cancel);
}

// ---- the cache in a file ----

namespace {

struct CacheHeader {
    char magic[8] = {'R', 'L', 'C', 'A', 'C', 'H', 'E', '1'};
    uint64_t fingerprint = 0;
    uint32_t layers = 0;
    uint32_t kv_heads = 0;
    uint32_t head_dim = 0;
    uint32_t type = 0;
    uint64_t tokens = 0;
};
static_assert(sizeof(CacheHeader) == 40);

class CheckedWriter {
public:
    explicit CheckedWriter(AtomicWriter& out) : out_(out) {}
    Status write(std::span<const std::byte> bytes) {
        hash_.add(bytes);
        return out_.write(bytes);
    }
    Status finish() {
        const uint64_t sum = hash_.value();
        RL_TRY(out_.write(std::as_bytes(std::span(&sum, 1))));
        return out_.commit();
    }

private:
    AtomicWriter& out_;
    Hash64 hash_;
};

CacheHeader header_of(const CacheShape& shape, uint64_t fingerprint, uint64_t tokens) {
    CacheHeader header;
    header.fingerprint = fingerprint;
    header.layers = shape.layers;
    header.kv_heads = shape.kv_heads;
    header.head_dim = shape.head_dim;
    header.type = uint32_t(shape.type);
    header.tokens = tokens;
    return header;
}

Status check_header(const CacheHeader& have, const CacheHeader& want, uint64_t file_size, uint64_t row_bytes,
                    const std::string& path, uint64_t context) {
    if (std::memcmp(have.magic, want.magic, sizeof(have.magic)) != 0)
        return error("{} is not a saved cache of redline", path);
    if (have.fingerprint != want.fingerprint) return error("{} was saved with another model", path);
    if (have.layers != want.layers || have.kv_heads != want.kv_heads || have.head_dim != want.head_dim)
        return error("{} was saved with another model shape", path);
    if (have.type != want.type)
        return error("{} holds a {} cache; choose that cache type to use it", path,
                     have.type <= uint32_t(CacheType::f32) ? cache_type_name(CacheType(have.type)) : "newer");
    if (have.tokens > context)
        return error("{} holds {} tokens, the context is {}", path, have.tokens, context);
    const uint64_t expected =
        sizeof(CacheHeader) + have.tokens * (sizeof(Token) + row_bytes) + sizeof(uint64_t);
    if (file_size != expected)
        return error("{} has {} bytes, {} expected: it is damaged", path, file_size, expected);
    return {};
}

}  // namespace

Status Session::save(const std::string& path) const {
    RL_TRY(check_open());
    const CacheShape& shape = cache_->shape();
    AtomicWriter file = RL_TRY(AtomicWriter::create(path));
    CheckedWriter out(file);
    const CacheHeader header = header_of(shape, model_->fingerprint(), position());
    RL_TRY(out.write(std::as_bytes(std::span(&header, 1))));
    RL_TRY(out.write(std::as_bytes(std::span(tokens_))));
    std::vector<std::byte> row(shape.token_bytes() * shape.kv_heads);
    for (uint32_t layer = 0; layer < shape.layers; ++layer)
        for (uint64_t p = 0; p < position(); ++p) {
            RL_TRY(cache_->read(layer, p, row));
            RL_TRY(out.write(row));
        }
    return out.finish();
}

Status Session::restore(const std::string& path) {
    RL_TRY(check_open());
    const CacheShape& shape = cache_->shape();
    const File file = RL_TRY(File::open(path));
    CacheHeader header;
    RL_TRY(file.read(0, std::as_writable_bytes(std::span(&header, 1))));
    const uint64_t row_bytes = shape.token_bytes() * shape.kv_heads * shape.layers;
    RL_TRY(check_header(header, header_of(shape, model_->fingerprint(), 0), file.size(), row_bytes, path,
                        context()));

    // Two passes: nothing of this session changes unless the whole file is sound.
    Hash64 hash;
    std::vector<std::byte> chunk(1u << 20);
    const uint64_t body = file.size() - sizeof(uint64_t);
    for (uint64_t at = 0; at < body; at += chunk.size()) {
        const auto part = std::span(chunk).first(size_t(std::min<uint64_t>(chunk.size(), body - at)));
        RL_TRY(file.read(at, part));
        hash.add(part);
    }
    uint64_t sum = 0;
    RL_TRY(file.read(body, std::as_writable_bytes(std::span(&sum, 1))));
    if (sum != hash.value()) return error("{} does not match its checksum: it is damaged", path);

    std::vector<Token> tokens(header.tokens);
    RL_TRY(file.read(sizeof(header), std::as_writable_bytes(std::span(tokens))));
    for (const Token token : tokens)
        if (token < 0 || uint32_t(token) >= model_->config().vocab)
            return error("{} holds token id {}, outside the model's vocabulary", path, token);
    truncate(0);
    uint64_t at = sizeof(header) + tokens.size() * sizeof(Token);
    std::vector<std::byte> row(shape.token_bytes() * shape.kv_heads);
    for (uint32_t layer = 0; layer < shape.layers; ++layer)
        for (uint64_t p = 0; p < tokens.size(); ++p, at += row.size()) {
            RL_TRY(file.read(at, row));
            RL_TRY(cache_->write(layer, p, row));
        }
    tokens_ = std::move(tokens);
    return {};
}

}  // namespace redline
