// Phi-3, Phi-3.5, Phi-4 and Phi-4-mini: q/k/v fused in one tensor, gate and up in another, half-split rope
// over part of a head, and longrope factors that depend on the context in use.
#include "arch/arch.h"

namespace redline::archs {

static Result<Config> config(const ModelFile& file) {
    Config c = RL_TRY(common_config(file));
    const std::vector<float> factors = RL_TRY(longrope_factors(file, c));
    c.rope = RL_TRY(common_rope(file, c, true, factors));
    return c;
}

static void weights(const Config& c, WeightList& w) {
    w.embedding_and_output();
    w.vector("attn_norm", c.dim);
    w.queries_keys_values();  // in most files in one tensor
    w.matrix("attn_output", c.dim, c.q_dim());
    w.vector("ffn_norm", c.dim);
    w.rows_of("ffn_gate", "ffn_up", 2 * uint64_t(c.ffn_dim), 0, c.ffn_dim, c.dim);
    w.rows_of("ffn_up", "ffn_up", 2 * uint64_t(c.ffn_dim), c.ffn_dim, c.ffn_dim, c.dim);
    w.matrix("ffn_down", c.dim, c.ffn_dim);
    w.ignore("rope_factors_long.weight");
    w.ignore("rope_factors_short.weight");
}

static void build(const Config& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope);
    const Slot x = p.embed(w["token_embd"]);
    for (const LayerWeights& l : w.layers()) {
        const auto qkv = p.group(x, {{{l["attn_q"]}, {l["attn_k"]}, {l["attn_v"]}}}, {l["attn_norm"], c.eps});
        const Cache cache = p.cache(c.heads.kv_heads, c.heads.head_dim);
        p.linear_add(x, p.attend(cache, qkv, c.heads, rope, c.attention_scale()), l["attn_output"]);
        p.linear_add(x, p.gated(x, l["ffn_gate"], l["ffn_up"], Act::silu, {l["ffn_norm"], c.eps}),
                     l["ffn_down"]);
        p.next_layer();
    }
    p.logits(x, w["output"], {w["output_norm"], c.eps});
}

extern const Arch phi3 = {{"phi3"}, config, weights, build};

}  // namespace redline::archs
