// Ling 2 and Ring 2: norms of the heads of queries and keys, experts chosen by sigmoid and by groups.
#include "arch/decoder.h"

namespace redline::archs {

static constexpr DecoderKind kKinds[] = {
    {.name = "bailingmoe2",
     .half_split = true,
     .biases = Presence::optional,
     .output_bias = Presence::optional,
     .head_norm = HeadNorm::of_heads,
     .experts = ExpertLayers::by_keys,
     .gating = Gating::sigmoid,
     .weighting = Weighting::by_keys},
};

extern const Arch bailing = decoder_arch<kKinds>();

}  // namespace redline::archs
