// StarCoder 2: layer norms, biases everywhere, half-split rope, and an FFN of gelu, which has no gate.
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
    w.queries_keys_values();
    w.matrix("attn_output", c.dim, c.q_dim());
    w.optional_biases();
    w.optional_vector("attn_output.bias", c.dim);
    w.vector("ffn_norm", c.dim);
    w.vector("ffn_norm.bias", c.dim);
    w.matrix("ffn_up", c.ffn_dim, c.dim);
    w.matrix("ffn_down", c.dim, c.ffn_dim);
    w.optional_vector("ffn_up.bias", c.ffn_dim);
    w.optional_vector("ffn_down.bias", c.dim);
}

static void build(const Config& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope);
    const Slot x = p.embed(w["token_embd"]);
    for (const LayerWeights& l : w.layers()) {
        const Slot h = p.layer_norm(x, {l["attn_norm"], c.eps}, l["attn_norm.bias"]);
        const auto qkv = p.group(h,
                                 {{{l["attn_q"], l["attn_q.bias"]},
                                   {l["attn_k"], l["attn_k.bias"]},
                                   {l["attn_v"], l["attn_v.bias"]}}},
                                 {});
        const Cache cache = p.cache(c.heads.kv_heads, c.heads.head_dim);
        const Slot seen = p.attend(cache, qkv, c.heads, rope, c.attention_scale());
        p.linear_add(x, seen, l["attn_output"], l["attn_output.bias"]);
        const Slot g = p.layer_norm(x, {l["ffn_norm"], c.eps}, l["ffn_norm.bias"]);
        const Slot hidden = p.linear(g, l["ffn_up"], {}, l["ffn_up.bias"], Function::gelu_tanh);
        p.linear_add(x, hidden, l["ffn_down"], l["ffn_down.bias"]);
        p.next_layer();
    }
    p.logits(p.layer_norm(x, {w["output_norm"], c.eps}, w["output_norm.bias"]), w["output"], {});
}

extern const Arch starcoder2 = {{"starcoder2"}, config, weights, build};

}  // namespace redline::archs
