// Falcon 7B, 40B and 180B: attention and an FFN of gelu beside each other, behind one layer norm, or in the
// larger models each behind one for itself; half-split rope, no biases but those of norms.
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
    w.optional_vector("attn_norm_2", c.dim);
    w.optional_vector("attn_norm_2.bias", c.dim);
    w.attention({.norm = false});
    w.plain_ffn();
}

static void build(const Config& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope);
    const Slot x = p.embed(w["token_embd"]);
    for (const LayerWeights& l : w.layers()) {
        const Slot h = layer_norm(c, l, x, "attn_norm", p);
        const Slot to_attend = l["attn_norm_2"] ? layer_norm(c, l, x, "attn_norm_2", p) : h;
        add_attention(l, x, attend(c, l, to_attend, {}, {rope}, p), p);
        add_plain_ffn(l, x, h, {}, Function::gelu_tanh, p);
        p.next_layer();
    }
    p.logits(layer_norm(c, w, x, "output_norm", p), w["output"], {});
}

extern const Arch falcon = make_arch<config, weights, build>({"falcon"});

}  // namespace redline::archs
