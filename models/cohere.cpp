// Command R and Command A (cohere2): attention and FFN beside each other, behind one layer norm without bias;
// rope on neighbouring pairs. cohere2 has a window and rope on all but every fourth layer, and neither there.
// The largest Command R has layer norms of heads, each head of q and k with a gain of its own.
#include "run/arch.h"

namespace redline::archs {

static Result<Config> config(const ModelFile& file) {
    const float eps = RL_TRY(factor(file, "attention.layer_norm_epsilon", 1e-5f));
    Config c = RL_TRY(common_config(file, eps));
    c.rope = RL_TRY(common_rope(file, c, false, {}));
    c.logit_scale = RL_TRY(factor(file, "logit_scale", 1.0f));
    if (c.logit_scale == 0.0f) c.logit_scale = 1.0f;
    if (file.arch != "cohere2") return c;
    RL_TRY(read_windows(file, c, 4, 4096));
    c.roped = c.windowed;
    return c;
}

static void weights(const Config& c, WeightList& w) {
    w.global_matrix("token_embd", c.vocab, c.dim);
    w.global_vector("output_norm", c.dim);
    w.global_matrix("output", c.vocab, c.dim, "token_embd");
    w.vector("attn_norm", c.dim);
    w.matrix("attn_q", c.q_dim(), c.dim);
    w.matrix("attn_k", c.kv_dim(), c.dim);
    w.matrix("attn_v", c.kv_dim(), c.dim);
    w.matrix("attn_output", c.dim, c.q_dim());
    w.optional_vector("attn_q.bias", c.q_dim());
    w.optional_vector("attn_k.bias", c.kv_dim());
    w.optional_vector("attn_v.bias", c.kv_dim());
    w.optional_vector("attn_output.bias", c.dim);
    w.optional_vector("attn_q_norm", c.q_dim());
    w.optional_vector("attn_k_norm", c.kv_dim());
    w.matrix("ffn_gate", c.ffn_dim, c.dim);
    w.matrix("ffn_up", c.ffn_dim, c.dim);
    w.matrix("ffn_down", c.dim, c.ffn_dim);
}

static void norm_heads(const Config& c, Slot heads, Weight gains, PlanBuilder& p) {
    if (!gains) return;
    p.append(Center{heads, c.heads.head_dim, heads});
    p.append(RmsNorm{heads, {{}, c.eps}, c.heads.head_dim, heads});
    p.append(Multiply{heads, gains});
}

static void build(const Config& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope);
    const Slot x = p.embed(w["token_embd"]);
    for (size_t i = 0; i < c.layers; ++i) {
        const LayerWeights& l = w.layers()[i];
        const Slot centered = p.centered(x);
        const Norm norm{l["attn_norm"], c.eps};
        const auto qkv = p.group(centered,
                                 {{{l["attn_q"], l["attn_q.bias"]},
                                   {l["attn_k"], l["attn_k.bias"]},
                                   {l["attn_v"], l["attn_v.bias"]}}},
                                 norm);
        norm_heads(c, qkv[0], l["attn_q_norm"], p);
        norm_heads(c, qkv[1], l["attn_k_norm"], p);
        const Cache cache = p.cache(c.heads.kv_heads, c.heads.head_dim, c.window_of(i));
        const Slot seen = p.attend(cache, qkv, c.heads, c.has_rope(i) ? rope : kNoRope, c.attention_scale());
        p.linear_add(x, seen, l["attn_output"], l["attn_output.bias"]);
        p.linear_add(x, p.gated(centered, l["ffn_gate"], l["ffn_up"], Act::silu, norm), l["ffn_down"]);
        p.next_layer();
    }
    p.logits(p.centered(x), w["output"], {w["output_norm"], c.eps}, c.logit_scale);
}

extern const Arch cohere = {{"command-r", "cohere2"}, config, weights, build};

}  // namespace redline::archs
