// Decoders whose attention is gated by a product of its input. A gate is for an element or for a whole head,
// as the file has it; heads and FFNs may differ by layer; experts stand behind leading dense layers, and
// their gates and ups may be limited. Layers with a window have a rope for themselves, or are the only ones
// with rope.
#pragma once

#include "arch/arch.h"

#include <string_view>

namespace redline {

struct GatedKind {
    std::string_view name;          // general.architecture
    bool half_split = true;         // rope on pairs half a head apart, in place of neighbours
    GateOf gate = GateOf::sigmoid;  // what an output is multiplied by
    bool experts = true;            // the file has to have experts
    bool norms_behind = false;      // behind both blocks, beside those before them
    float eps_behind = 0.0f;        // of these norms; 0: as of the others
    bool normed_embedding = false;
    // Reads ropes and further keys; windows and Config::rope are read already.
    Status (*read)(const ModelFile& file, Config& config) = nullptr;
};

struct GatedDecoder : Config {
    GatedKind kind;
    std::vector<bool> gates_of_heads = {};  // by layer: a gate is for a whole head
    // By layer: the largest value of gates and ups, of experts and of shared ones; 0 or empty: there is none.
    std::vector<float> expert_limits = {}, shared_limits = {};
};

// The rope that was read is that of layers with a window, and the others have none.
void give_rope_to_windows_only(Config& config);

Result<GatedDecoder> gated_decoder_config(const ModelFile& file, const GatedKind& kind);
void gated_decoder_weights(const GatedDecoder& c, WeightList& w);
void build_gated_decoder(const GatedDecoder& c, const WeightSet& w, PlanBuilder& p);

template <const GatedKind& kKind>
Result<GatedDecoder> read_gated_decoder(const ModelFile& file) {
    return gated_decoder_config(file, kKind);
}

// The Arch of one kind.
template <const GatedKind& kKind>
Arch gated_decoder_arch() {
    return make_arch<read_gated_decoder<kKind>, gated_decoder_weights, build_gated_decoder>(
        {std::string(kKind.name)});
}

}  // namespace redline
