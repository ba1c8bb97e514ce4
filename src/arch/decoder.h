// Decoders as Llama's: attention, then an FFN or experts, each behind a norm and added to the residual. Their
// architectures differ in a row of a table, which their files in models/ have, and in few further keys.
#pragma once

#include "arch/arch.h"

#include <string_view>

namespace redline {

// Norms of queries and keys.
enum class HeadNorm : uint8_t { none, of_heads, of_heads_behind_rope, of_rows };

// The layers that have experts.
enum class ExpertLayers : uint8_t {
    none,
    all_if_any,  // every layer, in files that have experts
    all,
    by_keys  // by the file: leading dense layers, every n-th layer, shared experts, groups, layers not run
};

// The weights of the experts that are chosen.
enum class Weighting : uint8_t { as_chosen, normalised, by_keys };

struct DecoderKind {
    std::string_view name;      // general.architecture
    bool half_split = false;    // rope on pairs half a head apart, in place of neighbours
    bool rope_factors = false;  // the file may have factors of the rope
    Presence biases = Presence::none;
    Presence output_bias = Presence::none;
    HeadNorm head_norm = HeadNorm::none;
    std::string_view ffn_norm = {};          // another name of the norm before the FFN
    std::optional<Function> plain_ffn = {};  // the function of an FFN without a gate

    ExpertLayers experts = ExpertLayers::none;
    Gating gating = Gating::softmax;  // where the file does not say, with `by_keys`
    Weighting weighting = Weighting::normalised;
    bool gated_shared = false;  // the shared expert is weighted by the sigmoid of a router for it alone

    Status (*read)(const ModelFile& file, Config& config) = nullptr;  // reads further keys
};

struct Decoder : Config {
    DecoderKind kind;
};

Result<Decoder> decoder_config(const ModelFile& file, std::span<const DecoderKind> kinds);
void decoder_weights(const Decoder& c, WeightList& w);
void build_decoder(const Decoder& c, const WeightSet& w, PlanBuilder& p);

template <const auto& kKinds>
Result<Decoder> read_decoder(const ModelFile& file) {
    return decoder_config(file, kKinds);
}

// The Arch of a table of kinds.
template <const auto& kKinds>
Arch decoder_arch() {
    std::vector<std::string> names;
    for (const DecoderKind& kind : kKinds) names.emplace_back(kind.name);
    return make_arch<read_decoder<kKinds>, decoder_weights, build_decoder>(std::move(names));
}

}  // namespace redline
