// Qwen2 to Qwen3, dense and with experts, and distillations into them: Llama with rope on half-split pairs,
// and with biases (Qwen2) or norms of the heads of queries and keys (Qwen3). The text parts of their VL
// models are the same: the sections of their rope have different positions in images only, and what vision
// adds to early layers comes with images. Seed-OSS is Qwen2.
#include "arch/decoder.h"

namespace redline::archs {

static constexpr DecoderKind qwen2(std::string_view name) {
    return {
        .name = name, .half_split = true, .biases = Presence::required, .ffn_norm = "post_attention_norm"};
}

static constexpr DecoderKind qwen3(std::string_view name, ExpertLayers experts) {
    return {.name = name, .half_split = true, .head_norm = HeadNorm::of_heads, .experts = experts};
}

static constexpr DecoderKind kKinds[] = {
    qwen2("qwen2"),
    qwen2("qwen2vl"),
    qwen2("qwen25vl"),
    qwen2("seed_oss"),
    qwen3("qwen3", ExpertLayers::none),
    qwen3("qwen3vl", ExpertLayers::none),
    {.name = "qwen2moe",
     .half_split = true,
     .biases = Presence::optional,
     .output_bias = Presence::optional,
     .experts = ExpertLayers::by_keys,
     .weighting = Weighting::as_chosen,
     .gated_shared = true},
    qwen3("qwen3moe", ExpertLayers::all),
    {.name = "qwen3vlmoe",
     .half_split = true,
     .biases = Presence::optional,
     .output_bias = Presence::optional,
     .head_norm = HeadNorm::of_heads,
     .experts = ExpertLayers::by_keys},
};

extern const Arch qwen = decoder_arch<kKinds>();

}  // namespace redline::archs
