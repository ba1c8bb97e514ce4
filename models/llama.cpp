// Llama 1 to 3.x, Mistral, TinyLlama, SmolLM and their kin, dense or with experts (Mixtral). Rope is on
// neighbouring pairs: the converter has permuted queries and keys for it. mistral3 (Ministral 3) has queries
// that grow with the position, on yarn; smollm3 has no rope on every fourth layer; the FFN of arcee (AFM) is
// of squared relu and has no gate. Mistral 7B v0.1 was trained with a window: llama.cpp ignores the key,
// transformers does not.
#include "arch/decoder.h"

namespace redline::archs {

static Status read_smollm3(const ModelFile& file, Config& c) {
    RL_TRY(read_window(file, c));
    for (uint32_t i = 0; i < c.layers; ++i) c.roped.push_back((i + 1) % 4 != 0);
    return {};
}

// Queries grow with their rope, which is over the whole head.
static Status read_mistral3(const ModelFile& file, Config& c) {
    RL_TRY(read_window(file, c));
    c.query_rope = c.rope;
    c.query_rope.growth = RL_TRY(factor(file, "attention.temperature_scale", 0.0f));
    c.query_rope.period =
        RL_TRY(file.meta().integer(file.key("rope.scaling.original_context_length"), c.train_context));
    if (c.query_rope.growth > 0.0 &&
        (c.query_rope.period == 0 || 2 * c.rope.inverse_frequency.size() != c.heads.head_dim))
        return error("{}: {} wants an original context and a rope over the whole head", file.gguf.path(),
                     file.key("attention.temperature_scale"));
    return {};
}

static constexpr DecoderKind kind(std::string_view name, Status (*read)(const ModelFile&, Config&)) {
    return {.name = name,
            .rope_factors = true,
            .biases = Presence::optional,
            .output_bias = Presence::optional,
            .experts = ExpertLayers::all_if_any,
            .read = read};
}

static constexpr DecoderKind kKinds[] = {
    kind("llama", read_window),
    kind("mistral3", read_mistral3),
    kind("smollm3", read_smollm3),
    {.name = "arcee", .rope_factors = true, .plain_ffn = Function::squared_relu},
};

extern const Arch llama = decoder_arch<kKinds>();

}  // namespace redline::archs
