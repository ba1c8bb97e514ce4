// Phi-3.5-MoE and its smaller relatives: layer norms and matrices with biases, the head's included, rope on
// halves with longrope's factors, and two experts that are chosen and weighted one after the other.
#include "arch/arch.h"

namespace redline::archs {

static Result<Config> config(const ModelFile& file) {
    Config c = RL_TRY(common_config(file));
    if (c.experts == 0) return error("{}: {} is missing or zero", file.gguf.path(), file.key("expert_count"));
    const std::vector<float> factors = RL_TRY(longrope_factors(file, c));
    c.rope = RL_TRY(common_rope(file, c, true, factors));
    return c;
}

static void weights(const Config& c, WeightList& w) {
    w.global_matrix("token_embd", c.vocab, c.dim);
    w.global_vector("output_norm", c.dim);
    w.global_vector("output_norm.bias", c.dim);
    w.global_matrix("output", c.vocab, c.dim, "token_embd");
    w.optional_global_vector("output.bias", c.vocab);
    w.vector("attn_norm", c.dim);
    w.vector("attn_norm.bias", c.dim);
    w.queries_keys_values();
    w.matrix("attn_output", c.dim, c.q_dim());
    w.optional_biases();
    w.optional_vector("attn_output.bias", c.dim);
    w.vector("ffn_norm", c.dim);
    w.vector("ffn_norm.bias", c.dim);
    w.matrix("ffn_gate_inp", c.experts, c.dim);
    w.gated_experts();
    w.ignore("rope_factors_long.weight");
    w.ignore("rope_factors_short.weight");
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
        const auto routing = p.route(g, l["ffn_gate_inp"], c.experts_used, Gating::sparse_mixer, false);
        p.experts_add(x, g, routing, {l["ffn_gate_exps"], l["ffn_up_exps"], l["ffn_down_exps"]});
        p.next_layer();
    }
    p.logits(p.layer_norm(x, {w["output_norm"], c.eps}, w["output_norm.bias"]), w["output"], {});
    if (w["output.bias"]) p.append(AddBias{p.plan().output, w["output.bias"]});
}

extern const Arch phimoe = {{"phimoe"}, config, weights, build};

}  // namespace redline::archs
