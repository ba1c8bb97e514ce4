// Phi-3, Phi-3.5, Phi-4 and Phi-4-mini: queries, keys and values in one tensor, gate and up in another,
// half-split rope over part of a head, and longrope factors that depend on the context in use.
#include "arch/arch.h"
#include "arch/blocks.h"

namespace redline::archs {

static Result<Config> config(const ModelFile& file) {
    Config c = RL_TRY(common_config(file));
    c.rope = RL_TRY(common_rope(file, c, true, RL_TRY(longrope_factors(file, c))));
    return c;
}

static void weights(const Config& c, WeightList& w) {
    w.embedding_and_output();
    w.attention();
    w.vector("ffn_norm", c.dim);
    w.gated_ffn_in_one();
    w.ignore_longrope_factors();
}

static void build(const Config& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope);
    const Slot x = p.embed(w["token_embd"]);
    for (const LayerWeights& l : w.layers()) {
        add_attention(l, x, attend(c, l, x, c.norm(l["attn_norm"]), {rope}, p), p);
        add_gated_ffn(l, x, c.norm(l["ffn_norm"]), p);
        p.next_layer();
    }
    add_logits(c, w, x, p);
}

extern const Arch phi3 = make_arch<config, weights, build>({"phi3"});

}  // namespace redline::archs
