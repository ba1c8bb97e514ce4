// ERNIE 4.5, dense and with experts: Llama, with experts behind leading dense layers and shared ones.
#include "arch/decoder.h"

namespace redline::archs {

static constexpr DecoderKind kKinds[] = {
    {.name = "ernie4_5",
     .rope_factors = true,
     .biases = Presence::optional,
     .output_bias = Presence::optional,
     .experts = ExpertLayers::all_if_any,
     .read = read_window},
    {.name = "ernie4_5-moe",
     .biases = Presence::optional,
     .output_bias = Presence::optional,
     .experts = ExpertLayers::by_keys},
};

extern const Arch ernie = decoder_arch<kKinds>();

}  // namespace redline::archs
