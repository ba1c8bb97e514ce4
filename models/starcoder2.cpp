// StarCoder 2: layer norms, biases everywhere, half-split rope, and an FFN of gelu, which has no gate.
#include "arch/arch.h"
#include "arch/blocks.h"

namespace redline::archs {

static Result<Config> config(const ModelFile& file) {
    const float eps = RL_TRY(factor(file, "attention.layer_norm_epsilon", 1e-5f));
    Config c = RL_TRY(common_config(file, eps));
    c.rope = RL_TRY(common_rope(file, c, true));
    return c;
}

static void weights(const Config& c, WeightList& w) {
    w.embedding_and_output();
    w.global_vector("output_norm.bias", c.dim);
    w.layer_norm("attn_norm");
    w.attention({.biases = Presence::optional, .output_bias = Presence::optional, .norm = false});
    w.layer_norm("ffn_norm");
    w.plain_ffn();
    w.optional_vector("ffn_up.bias", c.ffn_dim);
    w.optional_vector("ffn_down.bias", c.dim);
}

static void build(const Config& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope);
    const Slot x = p.embed(w["token_embd"]);
    for (const LayerWeights& l : w.layers()) {
        add_attention(l, x, attend(c, l, layer_norm(c, l, x, "attn_norm", p), {}, {rope}, p), p);
        add_plain_ffn(l, x, layer_norm(c, l, x, "ffn_norm", p), {}, Function::gelu_tanh, p);
        p.next_layer();
    }
    p.logits(layer_norm(c, w, x, "output_norm", p), w["output"], {});
}

extern const Arch starcoder2 = make_arch<config, weights, build>({"starcoder2"});

}  // namespace redline::archs
