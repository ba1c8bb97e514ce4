#include "places/model.h"

#include "base/hash.h"
#include "memory/budget.h"
#include "places/find_arch.h"
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

// Reads the configuration and finds the weights: of the text's layers, of the head, or of both.
Status Model::read(const std::string& arch, uint64_t context, ReadHead head) {
    const Gguf& gguf = *gguf_;
    const auto predicting = RL_TRY(gguf.metadata().integer(arch + ".nextn_predict_layers", 0));
    const bool any = predicting > 0;
    const bool alone = any && !gguf.find("blk.0.attn_norm.weight");
    if (alone && head == ReadHead::no)
        return error("{} holds an MTP head alone, which guesses for a model: name it with -md", gguf.path());
    if (head == ReadHead::required && !any) return error("{}: this file has no MTP head", gguf.path());
    if (any) prediction_ = RL_TRY(arch_->config({gguf, arch, context, true}));
    offers_head_ = prediction_ && prediction_->predicts();
    if (any && !offers_head_ && (alone || head == ReadHead::required))
        return error("{}: redline cannot run MTP heads of architecture {}", gguf.path(), arch);
    if (!offers_head_ || head == ReadHead::no) prediction_.reset();
    config_ = alone ? prediction_ : RL_TRY(arch_->config({gguf, arch, context}));
    WeightList list(*config_);
    arch_->weights(*config_, list);
    std::optional<WeightList> further;
    if (prediction_ && !alone) arch_->weights(*prediction_, further.emplace(*prediction_));
    resolved_ =
        std::make_shared<ResolvedWeights>(RL_TRY(resolve_weights(gguf, list, further ? &*further : nullptr)));
    if (any && !offers_head_)
        resolved_->notes.push_back(
            predicting == 1
                ? "the last layer, which predicts further tokens, is left out"
                : fmt::format("the last {} layers, which predict further tokens, are left out", predicting));
    return {};
}

Status Model::leave_out_head() {
    RL_CHECK(!is_head() && !weights_, "the head of {} is left out too late", gguf_->path());
    WeightList list(*config_);
    arch_->weights(*config_, list);
    resolved_ = std::make_shared<ResolvedWeights>(RL_TRY(resolve_weights(*gguf_, list)));
    beside_.reset();
    prediction_.reset();
    return {};
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
    model.prediction_ = prediction_;
    model.offers_head_ = offers_head_;
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
    GgufSource source(*gguf_, some.weights, some.sources);
    return backend.load(some.weights, source, progress);
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
    if (!head) return plan;
    if (!plan.hidden || plan.slot(plan.hidden).width != head->config().dim)
        return error("{}: its layers leave no hidden rows that the MTP head of {} reads", gguf_->path(),
                     head->gguf().path());
    plan.caches = RL_TRY(head->head_plan(1, 1, sizing, *this)).caches;
    return plan;
}

Result<Plan> Model::head_plan(uint32_t max_rows, uint32_t max_outputs, const CacheSizing& sizing,
                              const Model& text) const {
    RL_CHECK(has_head(), "{} was read without an MTP head", gguf_->path());
    PlanBuilder builder = this->builder(max_rows, max_outputs, sizing);
    builder.follow(RL_TRY(text.plan(1, 1, sizing)).caches);
    builder.want_hidden();
    arch_->build(*prediction_, resolved_->prediction ? *resolved_->prediction : resolved_->set, builder);
    return named(std::move(builder).finish());
}

}  // namespace redline
