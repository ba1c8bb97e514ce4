// Hunyuan, dense and with experts (A13B): norms of the heads of queries and keys behind the rope. The
// converter puts the scaling of the rope into its base.
#include "arch/decoder.h"

namespace redline::archs {

static constexpr DecoderKind kKinds[] = {
    {.name = "hunyuan-dense", .half_split = true, .head_norm = HeadNorm::of_heads_behind_rope},
    {.name = "hunyuan-moe",
     .half_split = true,
     .biases = Presence::optional,
     .output_bias = Presence::optional,
     .head_norm = HeadNorm::of_heads_behind_rope,
     .experts = ExpertLayers::by_keys},
};

extern const Arch hunyuan = decoder_arch<kKinds>();

}  // namespace redline::archs
