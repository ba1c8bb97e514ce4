// GLM-4-0414 (9B, 32B): rope on neighbouring pairs of half a head, gate and up in one tensor, norms before
// and behind both blocks.
#include "arch/arch.h"

namespace redline::archs {

static Result<Config> config(const ModelFile& file) {
    Config c = RL_TRY(common_config(file));
    c.rope = RL_TRY(common_rope(file, c, false, {}));
    return c;
}

static void weights(const Config& c, WeightList& w) {
    w.embedding_and_output();
    w.vector("attn_norm", c.dim);
    w.queries_keys_values();
    w.optional_biases();
    w.matrix("attn_output", c.dim, c.q_dim());
    w.vector("post_attention_norm", c.dim);
    w.vector("ffn_norm", c.dim);
    w.rows_of("ffn_gate", "ffn_up", 2 * uint64_t(c.ffn_dim), 0, c.ffn_dim, c.dim);
    w.rows_of("ffn_up", "ffn_up", 2 * uint64_t(c.ffn_dim), c.ffn_dim, c.ffn_dim, c.dim);
    w.matrix("ffn_down", c.dim, c.ffn_dim);
    w.vector("post_ffw_norm", c.dim);
}

static void build(const Config& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope);
    const Slot x = p.embed(w["token_embd"]);
    for (const LayerWeights& l : w.layers()) {
        const auto qkv = p.group(x,
                                 {{{l["attn_q"], l["attn_q.bias"]},
                                   {l["attn_k"], l["attn_k.bias"]},
                                   {l["attn_v"], l["attn_v.bias"]}}},
                                 {l["attn_norm"], c.eps});
        const Cache cache = p.cache(c.heads.kv_heads, c.heads.head_dim);
        const Slot seen = p.attend(cache, qkv, c.heads, rope, c.attention_scale());
        p.add(x, p.linear(seen, l["attn_output"]), 1.0f, {l["post_attention_norm"], c.eps});
        const Slot hidden = p.gated(x, l["ffn_gate"], l["ffn_up"], Act::silu, {l["ffn_norm"], c.eps});
        p.add(x, p.linear(hidden, l["ffn_down"]), 1.0f, {l["post_ffw_norm"], c.eps});
        p.next_layer();
    }
    p.logits(x, w["output"], {w["output_norm"], c.eps});
}

extern const Arch glm4 = {{"glm4"}, config, weights, build};

}  // namespace redline::archs
