// Falcon 7B, 40B and 180B: attention and an FFN of gelu beside each other, behind one layer norm, or in the
// larger ones each behind its own; half-split rope, no biases but those of norms.
#include "arch/arch.h"

namespace redline::archs {

static Result<Config> config(const ModelFile& file) {
    const float eps = RL_TRY(factor(file, "attention.layer_norm_epsilon", 1e-5f));
    Config c = RL_TRY(common_config(file, eps));
    c.rope = RL_TRY(common_rope(file, c, true, {}));
    return c;
}

static void weights(const Config& c, WeightList& w) {
    w.global_matrix("token_embd", c.vocab, c.dim);
    w.global_vector("output_norm", c.dim);
    w.global_vector("output_norm.bias", c.dim);
    w.global_matrix("output", c.vocab, c.dim, "token_embd");
    w.vector("attn_norm", c.dim);
    w.vector("attn_norm.bias", c.dim);
    w.optional_vector("attn_norm_2", c.dim);
    w.optional_vector("attn_norm_2.bias", c.dim);
    w.queries_keys_values();
    w.matrix("attn_output", c.dim, c.q_dim());
    w.matrix("ffn_up", c.ffn_dim, c.dim);
    w.matrix("ffn_down", c.dim, c.ffn_dim);
}

static void build(const Config& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope);
    const Slot x = p.embed(w["token_embd"]);
    for (const LayerWeights& l : w.layers()) {
        const Slot h = p.layer_norm(x, {l["attn_norm"], c.eps}, l["attn_norm.bias"]);
        const Weight own = l["attn_norm_2"];
        const Slot to_attend = own ? p.layer_norm(x, {own, c.eps}, l["attn_norm_2.bias"]) : h;
        const auto qkv = p.group(to_attend, {{{l["attn_q"]}, {l["attn_k"]}, {l["attn_v"]}}}, {});
        const Cache cache = p.cache(c.heads.kv_heads, c.heads.head_dim);
        p.linear_add(x, p.attend(cache, qkv, c.heads, rope, c.attention_scale()), l["attn_output"]);
        const Slot hidden = p.linear(h, l["ffn_up"], {}, {}, Function::gelu_tanh);
        p.linear_add(x, hidden, l["ffn_down"]);
        p.next_layer();
    }
    p.logits(p.layer_norm(x, {w["output_norm"], c.eps}, w["output_norm.bias"]), w["output"], {});
}

extern const Arch falcon = {{"falcon"}, config, weights, build};

}  // namespace redline::archs
