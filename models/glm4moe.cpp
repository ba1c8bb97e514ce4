// GLM-4.5 to 4.7 and Air: half-split rope on half a head, the first layers dense, the others with experts
// beside one that all tokens share; the router's bias moves the choice alone. The last layers, which predict
// further tokens, are not run.
#include "arch/arch.h"

namespace redline::archs {

static Result<Config> config(const ModelFile& file) {
    Config c = RL_TRY(common_config(file));
    if (c.experts == 0) return error("{}: {} is missing or zero", file.gguf.path(), file.key("expert_count"));
    c.rope = RL_TRY(common_rope(file, c, true, {}));
    RL_TRY(read_shared_experts(file, c, 1));
    const uint64_t gating = RL_TRY(file.meta().integer(file.key("expert_gating_func"), 2));
    if (gating != 2)
        return error("{}: {} is {}, 2 (sigmoid) expected", file.gguf.path(), file.key("expert_gating_func"),
                     gating);
    return c;
}

static void weights(const Config& c, WeightList& w) {
    w.embedding_and_output();
    w.vector("attn_norm", c.dim);
    w.queries_keys_values();
    w.optional_biases();
    w.optional_vector("attn_q_norm", c.heads.head_dim);
    w.optional_vector("attn_k_norm", c.heads.head_dim);
    w.matrix("attn_output", c.dim, c.q_dim());
    w.vector("post_attention_norm", c.dim);
    w.in_layers(0, c.dense_layers);
    w.gated_ffn();
    w.in_layers(c.dense_layers, c.layers);
    w.matrix("ffn_gate_inp", c.experts, c.dim);
    w.optional_vector("exp_probs_b.bias", c.experts);
    w.gated_experts();
    w.shared_expert();
    w.ignore_unused_layers();
}

static void build(const Config& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope);
    const Slot x = p.embed(w["token_embd"]);
    for (size_t i = 0; i < c.layers; ++i) {
        const LayerWeights& l = w.layers()[i];
        const auto qkv = p.group(x,
                                 {{{l["attn_q"], l["attn_q.bias"]},
                                   {l["attn_k"], l["attn_k.bias"]},
                                   {l["attn_v"], l["attn_v.bias"]}}},
                                 {l["attn_norm"], c.eps});
        const Cache cache = p.cache(c.heads.kv_heads, c.heads.head_dim);
        const Slot seen = p.attend(cache, qkv, c.heads, rope, c.attention_scale(), {l["attn_q_norm"], c.eps},
                                   {l["attn_k_norm"], c.eps});
        p.linear_add(x, seen, l["attn_output"]);
        const Norm norm{l["post_attention_norm"], c.eps};
        if (i < c.dense_layers) {
            p.linear_add(x, p.gated(x, l["ffn_gate"], l["ffn_up"], Act::silu, norm), l["ffn_down"]);
        } else {
            const Slot h = p.rms_norm(x, norm);
            const auto routing = p.route(h, l["ffn_gate_inp"], c.experts_used, Gating::sigmoid, c.expert_norm,
                                         c.expert_scale, l["exp_probs_b.bias"]);
            p.experts_add(x, h, routing, {l["ffn_gate_exps"], l["ffn_up_exps"], l["ffn_down_exps"]});
            p.linear_add(x, p.gated(h, l["ffn_gate_shexp"], l["ffn_up_shexp"], Act::silu),
                         l["ffn_down_shexp"]);
        }
        p.next_layer();
    }
    p.logits(x, w["output"], {w["output_norm"], c.eps});
}

extern const Arch glm4moe = {{"glm4moe"}, config, weights, build};

}  // namespace redline::archs
