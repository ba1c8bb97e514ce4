// Reading a model's configuration from its file: verbs for the keys that many architectures share. Every
// value is checked, and an error names the file and the key.
#pragma once

#include "arch/config.h"
#include "gguf/gguf.h"

#include <optional>
#include <span>

namespace redline {

// The file that a configuration is read from, and the context that it is read for, on which the factors of
// longrope depend.
struct ModelFile {
    const Gguf& gguf;
    std::string arch;
    uint64_t context = 0;
    // The layer that is meant, counted among those that predict further tokens; none: all others are.
    std::optional<uint32_t> prediction = {};

    std::string key(std::string_view rest) const { return arch + "." + std::string(rest); }
    const Metadata& meta() const { return gguf.metadata(); }
    // A whole small tensor of positive numbers (rope factors); empty when the file has none of this name.
    Result<std::vector<float>> floats(const std::string& name, uint64_t expected) const;
    // A number for each layer, none of them negative; empty when the file has no such key. Lists by layer may
    // lack the layers that predict: these are as the last one then.
    Result<std::vector<float>> limits(std::string_view rest, uint32_t layers) const;
    // Whole numbers for each layer, likewise: see Metadata::integers().
    Result<std::vector<uint64_t>> integers(std::string_view rest, uint32_t layers,
                                           std::optional<uint64_t> fallback) const;
    // True when one of the layers has this tensor, "ssm_in.weight" for "blk.N.ssm_in.weight".
    bool any_layer_has(std::string_view tensor, uint32_t layers) const;
};

// In which way the layers of an architecture may differ from each other.
enum class LayersDiffer : uint8_t {
    no,
    in_kind,  // layers without kv heads keep states
    in_size   // heads, kv heads and FFN differ: Config::heads_of, kv_heads_of, ffn_dims
};
// Dimensions, heads, eps and experts from "<arch>.*". `eps`: for files that do not say it.
Result<Config> common_config(const ModelFile& file, std::optional<float> eps = {},
                             LayersDiffer differ = LayersDiffer::no);

// A whole number within bounds. Without a fallback the file must have the key.
Result<uint32_t> count(const ModelFile& file, std::string_view rest, std::optional<uint64_t> fallback,
                       uint64_t low, uint64_t high);
// A number that is finite and not negative.
Result<float> factor(const ModelFile& file, std::string_view rest, float fallback);

// The window, and the layers that have it by "attention.sliding_window_pattern": a period, whose last layer
// sees everything, or a flag for each. `period` and `window` are for files without these keys.
Status read_windows(const ModelFile& file, Config& config, uint32_t period, uint64_t window);
// The window that every layer has. One that is longer than the context of the training is none.
Status read_window(const ModelFile& file, Config& config);
// Leaves the last layers out, which predict further tokens.
Status leave_out_predicting_layers(const ModelFile& file, Config& config);
// The same, or leaves all out but the one of them that is meant: for architectures that run it. It has
// experts where the file has a router for it.
Status choose_layers(const ModelFile& file, Config& config);

// An error for a file without experts, of an architecture that has them.
Status require_experts(const ModelFile& file, const Config& config);
// Shared experts (`fallback`: how many there are in files that do not say), leading dense layers, layers that
// are not run, and the scaling of the weights of the chosen. `groups`: they may be chosen by groups.
Status read_shared_experts(const ModelFile& file, Config& config, uint64_t fallback, bool groups = false);
// Config::gating by "expert_gating_func": softmax or sigmoid, or sigmoid alone.
enum class Gatings : uint8_t { softmax_or_sigmoid, sigmoid };
Status read_gating(const ModelFile& file, Config& config, Gating fallback,
                   Gatings allowed = Gatings::softmax_or_sigmoid);

// Rope of the file: base, dimensions, linear and yarn scaling, and `factors` (one per pair, may be empty).
// `rounded`: the pairs between which yarn blends are whole numbers. `base_key`: the key of the base.
Result<RopeSpec> common_rope(const ModelFile& file, const Config& config, bool half_split,
                             std::span<const float> factors = {}, bool rounded = true,
                             std::string_view base_key = "rope.freq_base");
// The factors that a file has for the whole head, "rope_freqs.weight"; empty without them.
Result<std::vector<float>> rope_factors(const ModelFile& file, const Config& config);
// Longrope's factors, for contexts such as the file is read for; empty without them.
Result<std::vector<float>> longrope_factors(const ModelFile& file, const Config& config);
// A rope without scaling, whose base has a key for itself. It has as many dimensions as config.rope, or as
// "rope.dimension_count_swa" says.
Result<RopeSpec> local_rope(const ModelFile& file, const Config& config,
                            std::string_view key = "rope.freq_base_swa", float base = 10000.0f);

}  // namespace redline
