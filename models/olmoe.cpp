// OLMoE: norms of whole rows of queries and keys, experts in every layer, weighted as they are chosen.
#include "arch/decoder.h"

namespace redline::archs {

static constexpr DecoderKind kKinds[] = {
    {.name = "olmoe",
     .half_split = true,
     .biases = Presence::optional,
     .output_bias = Presence::optional,
     .head_norm = HeadNorm::of_rows,
     .experts = ExpertLayers::by_keys,
     .gating = Gating::softmax,
     .weighting = Weighting::as_chosen},
};

extern const Arch olmoe = decoder_arch<kKinds>();

}  // namespace redline::archs
