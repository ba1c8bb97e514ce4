// Phi-3.5-MoE and its smaller relatives: layer norms and matrices with biases, the head's included, rope on
// halves with longrope's factors, and two experts that are chosen and weighted one after the other.
#include "arch/arch.h"
#include "arch/blocks.h"

namespace redline::archs {

static Result<Config> config(const ModelFile& file) {
    Config c = RL_TRY(common_config(file));
    RL_TRY(require_experts(file, c));
    c.rope = RL_TRY(common_rope(file, c, true, RL_TRY(longrope_factors(file, c))));
    c.gating = Gating::sparse_mixer;
    return c;
}

static void weights(const Config& c, WeightList& w) {
    w.embedding_and_output();
    w.global_vector("output_norm.bias", c.dim);
    w.optional_global_vector("output.bias", c.vocab);
    w.layer_norm("attn_norm");
    w.attention({.biases = Presence::optional, .output_bias = Presence::optional, .norm = false});
    w.layer_norm("ffn_norm");
    w.routed_experts();
    w.ignore_longrope_factors();
}

static void build(const Config& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope);
    const Slot x = p.embed(w["token_embd"]);
    for (const LayerWeights& l : w.layers()) {
        add_attention(l, x, attend(c, l, layer_norm(c, l, x, "attn_norm", p), {}, {rope}, p), p);
        const Slot h = layer_norm(c, l, x, "ffn_norm", p);
        p.experts_add(x, h, route(c, l, h, p), gated_experts(l));
        p.next_layer();
    }
    p.logits(layer_norm(c, w, x, "output_norm", p), w["output"], {});
    if (w["output.bias"]) p.append(each::add_bias(p.plan().output, w["output.bias"]));
}

extern const Arch phimoe = make_arch<config, weights, build>({"phimoe"});

}  // namespace redline::archs
