// Granite 3 and 4 without Mamba layers, dense or with experts (granitemoe): llama with factors of embeddings,
// scores, residuals and logits; experts are weighted by a softmax over the logits of the chosen, beside one
// that all tokens share, where the file has it.
#include "run/arch.h"

namespace redline::archs {

static Result<Config> config(const ModelFile& file) {
    Config c = RL_TRY(common_config(file));
    c.rope = RL_TRY(common_rope(file, c, false, {}));
    c.embedding_scale = RL_TRY(factor(file, "embedding_scale", 1.0f));
    c.residual_scale = RL_TRY(factor(file, "residual_scale", 1.0f));
    c.scale = RL_TRY(factor(file, "attention.scale", 0.0f));
    const float divisor = RL_TRY(factor(file, "logit_scale", 1.0f));
    if (divisor > 0.0f) c.logit_scale = 1.0f / divisor;
    RL_TRY(read_shared_experts(file, c, 0));
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
    w.vector("ffn_norm", c.dim);
    if (c.experts == 0) {
        w.matrix("ffn_gate", c.ffn_dim, c.dim);
        w.matrix("ffn_up", c.ffn_dim, c.dim);
        w.matrix("ffn_down", c.dim, c.ffn_dim);
        return;
    }
    w.matrix("ffn_gate_inp", c.experts, c.dim);
    w.experts("ffn_gate_exps", c.experts, c.expert_ffn_dim, c.dim);
    w.experts("ffn_up_exps", c.experts, c.expert_ffn_dim, c.dim);
    w.experts("ffn_down_exps", c.experts, c.dim, c.expert_ffn_dim);
    if (c.shared_ffn_dim == 0) return;
    w.matrix("ffn_gate_shexp", c.shared_ffn_dim, c.dim);
    w.matrix("ffn_up_shexp", c.shared_ffn_dim, c.dim);
    w.matrix("ffn_down_shexp", c.dim, c.shared_ffn_dim);
}

static void build(const Config& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope);
    const Slot x = p.embed(w["token_embd"], c.embedding_scale);
    for (const LayerWeights& l : w.layers()) {
        const auto qkv = p.group(x,
                                 {{{l["attn_q"], l["attn_q.bias"]},
                                   {l["attn_k"], l["attn_k.bias"]},
                                   {l["attn_v"], l["attn_v.bias"]}}},
                                 {l["attn_norm"], c.eps});
        const Cache cache = p.cache(c.heads.kv_heads, c.heads.head_dim);
        const Slot seen = p.attend(cache, qkv, c.heads, rope, c.attention_scale());
        p.add(x, p.linear(seen, l["attn_output"], {}, l["attn_output.bias"]), c.residual_scale);
        const Norm norm{l["ffn_norm"], c.eps};
        if (c.experts == 0) {
            const Slot hidden = p.gated(x, l["ffn_gate"], l["ffn_up"], Act::silu, norm);
            p.add(x, p.linear(hidden, l["ffn_down"]), c.residual_scale);
        } else {
            const Slot h = p.rms_norm(x, norm);
            const auto routing = p.route(h, l["ffn_gate_inp"], c.experts_used, Gating::softmax_of_selected,
                                         false, c.residual_scale);
            p.experts_add(x, h, routing, {l["ffn_gate_exps"], l["ffn_up_exps"], l["ffn_down_exps"]});
            if (c.shared_ffn_dim > 0) {
                const Slot hidden = p.gated(h, l["ffn_gate_shexp"], l["ffn_up_shexp"], Act::silu);
                p.add(x, p.linear(hidden, l["ffn_down_shexp"]), c.residual_scale);
            }
        }
        p.next_layer();
    }
    p.logits(x, w["output"], {w["output_norm"], c.eps}, c.logit_scale);
}

extern const Arch granite = {{"granite", "granitemoe"}, config, weights, build};

}  // namespace redline::archs
