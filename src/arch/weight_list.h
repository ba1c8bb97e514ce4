// The weights that an architecture expects of a file, listed by name and shape, and where the file has them.
#pragma once

#include "arch/config.h"
#include "arch/ngrams.h"
#include "gguf/gguf.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>

namespace redline {

// A weight that an architecture expects. Names are the file's, without "blk.N." and with ".weight" implied.
struct WeightSpec {
    std::string name;      // by which build() asks for it
    std::string source;    // tensor in the file
    std::string fallback;  // tensor that is used when the file has no `source` (tied output); empty: none
    int32_t layer = -1;    // -1: global
    Shape shape;
    WeightRole role = WeightRole::matrix;
    bool optional = false;
    // The first row in the file's tensor, for fused ones: of each of its matrices where several are wanted,
    // and of all of them, one below the other, where one is. Of a vector: the first element.
    uint64_t first_row = 0;
    uint64_t source_rows = 0;  // that the tensor must have; 0: shape.rows
    bool flat = false;         // the file has the rows of all matrices in one
    bool transposed = false;   // and each the other way round; first_row and source_rows are the file's
    bool integers = false;     // a vector that the file has as whole numbers of 32 bits
    std::string last = {};     // tensor that is used when the file has no `fallback` either; empty: none

    std::string tensor() const;  // its name in the file, with layer and suffix
    Shape file_shape() const;    // that this tensor has to have
};

// A weight that no file has, that a file may have, or that it must have.
enum class Presence : uint8_t { none, optional, required };

// The parts of attention that architectures differ in; see WeightList::attention().
struct AttentionParts {
    Presence biases = Presence::none;       // of queries, keys and values
    Presence output_bias = Presence::none;  // of the product behind them
    Presence head_norms = Presence::none;   // of each head of queries and keys
    bool norm = true;                       // before the block
};

class WeightList {
public:
    explicit WeightList(const Config& config)
        : config_(config), first_(config.first_layer), end_(config.layers) {}

    // The weights that are listed next are those of layers [first, end) only, as far as these are run.
    void in_layers(uint32_t first, uint32_t end) {
        first_ = std::max(first, config_.first_layer);
        end_ = end;
    }

    // `fallback`: another name, which some files use.
    void global_matrix(std::string name, uint64_t rows, uint64_t cols, std::string fallback = {});
    void global_vector(std::string name, uint64_t size, std::string fallback = {});
    void global_rows_of(std::string name, std::string source, uint64_t source_rows, uint64_t first,
                        uint64_t rows, uint64_t cols);
    void optional_global_vector(std::string name, uint64_t size);
    void matrix(std::string name, uint64_t rows, uint64_t cols, std::string fallback = {});
    void experts(std::string name, uint64_t count, uint64_t rows, uint64_t cols);
    void vector(std::string name, uint64_t size, std::string fallback = {});
    void optional_vector(std::string name, uint64_t size);
    // One that is there, may be there, or is not listed at all.
    void vector_if(Presence presence, std::string name, uint64_t size);
    // Whole numbers as floats.
    void integers(std::string name, uint64_t size);
    // Rows [first, first + rows) of the fused tensor `source`, which has `source_rows` in all.
    void rows_of(std::string name, std::string source, uint64_t source_rows, uint64_t first, uint64_t rows,
                 uint64_t cols);
    // For each head, `rows` rows from `first` on of its `source_rows` in the matrix `source`. `transposed`:
    // these rows are the columns of the weight.
    void head_rows_of(std::string name, std::string source, uint64_t heads, uint64_t source_rows,
                      uint64_t first, uint64_t rows, uint64_t cols, bool transposed);
    // Tensors that the file may have and this program does not need, or has read already: a name, or with a
    // dot at its end all names that begin so.
    void ignore(std::string tensor) { ignored_.push_back(std::move(tensor)); }
    // A table whose rows are looked up in the file as tokens come.
    void look_up(const NgramTable& table) {
        ngrams_ = table;
        ignore(table.tensor);
    }

    // Weights that most models have, in the configuration's sizes.
    // And the norm before the output, which may be the embedding. A layer that predicts may have all of these
    // for itself, and has what makes its input.
    void embedding_and_output();
    // The parts of that, of a layer that predicts.
    void prediction_ends(bool norm = true);
    void prediction_input();
    // The global weight that was listed last is this tensor of a layer that predicts, where it has it.
    void or_of_prediction(std::string tensor);
    void queries_keys_values();
    void attention(const AttentionParts& parts = {});
    void layer_norm(std::string name);  // its gain and its bias
    void gated_ffn();
    void gated_ffn_in_one();  // gate and up are one tensor, "ffn_up"
    void plain_ffn();         // without a gate
    void gated_experts();
    // A router with `bias` or without one ("exp_probs_b", which files may leave out), and gated experts.
    void routed_experts(bool bias = false);
    void shared_expert();  // where the configuration has one
    void ignore_unused_layers();
    // Tensors of factors that the configuration has read.
    void ignore_rope_factors() { ignore("rope_freqs.weight"); }
    void ignore_longrope_factors();

    const std::vector<WeightSpec>& specs() const { return specs_; }
    const std::vector<std::string>& ignored() const { return ignored_; }
    const std::optional<NgramTable>& ngrams() const { return ngrams_; }
    uint32_t layers() const { return config_.layers; }

private:
    void each_layer(const WeightSpec& spec);

    const Config& config_;
    uint32_t first_, end_;
    std::vector<WeightSpec> specs_;
    std::vector<std::string> ignored_;
    std::optional<NgramTable> ngrams_;
};

// The weights of a loaded model by name; an optional one that the file lacks is a null Weight.
class LayerWeights {
public:
    void set(const std::string& name, Weight w) { by_name_[name] = w; }
    Weight operator[](std::string_view name) const;
    // Null, too, for a weight that was not listed.
    Weight find(std::string_view name) const;

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

struct ResolvedWeights {
    std::vector<WeightInfo> weights;
    struct Source {
        uint32_t tensor = 0;        // index in Gguf::tensors()
        uint64_t first_byte = 0;    // within the tensor
        uint64_t matrix_bytes = 0;  // from one matrix to the next; 0: they follow each other closely
        bool transposed = false;    // the file's rows are the weight's columns, in another format
        bool integers = false;      // the file has whole numbers
    };
    std::vector<Source> sources;  // one per weight
    WeightSet set;
    std::vector<WeightSet> predictions = {};  // of the layers that predict, where they are listed, too
    std::vector<std::string> notes = {};      // sentences on parts of the file that are left out
    std::optional<NgramTable> ngrams = {};    // the table that stays in the file
};
// Finds the listed weights in the file: every expected tensor must be there with its shape and a format that
// can be decoded, and no tensor may be left over but those of vision and audio. `predictions`: the lists of
// layers that predict, which share weights with the others.
Result<ResolvedWeights> resolve_weights(const Gguf& gguf, const WeightList& list,
                                        std::span<const WeightList> predictions = {});
// Bytes [offset, offset + out.size()) of a weight, in the format that its WeightInfo has.
Status read_weight(const Gguf& gguf, const WeightInfo& info, const ResolvedWeights::Source& source,
                   uint64_t offset, std::span<std::byte> out);

}  // namespace redline
