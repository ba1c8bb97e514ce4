// MiniMax M2: norms of whole rows of queries and keys, experts chosen by sigmoid.
#include "arch/decoder.h"

namespace redline::archs {

static constexpr DecoderKind kKinds[] = {
    {.name = "minimax-m2",
     .half_split = true,
     .biases = Presence::optional,
     .output_bias = Presence::optional,
     .head_norm = HeadNorm::of_rows,
     .experts = ExpertLayers::by_keys,
     .gating = Gating::sigmoid,
     .weighting = Weighting::normalised},
};

extern const Arch minimax = decoder_arch<kKinds>();

}  // namespace redline::archs
