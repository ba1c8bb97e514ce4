#include "arch/weight_list.h"

#include "memory/budget.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace redline {

void WeightList::each_layer(const WeightSpec& spec) {
    for (uint32_t i = first_; i < end_; ++i) {
        WeightSpec one = spec;
        one.layer = int32_t(i);
        specs_.push_back(std::move(one));
    }
}

// "attn_q" stands for "attn_q.weight"; a name with a suffix is taken as it is.
static std::string tensor_name(const std::string& name, int32_t layer) {
    const std::string full = name.find('.') == std::string::npos ? name + ".weight" : name;
    return layer < 0 ? full : fmt::format("blk.{}.{}", layer, full);
}

std::string WeightSpec::tensor() const {
    return tensor_name(source, layer);
}

Shape WeightSpec::file_shape() const {
    if (role == WeightRole::vector && source_rows != 0) return {1, 1, source_rows};
    Shape stored = shape;
    if (transposed) std::swap(stored.rows, stored.cols);
    if (source_rows != 0) stored.rows = source_rows;
    return flat ? Shape{1, stored.count * stored.rows, stored.cols} : stored;
}

void WeightList::global_matrix(std::string name, uint64_t rows, uint64_t cols, std::string fallback) {
    specs_.push_back({name, name, std::move(fallback), -1, {1, rows, cols}, WeightRole::matrix, false, 0, 0});
}
void WeightList::global_vector(std::string name, uint64_t size, std::string fallback) {
    specs_.push_back({name, name, std::move(fallback), -1, {1, 1, size}, WeightRole::vector, false, 0, 0});
}
void WeightList::optional_global_vector(std::string name, uint64_t size) {
    specs_.push_back({name, name, {}, -1, {1, 1, size}, WeightRole::vector, true, 0, 0});
}
void WeightList::global_rows_of(std::string name, std::string source, uint64_t source_rows, uint64_t first,
                                uint64_t rows, uint64_t cols) {
    specs_.push_back({std::move(name),
                      std::move(source),
                      {},
                      -1,
                      {1, rows, cols},
                      WeightRole::matrix,
                      false,
                      first,
                      source_rows});
}
void WeightList::matrix(std::string name, uint64_t rows, uint64_t cols, std::string fallback) {
    each_layer({name, name, std::move(fallback), -1, {1, rows, cols}, WeightRole::matrix, false, 0, 0});
}
void WeightList::experts(std::string name, uint64_t count, uint64_t rows, uint64_t cols) {
    each_layer({name, name, {}, -1, {count, rows, cols}, WeightRole::matrix, false, 0, 0});
}
void WeightList::vector(std::string name, uint64_t size, std::string fallback) {
    each_layer({name, name, std::move(fallback), -1, {1, 1, size}, WeightRole::vector, false, 0, 0});
}
void WeightList::optional_vector(std::string name, uint64_t size) {
    each_layer({name, name, {}, -1, {1, 1, size}, WeightRole::vector, true, 0, 0});
}
void WeightList::integers(std::string name, uint64_t size) {
    WeightSpec spec;
    spec.name = spec.source = std::move(name);
    spec.shape = {1, 1, size};
    spec.role = WeightRole::vector;
    spec.integers = true;
    each_layer(spec);
}
void WeightList::or_of_prediction(std::string tensor) {
    WeightSpec& spec = specs_.back();
    ignore(spec.tensor());
    spec.last = std::move(spec.fallback);
    spec.fallback = std::move(spec.source);
    spec.source = std::move(tensor);
}
void WeightList::prediction_ends(bool norm) {
    const Config& c = config_;
    const uint32_t last = c.layers - 1;
    global_matrix("token_embd", c.vocab, c.dim);
    or_of_prediction(fmt::format("blk.{}.nextn.embed_tokens.weight", c.first_layer));
    global_matrix("output", c.vocab, c.dim, "token_embd");
    or_of_prediction(fmt::format("blk.{}.nextn.shared_head_head.weight", last));
    ignore("output_norm.weight");
    if (!norm) return;
    // Ling's files have another name for it.
    global_vector("output_norm", c.dim, "output_norm");
    specs_.back().source = fmt::format("blk.{}.layer_output_norm.weight", last);
    or_of_prediction(fmt::format("blk.{}.nextn.shared_head_norm.weight", last));
}
void WeightList::prediction_input() {
    const Config& c = config_;
    in_layers(c.first_layer, c.first_layer + 1);
    matrix("nextn.eh_proj.weight", c.dim, 2 * uint64_t(c.dim));
    vector("nextn.enorm.weight", c.dim);
    vector("nextn.hnorm.weight", c.hidden_dim());
    in_layers(c.first_layer, c.layers);
}
void WeightList::embedding_and_output() {
    const Config& c = config_;
    if (c.predicts()) {
        prediction_ends();
        return prediction_input();
    }
    global_matrix("token_embd", c.vocab, c.dim);
    global_vector("output_norm", c.dim);
    global_matrix("output", c.vocab, c.dim, "token_embd");
}
void WeightList::queries_keys_values() {
    const Config& c = config_;
    matrix("attn_q", c.q_dim(), c.dim);
    matrix("attn_k", c.kv_dim(), c.dim);
    matrix("attn_v", c.kv_dim(), c.dim);
}
void WeightList::vector_if(Presence presence, std::string name, uint64_t size) {
    if (presence == Presence::optional) optional_vector(std::move(name), size);
    if (presence == Presence::required) vector(std::move(name), size);
}
void WeightList::attention(const AttentionParts& parts) {
    const Config& c = config_;
    if (parts.norm) vector("attn_norm", c.dim);
    queries_keys_values();
    vector_if(parts.biases, "attn_q.bias", c.q_dim());
    vector_if(parts.biases, "attn_k.bias", c.kv_dim());
    vector_if(parts.biases, "attn_v.bias", c.kv_dim());
    vector_if(parts.head_norms, "attn_q_norm", c.heads.head_dim);
    vector_if(parts.head_norms, "attn_k_norm", c.heads.head_dim);
    matrix("attn_output", c.dim, c.q_dim());
    vector_if(parts.output_bias, "attn_output.bias", c.dim);
}
void WeightList::layer_norm(std::string name) {
    vector(name, config_.dim);
    vector(name + ".bias", config_.dim);
}
void WeightList::gated_ffn() {
    const Config& c = config_;
    matrix("ffn_gate", c.ffn_dim, c.dim);
    matrix("ffn_up", c.ffn_dim, c.dim);
    matrix("ffn_down", c.dim, c.ffn_dim);
}
void WeightList::gated_ffn_in_one() {
    const Config& c = config_;
    rows_of("ffn_gate", "ffn_up", 2 * uint64_t(c.ffn_dim), 0, c.ffn_dim, c.dim);
    rows_of("ffn_up", "ffn_up", 2 * uint64_t(c.ffn_dim), c.ffn_dim, c.ffn_dim, c.dim);
    matrix("ffn_down", c.dim, c.ffn_dim);
}
void WeightList::plain_ffn() {
    const Config& c = config_;
    matrix("ffn_up", c.ffn_dim, c.dim);
    matrix("ffn_down", c.dim, c.ffn_dim);
}
void WeightList::gated_experts() {
    const Config& c = config_;
    experts("ffn_gate_exps", c.experts, c.expert_ffn_dim, c.dim);
    experts("ffn_up_exps", c.experts, c.expert_ffn_dim, c.dim);
    experts("ffn_down_exps", c.experts, c.dim, c.expert_ffn_dim);
}
void WeightList::routed_experts(bool bias) {
    matrix("ffn_gate_inp", config_.experts, config_.dim);
    if (bias) optional_vector("exp_probs_b.bias", config_.experts);
    gated_experts();
}
void WeightList::shared_expert() {
    const Config& c = config_;
    if (c.shared_ffn_dim == 0) return;
    matrix("ffn_gate_shexp", c.shared_ffn_dim, c.dim);
    matrix("ffn_up_shexp", c.shared_ffn_dim, c.dim);
    matrix("ffn_down_shexp", c.dim, c.shared_ffn_dim);
}
void WeightList::ignore_unused_layers() {
    const Config& c = config_;
    for (uint32_t i = 0; i < c.unused_layers; ++i) ignore(fmt::format("blk.{}.", c.layers + i));
}
void WeightList::ignore_longrope_factors() {
    for (const char* name : {"rope_factors_long.weight", "rope_factors_short.weight"}) ignore(name);
}

void WeightList::rows_of(std::string name, std::string source, uint64_t source_rows, uint64_t first,
                         uint64_t rows, uint64_t cols) {
    each_layer({std::move(name),
                std::move(source),
                {},
                -1,
                {1, rows, cols},
                WeightRole::matrix,
                false,
                first,
                source_rows});
}

void WeightList::head_rows_of(std::string name, std::string source, uint64_t heads, uint64_t source_rows,
                              uint64_t first, uint64_t rows, uint64_t cols, bool transposed) {
    WeightSpec spec;
    spec.name = std::move(name);
    spec.source = std::move(source);
    spec.shape = transposed ? Shape{heads, cols, rows} : Shape{heads, rows, cols};
    spec.first_row = first;
    spec.source_rows = source_rows;
    spec.flat = true;
    spec.transposed = transposed;
    each_layer(spec);
}

Weight LayerWeights::operator[](std::string_view name) const {
    const auto found = by_name_.find(name);
    RL_CHECK(found != by_name_.end(), "the model file asks for weight {}, which it never listed", name);
    return found->second;
}

Weight LayerWeights::find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? Weight{} : found->second;
}

void WeightSet::set(const WeightSpec& spec, Weight w) {
    (spec.layer < 0 ? global_ : layers_[size_t(spec.layer)]).set(spec.name, w);
}

constexpr uint32_t kTypeI32 = 26;  // as GGUF numbers it

// Queries, keys and values, gates and ups of experts may be one tensor, which find_in_one() looks for.
static const GgufTensor* find_in_one(const Gguf& gguf, const WeightList& list, WeightSpec& spec);

// The tensor of a weight; null: the file has none.
static const GgufTensor* find_tensor(const Gguf& gguf, const WeightList& list, WeightSpec& spec) {
    const std::string name = spec.tensor();
    const GgufTensor* found = gguf.find(name);
    for (const std::string* other : {&spec.fallback, &spec.last})
        if (!found && !other->empty()) found = gguf.find(tensor_name(*other, spec.layer));
    // Ollama's files leave the suffix of some out.
    if (!found && name.ends_with(".weight")) found = gguf.find(name.substr(0, name.size() - 7));
    return found ? found : find_in_one(gguf, list, spec);
}

static Status check_weight(const Gguf& gguf, const WeightSpec& spec, const GgufTensor& found) {
    const Tensor& tensor = found.tensor;
    const Shape want = spec.file_shape();
    const bool vector = spec.role == WeightRole::vector;
    Shape has = tensor.shape;
    if (spec.source_rows != 0 && want.count == 1) has = {1, has.count * has.rows, has.cols};
    const bool fits = vector ? tensor.shape.elements() == want.cols : has == want;
    if (!fits)
        return error("{}: tensor {} is ({}, {}, {}), ({}, {}, {}) expected", gguf.path(), tensor.name,
                     tensor.shape.count, tensor.shape.rows, tensor.shape.cols, want.count, want.rows,
                     want.cols);
    if (spec.integers && found.type != kTypeI32)
        return error("{}: tensor {} has {}, I32 expected", gguf.path(), tensor.name,
                     describe_type(found.type));
    if (spec.integers) return {};
    if (!tensor.format)
        return error("{}: tensor {} has {}, which redline cannot decode", gguf.path(), tensor.name,
                     describe_type(found.type));
    if (vector && spec.source_rows != 0 && tensor.format->block != 1)
        return error("{}: tensor {} is a vector in blocks of {}, which cannot be divided", gguf.path(),
                     tensor.name, tensor.format->name);
    return {};
}

// The part of a model that a tensor is of when it has nothing to do with text; empty for others.
static std::string_view other_part(std::string_view name) {
    if (name.starts_with("v.") || name.starts_with("model.vision_tower.")) return "vision";
    if (name.starts_with("a.")) return "audio";
    return name.starts_with("mm.") ? "vision or audio" : "";
}

// Returns notes on tensors of other parts of the model, which are left out.
static Result<std::vector<std::string>> check_leftovers(const Gguf& gguf, const WeightList& list,
                                                        const std::vector<bool>& used) {
    std::map<std::string_view, size_t> others;
    for (size_t i = 0; i < used.size(); ++i) {
        const std::string& name = gguf.tensors()[i].tensor.name;
        const bool ignored =
            std::any_of(list.ignored().begin(), list.ignored().end(), [&](const std::string& one) {
                return name == one || (one.ends_with('.') && name.starts_with(one));
            });
        // Some files have a scale for activations that are quantized with it; here they are not.
        const bool of_input = name.ends_with(".input_scale") &&
                              gguf.find(name.substr(0, name.size() - std::strlen("input_scale")) + "weight");
        if (used[i] || ignored || of_input) continue;
        const std::string_view part = other_part(name);
        if (part.empty()) return error("{}: tensor {} is not part of this architecture", gguf.path(), name);
        ++others[part];
    }
    std::vector<std::string> notes;
    for (const auto& [part, tensors] : others)
        notes.push_back(
            fmt::format("tensors for {} are left out, {} of them: text only here", part, tensors));
    return notes;
}

// The format in which a matrix is kept that is read the other way round.
static const Format* transposed_format(const Format& format) {
    const bool wide = format.name == "F32" || format.name == "BF16";
    return find_format(wide ? "F32" : "F16");
}

// Some files have queries, keys and values in one tensor, in this order; so with their biases.
static const GgufTensor* find_in_qkv(const Gguf& gguf, const WeightList& list, WeightSpec& spec) {
    if (!spec.source.starts_with("attn_")) return nullptr;
    const bool bias = spec.source.ends_with(".bias");
    const std::string suffix = bias ? ".bias" : "";
    const GgufTensor* found = gguf.find(tensor_name("attn_qkv" + suffix, spec.layer));
    if (!found) return nullptr;
    uint64_t rows = 0;
    std::optional<uint64_t> first;
    for (const char part : {'q', 'k', 'v'}) {
        const std::string name = fmt::format("attn_{}{}", part, suffix);
        const auto one = std::find_if(list.specs().begin(), list.specs().end(), [&](const WeightSpec& s) {
            return s.layer == spec.layer && s.source == name;
        });
        if (one == list.specs().end()) return nullptr;
        if (name == spec.source) first = rows;
        rows += bias ? one->shape.cols : one->shape.rows;
    }
    if (!first) return nullptr;
    spec.first_row = *first;
    spec.source_rows = rows;
    return found;
}

// Some files have gates and ups of experts in one tensor, an expert's gate before its up.
static const GgufTensor* find_in_one(const Gguf& gguf, const WeightList& list, WeightSpec& spec) {
    if (spec.source != "ffn_gate_exps" && spec.source != "ffn_up_exps") return find_in_qkv(gguf, list, spec);
    const GgufTensor* found = gguf.find(tensor_name("ffn_gate_up_exps", spec.layer));
    if (!found) return nullptr;
    spec.source_rows = 2 * spec.shape.rows;
    spec.first_row = spec.source == "ffn_up_exps" ? spec.shape.rows : 0;
    return found;
}

// Files in NVFP4 have a scale for the products of a matrix beside it. A tensor of such a name that the
// architecture has listed is for the architecture.
static const GgufTensor* find_scale(const Gguf& gguf, const WeightList& list, const GgufTensor& matrix) {
    std::string_view stem = matrix.tensor.name;
    if (stem.ends_with(".weight")) stem.remove_suffix(7);
    const GgufTensor* found = gguf.find(fmt::format("{}.scale", stem));
    if (!found) return nullptr;
    const bool listed = std::any_of(list.specs().begin(), list.specs().end(),
                                    [&](const WeightSpec& s) { return s.tensor() == found->tensor.name; });
    return listed ? nullptr : found;
}

// Adds one number for the matrix that was added last, or one for each of several.
static Status add_scale(const Gguf& gguf, const GgufTensor& scale, ResolvedWeights& out) {
    const Tensor& tensor = scale.tensor;
    const uint64_t elements = tensor.shape.elements();
    WeightInfo& matrix = out.weights.back();
    if (elements != 1 &&
        (elements != matrix.tensor.shape.count || !scale.tensor.name.ends_with("_exps.scale")))
        return error("{}: tensor {} has {} numbers, 1 or one for each expert expected", gguf.path(),
                     tensor.name, elements);
    if (!tensor.format)
        return error("{}: tensor {} has {}, which redline cannot decode", gguf.path(), tensor.name,
                     describe_type(scale.type));
    std::vector<std::byte> bytes(tensor.bytes());
    RL_TRY(gguf.read(scale, 0, bytes));
    std::vector<float> values(elements);
    tensor.format->decode(bytes.data(), values.data(), elements);
    for (const float value : values)
        if (!std::isfinite(value) || value == 0.0f)
            return error("{}: tensor {} holds {}, a number other than zero expected", gguf.path(),
                         tensor.name, value);
    if (elements == 1) {
        matrix.scale = values[0];
        return {};
    }
    matrix.scales = {int32_t(out.weights.size())};
    out.weights.push_back({tensor, WeightRole::vector});
    out.weights.back().tensor.shape = {1, 1, elements};
    out.sources.push_back({uint32_t(&scale - gguf.tensors().data()), 0, 0, false});
    return {};
}

namespace {

// Collects the weights of lists; one that several name is one weight.
class Resolver {
public:
    Resolver(const Gguf& gguf, ResolvedWeights& out) : gguf_(gguf), out_(out), used_(gguf.tensors().size()) {}

    Status add(const WeightList& list, WeightSet& set) {
        for (const WeightSpec& spec : list.specs()) RL_TRY(add(list, spec, set));
        return {};
    }
    const std::vector<bool>& used() const { return used_; }

private:
    Status add(const WeightList& list, WeightSpec spec, WeightSet& set) {
        const GgufTensor* found = find_tensor(gguf_, list, spec);
        if (!found && spec.optional) {
            set.set(spec, {});
            return {};
        }
        if (!found) return missing(spec);
        RL_TRY(check_weight(gguf_, spec, *found));
        const uint32_t index = uint32_t(found - gguf_.tensors().data());
        used_[index] = true;
        const bool vector = spec.role == WeightRole::vector;
        const Format& format = spec.integers ? *find_format("F32") : *found->tensor.format;
        const uint64_t row_bytes = vector ? format.block_bytes : found->tensor.row_bytes(),
                       first_byte = spec.first_row * row_bytes;
        const auto [slot, fresh] =
            placed_.try_emplace({index, first_byte}, Weight{int32_t(out_.weights.size())});
        if (fresh) {
            Tensor tensor = found->tensor;
            tensor.shape = spec.shape;
            const uint64_t matrix_bytes = spec.source_rows * row_bytes;
            tensor.format = spec.transposed ? transposed_format(format) : &format;
            out_.weights.push_back({std::move(tensor), spec.role});
            out_.sources.push_back({index, first_byte, matrix_bytes, spec.transposed, spec.integers});
            if (const GgufTensor* scale = vector ? nullptr : find_scale(gguf_, list, *found)) {
                used_[size_t(scale - gguf_.tensors().data())] = true;
                RL_TRY(add_scale(gguf_, *scale, out_));
            }
        }
        set.set(spec, slot->second);
        return {};
    }

    Error missing(const WeightSpec& spec) const {
        const std::string one = spec.source.substr(0, spec.source.rfind("_exps")) + ".0.weight";
        if (spec.shape.count > 1 && gguf_.find(tensor_name(one, spec.layer)))
            return error(
                "{}: stores its experts one by one (a conversion of early 2024); convert the model again",
                gguf_.path());
        return error("{}: tensor {} is missing", gguf_.path(), spec.tensor());
    }

    const Gguf& gguf_;
    ResolvedWeights& out_;
    std::vector<bool> used_;
    std::map<std::pair<uint32_t, uint64_t>, Weight> placed_;  // by tensor and first byte
};

}  // namespace

Result<ResolvedWeights> resolve_weights(const Gguf& gguf, const WeightList& list,
                                        std::span<const WeightList> predictions) {
    ResolvedWeights out{{}, {}, WeightSet(list.layers())};
    out.ngrams = list.ngrams();
    Resolver resolver(gguf, out);
    RL_TRY(resolver.add(list, out.set));
    for (const WeightList& one : predictions)
        RL_TRY(resolver.add(one, out.predictions.emplace_back(one.layers())));
    out.notes = RL_TRY(check_leftovers(gguf, list, resolver.used()));
    if (const GgufTensor* table = out.ngrams ? gguf.find(out.ngrams->tensor) : nullptr)
        out.notes.push_back(
            fmt::format("the table of n-grams, {}, stays in the file: rows are read as tokens come",
                        format_bytes(table->bytes)));
    return out;
}

}  // namespace redline
