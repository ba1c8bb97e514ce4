#include "places/model.h"

#include "arch/key_biases.h"
#include "base/hash.h"
#include "memory/budget.h"
#include "places/find_arch.h"
#include "places/slice_source.h"
#include "plan/far_backend.h"
#include "plan/passes/wide_keys.h"
#include "plan/stored_weights.h"

namespace redline {

namespace {

// Gives the backend the bytes of logical weights, which may be parts of file tensors.
class GgufSource : public ByteSource {
public:
    GgufSource(const Gguf& gguf, std::span<const WeightInfo> weights,
               std::span<const ResolvedWeights::Source> sources)
        : gguf_(gguf), weights_(weights), sources_(sources) {}

    Status read(size_t tensor, uint64_t offset, std::span<std::byte> out) override {
        return read_weight(gguf_, weights_[tensor], sources_[tensor], offset, out);
    }

private:
    const Gguf& gguf_;
    std::span<const WeightInfo> weights_;
    std::span<const ResolvedWeights::Source> sources_;
};

Status check_kind(const Gguf& gguf) {
    const std::string kind = RL_TRY(gguf.metadata().text("general.type", "model"));
    if (kind == "model") return {};
    return error("{} is of type {}, not a language model{}", gguf.path(), kind,
                 kind == "adapter"  ? "; an adapter goes with the model it was made for"
                 : kind == "mmproj" ? "; it is the vision or audio part of one, and redline runs text only"
                                    : "");
}

void add_value(Hash64& hash, const MetadataValue& value) {
    hash.add(uint64_t(value.value.index()));
    std::visit(
        [&hash](const auto& held) {
            using T = std::decay_t<decltype(held)>;
            if constexpr (std::is_arithmetic_v<T>)
                hash.add(std::as_bytes(std::span(&held, 1)));
            else if constexpr (std::is_same_v<T, std::string>)
                hash.add(held);
            else if constexpr (std::is_same_v<T, MetadataValue::Strings>)
                for (const std::string& text : held) hash.add(text);
            else if constexpr (std::is_same_v<T, MetadataValue::Bools>)
                for (const bool flag : held) hash.add(uint64_t(flag));
            else
                hash.add(std::as_bytes(std::span(held)));
        },
        value.value);
}

// Hashes pieces spread from the first byte of a tensor to its last.
Status add_sample(Hash64& hash, const Gguf& gguf, const GgufTensor& tensor) {
    constexpr uint64_t kPieces = 4, kPieceBytes = 1024;
    std::byte piece[kPieceBytes];
    const auto part = std::span(piece).first(std::min(kPieceBytes, tensor.bytes));
    for (uint64_t i = 0; i < kPieces; ++i) {
        RL_TRY(gguf.read(tensor, (tensor.bytes - part.size()) / (kPieces - 1) * i, part));
        hash.add(std::span<const std::byte>(part));
    }
    return {};
}

}  // namespace

// Heads beyond these would guess more than is ever asked for.
constexpr size_t kMostHeads = 16;

// Lists and finds the weights: of the text's layers, or of heads alone, and of heads.
Status Model::resolve(std::span<const std::shared_ptr<const Config>> heads) {
    WeightList list(*config_);
    arch_->weights(*config_, list);
    std::vector<WeightList> further;
    for (const auto& head : heads) arch_->weights(*head, further.emplace_back(*head));
    resolved_ = std::make_shared<ResolvedWeights>(RL_TRY(resolve_weights(*gguf_, list, further)));
    return {};
}

// Each of the layers that predict is a head, unless the architecture makes one of several.
Status Model::read_heads(const std::string& arch, uint64_t context) {
    const uint64_t all = RL_TRY(gguf_->metadata().integer(arch + ".block_count")),
                   predicting = RL_TRY(gguf_->metadata().integer(arch + ".nextn_predict_layers"));
    for (uint64_t layer = all - predicting; layer < all && heads_.size() < kMostHeads;) {
        const auto number = uint32_t(layer - (all - predicting));
        const auto config = RL_TRY(arch_->config({*gguf_, arch, context, number}));
        if (!config->predicts())
            return error("{}: redline cannot run MTP heads of architecture {}", gguf_->path(), arch);
        heads_.push_back(config);
        layer = config->layers;
    }
    return {};
}

namespace {

// True when the file has tensors of this layer.
bool has_layer(const Gguf& gguf, uint64_t layer) {
    const std::string prefix = fmt::format("blk.{}.", layer);
    return std::ranges::any_of(gguf.tensors(),
                               [&](const GgufTensor& one) { return one.tensor.name.starts_with(prefix); });
}

std::string left_out(uint64_t predicting, const Error& why, const std::string& path) {
    std::string reason = why.message;
    if (reason.starts_with(path + ": ")) reason.erase(0, path.size() + 2);
    return fmt::format("the last {}, which predict{} further tokens, {} left out: {}",
                       predicting == 1 ? "layer" : fmt::format("{} layers", predicting),
                       predicting == 1 ? "s" : "", predicting == 1 ? "is" : "are", reason);
}

}  // namespace

// Reads the configuration and finds the weights. Heads that are not required and cannot be run are left out,
// so that the text can be.
Status Model::read(const std::string& arch, uint64_t context, ReadHead head) {
    const Gguf& gguf = *gguf_;
    const auto predicting = RL_TRY(gguf.metadata().integer(arch + ".nextn_predict_layers", 0));
    const auto all = RL_TRY(gguf.metadata().integer(arch + ".block_count", 0));
    const bool any = predicting > 0 && predicting < all && has_layer(gguf, all - predicting);
    const bool alone = any && !has_layer(gguf, 0);
    if (alone && head == ReadHead::no)
        return error("{} holds an MTP head alone, which guesses for a model: name it with -md", gguf.path());
    if (head == ReadHead::required && !any) return error("{}: this file has no MTP head", gguf.path());
    if (!alone) config_ = RL_TRY(arch_->config({gguf, arch, context}));
    const auto with_heads = [&]() -> Status {
        RL_TRY(read_heads(arch, context));
        if (alone) config_ = heads_.front();
        return resolve(heads_);
    };
    const Status heads = any ? with_heads() : resolve({});
    if (!any || !heads) {
        if (alone || head == ReadHead::required || !any) return heads;
        heads_.clear();
        RL_TRY(resolve({}));
        resolved_->notes.push_back(left_out(predicting, heads.error(), gguf.path()));
        return {};
    }
    offered_heads_ = heads_.size();
    return head == ReadHead::no ? leave_out_head() : Status();
}

Status Model::leave_out_head() {
    RL_CHECK(!is_head() && !weights_, "the head of {} is left out too late", gguf_->path());
    heads_.clear();
    beside_.reset();
    return resolve({});
}

Result<Model> Model::inspect(const std::string& path, uint64_t context, ReadHead head) {
    Model model;
    model.gguf_ = std::make_shared<Gguf>(RL_TRY(Gguf::open(path)));
    const Gguf& gguf = *model.gguf_;
    RL_TRY(check_kind(gguf));
    model.arch_ = RL_TRY(find_arch(gguf));
    if (gguf.tensors().empty()) return error("{} holds a vocabulary only, no weights", path);
    const std::string arch = RL_TRY(gguf.metadata().text("general.architecture"));
    RL_TRY(model.read(arch, context, head));
    Result<Tokenizer> tokenizer = Tokenizer::create(gguf.metadata(), model.config_->vocab);
    if (!tokenizer) return error("{}: {}", path, tokenizer.error().message);
    model.tokenizer_ = std::make_shared<Tokenizer>(std::move(tokenizer).value());
    return model;
}

Result<Model> Model::load(const std::string& path, Backend& backend, const LoadOptions& options) {
    Model model = RL_TRY(inspect(path, options.context, options.head));
    RL_TRY(model.place(backend, options.progress));
    return model;
}

// True for the CPU, whose weights lie in this process's memory and know of no backend.
static bool keeps_weights_alike(const Backend& backend) {
    return backend.device().threads > 0;
}

Model Model::twin() const {
    Model model;
    model.gguf_ = gguf_;
    model.arch_ = arch_;
    model.config_ = config_;
    model.heads_ = heads_;
    model.offered_heads_ = offered_heads_;
    model.tokenizer_ = tokenizer_;
    model.resolved_ = resolved_;
    if (weights_ && keeps_weights_alike(*backend_)) model.beside_ = weights_;
    return model;
}

Status Model::place(Backend& backend, const Progress& progress) {
    backend_ = &backend;
    if (beside_ && keeps_weights_alike(backend)) {
        weights_ = beside_;
        return {};
    }
    const uint64_t budget = backend.device().memory.bytes;
    if (weight_bytes(backend) > budget)
        return error(
            "{} needs {} for its weights alone; {} offers {}. A smaller quantization or model would fit",
            gguf_->path(), format_bytes(weight_bytes(backend)), backend.device().name, format_bytes(budget));
    GgufSource source(*gguf_, resolved_->weights, resolved_->sources);
    weights_ = RL_TRY(backend.load(resolved_->weights, source, progress));
    return {};
}

namespace {

// A byte source for some of a model's weights, which knows where they are in its file.
struct Some {
    std::vector<WeightInfo> weights;
    std::vector<ResolvedWeights::Source> sources;

    Some(const ResolvedWeights& all, std::span<const Weight> which) {
        for (const Weight w : which) {
            weights.push_back(all.weights[size_t(w.index)]);
            sources.push_back(all.sources[size_t(w.index)]);
        }
    }
};

}  // namespace

Result<std::unique_ptr<WeightStore>> Model::load_some(std::span<const Weight> which, Backend& backend,
                                                      const Progress& progress) const {
    const Some some(*resolved_, which);
    if (auto* const far = dynamic_cast<FarBackend*>(&backend)) {
        std::vector<WeightSlice> whole;
        for (const Weight w : which) whole.push_back({w});
        return far->load_there(whole, some.weights);
    }
    GgufSource source(*gguf_, some.weights, some.sources);
    return backend.load(some.weights, source, progress);
}

Result<std::unique_ptr<WeightStore>> Model::load_slices(std::span<const WeightSlice> slices, Backend& backend,
                                                        const Progress& progress) const {
    std::vector<Weight> which;
    for (const WeightSlice& slice : slices) which.push_back(slice.of);
    const Some some(*resolved_, which);
    if (auto* const far = dynamic_cast<FarBackend*>(&backend)) return far->load_there(slices, some.weights);
    std::vector<WeightInfo> parts = some.weights;
    for (size_t i = 0; i < parts.size(); ++i) parts[i].tensor.shape = slices[i].shape(parts[i].tensor.shape);
    GgufSource whole(*gguf_, some.weights, some.sources);
    SliceSource source(whole, some.weights, slices);
    return backend.load(parts, source, progress);
}

Status Model::refill(std::span<const Weight> which, Backend& backend, WeightStore& store,
                     std::span<const uint32_t> at) const {
    const Some some(*resolved_, which);
    GgufSource source(*gguf_, some.weights, some.sources);
    return backend.refill(store, at, some.weights, source);
}

Result<uint64_t> Model::fingerprint() const {
    Hash64 hash;
    hash.add(gguf_->file_bytes());
    for (const auto& [key, value] : gguf_->metadata().entries()) {
        hash.add(key);
        add_value(hash, value);
    }
    for (const GgufTensor& t : gguf_->tensors()) {
        hash.add(t.tensor.name);
        hash.add(uint64_t(t.type));
        hash.add(t.offset);
        for (const uint64_t dim : t.dims) hash.add(dim);
        RL_TRY(add_sample(hash, *gguf_, t));
    }
    return hash.value();
}

uint64_t Model::weight_bytes(const Backend& backend) const {
    uint64_t sum = 0;
    for (const WeightInfo& info : stored_weights(resolved_->weights, backend)) sum += info.tensor.bytes();
    return sum;
}

uint32_t Model::usable_vocab() const {
    return uint32_t(std::min<uint64_t>(config_->vocab, tokenizer_->size()));
}

Result<std::vector<float>> Model::lookups(std::span<const Token> text, size_t begin) const {
    if (!resolved_->ngrams) return std::vector<float>();
    std::vector<float> out((text.size() - begin) * resolved_->ngrams->floats());
    RL_TRY(resolved_->ngrams->look_up(*gguf_, text, begin, out));
    return out;
}

PlanBuilder Model::builder(uint32_t max_rows, uint32_t max_outputs, const CacheSizing& sizing) const {
    std::vector<WeightInfo> weights =
        backend_ ? stored_weights(resolved_->weights, *backend_) : resolved_->weights;
    return PlanBuilder(std::move(weights), sizing, max_rows, max_outputs);
}

// Layers whose biases of keys are large cache their keys with 8 bits at least.
static Status widen_biased_keys(const Gguf& gguf, const ResolvedWeights& weights, const Config& layers,
                                Plan& plan) {
    if (cache_code(plan.sizing.types.keys).bits >= 8) return {};
    const std::vector<float> biases = RL_TRY(largest_key_biases(gguf, weights));
    widen_keys(plan, [&](uint32_t layer) {
        const size_t index = layers.first_layer + layer;
        return index < biases.size() && biases[index] >= kLargeKeyBias;
    });
    return {};
}

Result<Plan> Model::named(Result<Plan> plan) const {
    if (!plan) return error("{}: {}", gguf_->path(), plan.error().message);
    return plan;
}

Result<Plan> Model::plan(uint32_t max_rows, uint32_t max_outputs, const CacheSizing& sizing,
                         const Model* head) const {
    if (config_->positions > 0 && sizing.context > config_->positions)
        return error("{}: a context of {} tokens is too long; the model has embeddings of {} positions",
                     gguf_->path(), sizing.context, config_->positions);
    PlanBuilder builder = this->builder(max_rows, max_outputs, sizing);
    if (head) builder.want_hidden();
    arch_->build(*config_, resolved_->set, builder);
    Plan plan = RL_TRY(named(std::move(builder).finish()));
    RL_TRY(widen_biased_keys(*gguf_, *resolved_, *config_, plan));
    if (!head) return plan;
    if (!plan.hidden || plan.slot(plan.hidden).width != head->config().hidden_dim())
        return error("{}: its layers leave no hidden rows that the MTP head of {} reads", gguf_->path(),
                     head->gguf().path());
    plan.caches = RL_TRY(head->head_caches(sizing, *this));
    return plan;
}

Result<Plan> Model::head_plan_behind(size_t which, uint32_t max_rows, uint32_t max_outputs,
                                     const CacheSizing& sizing, std::vector<CacheInfo> caches) const {
    PlanBuilder builder = this->builder(max_rows, max_outputs, sizing);
    builder.follow(std::move(caches));
    builder.want_hidden();
    arch_->build(*heads_[which], resolved_->predictions[which], builder);
    Plan plan = RL_TRY(named(std::move(builder).finish()));
    RL_TRY(widen_biased_keys(*gguf_, *resolved_, *heads_[which], plan));
    return plan;
}

// The caches of the text and of all heads.
Result<std::vector<CacheInfo>> Model::head_caches(const CacheSizing& sizing, const Model& text) const {
    std::vector<CacheInfo> caches = RL_TRY(text.plan(1, 1, sizing)).caches;
    for (size_t which = 0; which < heads_.size(); ++which)
        caches = RL_TRY(head_plan_behind(which, 1, 1, sizing, std::move(caches))).caches;
    return caches;
}

Result<Plan> Model::head_plan(size_t which, uint32_t max_rows, uint32_t max_outputs,
                              const CacheSizing& sizing, const Model& text) const {
    RL_CHECK(which < heads_.size(), "{} was read with {} MTP heads", gguf_->path(), heads_.size());
    std::vector<CacheInfo> caches = RL_TRY(text.plan(1, 1, sizing)).caches;
    for (size_t before = 0; before < which; ++before)
        caches = RL_TRY(head_plan_behind(before, 1, 1, sizing, std::move(caches))).caches;
    Plan plan = RL_TRY(head_plan_behind(which, max_rows, max_outputs, sizing, std::move(caches)));
    plan.caches = RL_TRY(head_caches(sizing, text));
    return plan;
}

}  // namespace redline
