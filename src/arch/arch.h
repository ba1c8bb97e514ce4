// What a model file (models/NAME.cpp) says of its architecture: how to read its configuration, which weights
// it has, and its forward pass as a plan. The file's stem is the name of its Arch constant; the build finds
// it by itself.
#pragma once

#include "arch/ngrams.h"
#include "gguf/gguf.h"
#include "plan/plan.h"

#include <map>

namespace redline {

// Attention on latents: a head's query and key have `plain` elements without rope, then `rope` with it.
struct LatentShape {
    uint32_t rank = 0;        // of what keys and values are made of; 0: attention is on keys and values
    uint32_t query_rank = 0;  // of what queries are made of; 0: they are made of the embedding
    uint32_t plain = 0, rope = 0;
    uint32_t value_dim = 0;  // of a head
    bool in_one = false;     // what keys and values are made with is one tensor

    uint32_t width() const { return rank + rope; }  // of what is kept
};

// What chooses the blocks of tokens that attention sees.
struct IndexShape {
    uint32_t heads = 0;
    uint32_t head_dim = 0;
    uint32_t tokens = 0;           // that are chosen
    std::vector<uint32_t> ratios;  // by layer: tokens of a block; 0: attention sees everything
};

struct Config {
    std::string arch;         // of the names that a model file knows
    uint32_t vocab = 0;       // rows of the embedding
    uint32_t other_rows = 0;  // of its tensor, behind those: tokens that are not of text
    uint32_t dim = 0;
    uint32_t layers = 0;
    uint32_t ffn_dim = 0;
    uint32_t experts = 0;  // 0: dense
    uint32_t experts_used = 0;
    uint32_t expert_ffn_dim = 0;
    uint32_t shared_ffn_dim = 0;  // of the experts that all tokens share, together; 0: none
    Gating gating = Gating::softmax;
    ExpertGroups expert_groups;
    bool expert_norm = false;    // weights of the chosen add up to one
    float expert_scale = 1.0f;   // of their weights
    uint32_t dense_layers = 0;   // the first, where the others have experts
    uint32_t expert_step = 1;    // and of those every so many-th
    uint32_t unused_layers = 0;  // of the file, behind `layers`: they predict further tokens
    HeadShape heads;
    std::vector<uint32_t> heads_of;               // by layer, where those may differ; else empty
    std::vector<uint32_t> kv_heads_of, ffn_dims;  // so, too
    HeadShape local_heads;                        // of layers with a window, where those have their own
    std::vector<bool> raw_values;                 // by layer: what is normed to keys is normed to values, too
    std::vector<bool> gates_of_heads;             // by layer: a gate of the attention is for a whole head
    uint32_t shared_caches = 0;                   // last layers that see the keys and values of earlier ones
    uint32_t streams = 1;                         // of the residual
    uint32_t stream_rank = 0;                     // of what mixes them
    uint32_t laurel_rank = 0;                     // of what is learned beside the residual
    std::vector<float> sparse;                    // by layer: Sparsify::deviations of its FFN; 0: dense
    uint32_t stream_rounds = 0;                   // by which their weights are made doubly stochastic
    float stream_eps = 0.0f;                      // in those
    uint32_t output_groups = 0, output_rank = 0;  // of heads, and what is made of each before the output
    uint32_t hashed_layers = 0;                   // the first, whose experts a table has by token
    IndexShape index;                             // of attention to chosen blocks
    NgramTable ngrams;                            // whose layer this is:
    uint32_t ngram_layer = 0, ngram_taps = 0;
    uint32_t layer_input = 0;         // width of what each layer gets of a token beside x; 0: nothing
    std::vector<float> layer_scales;  // of what leaves a layer; empty: 1
    LatentShape latent;               // of attention on latents
    uint64_t window = 0;              // tokens that attention looks back over, its own included; 0: all
    std::vector<bool> windowed;       // by layer: whether the window is there; empty: in every one
    std::vector<bool> recurrent;      // by layer: it keeps a state, not keys and values; empty: none does
    uint32_t taps = 0;                // of the convolutions of those
    DeltaShape delta;                 // of those that follow the delta rule
    ScanShape scan;                   // of those that are state spaces
    uint32_t positions = 0;           // that have an embedding of their own, in place of rope
    std::vector<Xielu> xielu;         // by layer, without its slot
    bool without_rope = false;
    bool layer_norms = false;  // norms are of rows less their mean
    std::vector<bool> roped;   // by layer: whether it has rope; empty: every one
    // By layer, of what gates and ups of experts are, and of shared ones; 0 or empty: none.
    std::vector<float> expert_limits, shared_limits;
    uint32_t expert_input = 0;  // width of what experts read and write; 0: dim
    bool delta_in_one = false;  // their inputs are one matrix, grouped by heads of keys
    bool steps_in_one = false;  // and so is what they step and decay by
    float eps = 0.0f;
    uint64_t train_context = 0;
    RopeSpec rope;
    RopeSpec query_rope;             // of queries, where theirs differs
    RopeSpec local_rope;             // of layers with a window, where those have their own
    float scale = 0.0f;              // of attention's scores; 0: 1 / sqrt(head_dim)
    float attention_softcap = 0.0f;  // 0: none
    float embedding_scale = 1.0f;
    float residual_scale = 1.0f;  // of what a block adds
    float logit_scale = 1.0f;
    float logit_softcap = 0.0f;  // 0: none

    uint32_t q_dim() const { return heads.heads * heads.head_dim; }
    uint32_t kv_dim() const { return heads.kv_heads * heads.head_dim; }
    float attention_scale() const;
    bool has_experts(size_t layer) const {
        return experts > 0 && layer >= dense_layers && (layer + 1) % expert_step == 0;
    }
    bool is_windowed(size_t layer) const { return window > 0 && (windowed.empty() || windowed[layer]); }
    bool is_recurrent(size_t layer) const { return !recurrent.empty() && recurrent[layer]; }
    bool has_rope(size_t layer) const { return roped.empty() || roped[layer]; }
    uint64_t window_of(size_t layer) const { return is_windowed(layer) ? window : 0; }
};

// The file that a configuration is read from, and the context that it is read for (longrope depends on it).
struct ModelFile {
    const Gguf& gguf;
    std::string arch;
    uint64_t context = 0;

    std::string key(std::string_view rest) const { return arch + "." + std::string(rest); }
    const Metadata& meta() const { return gguf.metadata(); }
    // A whole small tensor as floats (rope factors); empty when the file has none of this name.
    Result<std::vector<float>> floats(const std::string& name, uint64_t expected) const;
};

// Dimensions, heads, eps and experts from "<arch>.*", with every value checked for sanity.
// `eps`: of norms where the file does not say.
enum class LayersDiffer : uint8_t {
    no,
    in_kind,  // those without kv heads keep states
    in_size   // and their kv heads and FFN differ otherwise, too: Config::kv_heads_of, Config::ffn_dims
};
Result<Config> common_config(const ModelFile& file, std::optional<float> eps = {},
                             LayersDiffer differ = LayersDiffer::no);
// A required or defaulted count with bounds.
Result<uint32_t> count(const ModelFile& file, std::string_view rest, std::optional<uint64_t> otherwise,
                       uint64_t low, uint64_t high);
// The last layers, which predict further tokens, are not run.
Status leave_out_predicting_layers(const ModelFile& file, Config& config);
// Rope of the file: base, dimensions, linear and yarn scaling, and `factors` (one per pair, may be empty).
// `rounded`: the pairs between which yarn blends are whole numbers.
Result<RopeSpec> common_rope(const ModelFile& file, const Config& config, bool half_split,
                             std::span<const float> factors, bool rounded = true);
// Of longrope: of the tensor for contexts such as the file is read for; empty without it.
Result<std::vector<float>> longrope_factors(const ModelFile& file, const Config& config);
// One without scaling, with the base of a key of its own; of as many dimensions as config.rope, unless
// "rope.dimension_count_swa" says otherwise.
Result<RopeSpec> local_rope(const ModelFile& file, const Config& config, std::string_view key, float base);
// The window, and the layers that have it by "attention.sliding_window_pattern": a period, whose last layer
// sees everything, or a flag for each. Where the key is missing, `period`; without a window in the file,
// `window`.
Status read_windows(const ModelFile& file, Config& config, uint32_t period, uint64_t window);
// Shared experts (`otherwise`: how many there are where the file does not say), leading dense layers, layers
// that are not run, and what is done with the weights of the chosen. `groups`: they may be chosen by groups.
Status read_shared_experts(const ModelFile& file, Config& config, uint64_t otherwise, bool groups = false);
// A number of the file, finite and not negative.
Result<float> factor(const ModelFile& file, std::string_view rest, float otherwise);

// A weight that an architecture expects. Names are the file's, without "blk.N." and with ".weight" implied.
struct WeightSpec {
    std::string name;       // by which build() asks for it
    std::string source;     // tensor in the file
    std::string otherwise;  // taken when the file has no `source` (tied output); empty: none
    int32_t layer = -1;     // -1: global
    Shape shape;
    WeightRole role = WeightRole::matrix;
    bool optional = false;
    // Of the file tensor, for fused ones; of each of its matrices where several are wanted, else of all of
    // them, one below the other. Of a vector: elements.
    uint64_t first_row = 0;
    uint64_t source_rows = 0;  // that it must have; 0: shape.rows
    bool flat = false;         // the file has the rows of all matrices in one
    bool transposed = false;   // and each the other way round; first_row and source_rows are the file's
    bool integers = false;     // a vector that the file has as whole numbers of 32 bits

    std::string tensor() const;  // its name in the file, with layer and suffix
    Shape file_shape() const;    // that this tensor has to have
};

class WeightList {
public:
    explicit WeightList(const Config& config) : config_(config), end_(config.layers) {}

    // What is listed next is there in layers [first, end) only.
    void in_layers(uint32_t first, uint32_t end) {
        first_ = first;
        end_ = end;
    }

    void global_matrix(std::string name, uint64_t rows, uint64_t cols, std::string otherwise = {});
    void global_vector(std::string name, uint64_t size, std::string otherwise = {});
    void global_rows_of(std::string name, std::string source, uint64_t source_rows, uint64_t first,
                        uint64_t rows, uint64_t cols);
    void optional_global_vector(std::string name, uint64_t size);
    // `otherwise`: what some files call it.
    void matrix(std::string name, uint64_t rows, uint64_t cols, std::string otherwise = {});
    void experts(std::string name, uint64_t count, uint64_t rows, uint64_t cols);
    void vector(std::string name, uint64_t size, std::string otherwise = {});
    void optional_vector(std::string name, uint64_t size);
    // Whole numbers as floats.
    void integers(std::string name, uint64_t size);
    // Rows [first, first + rows) of the fused tensor `source`, which has `source_rows` in all.
    void rows_of(std::string name, std::string source, uint64_t source_rows, uint64_t first, uint64_t rows,
                 uint64_t cols);
    // For each head, `rows` rows from `first` on of its `source_rows` in the matrix `source`. `transposed`:
    // such are the columns of what is wanted.
    void head_rows_of(std::string name, std::string source, uint64_t heads, uint64_t source_rows,
                      uint64_t first, uint64_t rows, uint64_t cols, bool transposed);
    // Tensors that the file may have and this program does not need, or has read already: a name, or with a
    // dot at its end all names that begin so.
    void ignore(std::string tensor) { ignored_.push_back(std::move(tensor)); }

    // What most models have, of the configuration's sizes.
    void embedding_and_output();  // and the norm before the output, which may be the embedding
    void queries_keys_values();
    void optional_biases();  // of these
    void gated_ffn();
    void gated_experts();
    void shared_expert();
    void ignore_unused_layers();

    const std::vector<WeightSpec>& specs() const { return specs_; }
    const std::vector<std::string>& ignored() const { return ignored_; }

private:
    void each_layer(const WeightSpec& spec);

    const Config& config_;
    uint32_t first_ = 0, end_;
    std::vector<WeightSpec> specs_;
    std::vector<std::string> ignored_;
};

// The weights of a loaded model by name; an optional one that the file lacks is a null Weight.
class LayerWeights {
public:
    void set(const std::string& name, Weight w) { by_name_[name] = w; }
    Weight operator[](std::string_view name) const;

private:
    std::map<std::string, Weight, std::less<>> by_name_;
};

class WeightSet {
public:
    explicit WeightSet(uint32_t layers) : layers_(layers) {}
    Weight operator[](std::string_view name) const { return global_[name]; }
    std::span<const LayerWeights> layers() const { return layers_; }
    void set(const WeightSpec& spec, Weight w);

private:
    LayerWeights global_;
    std::vector<LayerWeights> layers_;
};

struct Arch {
    std::vector<std::string> names;  // values of general.architecture
    Result<Config> (*config)(const ModelFile& file);
    void (*weights)(const Config& config, WeightList& list);
    void (*build)(const Config& config, const WeightSet& weights, PlanBuilder& plan);
};

// Written by the build, into the library rl_models.
std::span<const Arch* const> all_archs();

// The weights of `specs` found in the file: every expected tensor must be there with its shape and a format
// that can be decoded, and no tensor may be left over but those of vision and audio.
struct ResolvedWeights {
    std::vector<WeightInfo> weights;
    struct Source {
        uint32_t tensor = 0;        // index in Gguf::tensors()
        uint64_t first_byte = 0;    // within the tensor
        uint64_t matrix_bytes = 0;  // from one matrix to the next, where that differs from what they take
        bool transposed = false;    // each: what the file has as rows are columns, in another format
        bool integers = false;      // what the file has are whole numbers
    };
    std::vector<Source> sources;  // one per weight
    WeightSet set;
    std::vector<std::string> notes = {};  // what of the file is left out
};
// Bytes [offset, offset + out.size()) of weight `index`, as its WeightInfo describes it.
Status read_weight(const Gguf& gguf, const WeightInfo& info, const ResolvedWeights::Source& source,
                   uint64_t offset, std::span<std::byte> out);
Result<ResolvedWeights> resolve_weights(const Gguf& gguf, const Config& config, const WeightList& list);

}  // namespace redline
