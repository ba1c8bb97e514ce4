// Qwen3 with experts (30B-A3B, 235B-A22B, Coder): qwen3's attention; every layer routes each token to the
// best experts by softmax over all of them, renormalised.
#include "arch/arch.h"

namespace redline::archs {

static Result<Config> config(const ModelFile& file) {
    Config c = RL_TRY(common_config(file));
    if (c.experts == 0) return error("{}: qwen3moe.expert_count is missing or zero", file.gguf.path());
    c.rope = RL_TRY(common_rope(file, c, true, {}));
    return c;
}

static void weights(const Config& c, WeightList& w) {
    w.embedding_and_output();
    w.vector("attn_norm", c.dim);
    w.queries_keys_values();
    w.vector("attn_q_norm", c.heads.head_dim);
    w.vector("attn_k_norm", c.heads.head_dim);
    w.matrix("attn_output", c.dim, c.q_dim());
    w.vector("ffn_norm", c.dim);
    w.matrix("ffn_gate_inp", c.experts, c.dim);
    w.gated_experts();
}

static void build(const Config& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope);
    const Slot x = p.embed(w["token_embd"]);
    for (const LayerWeights& l : w.layers()) {
        const auto qkv = p.group(x, {{{l["attn_q"]}, {l["attn_k"]}, {l["attn_v"]}}}, {l["attn_norm"], c.eps});
        const Cache cache = p.cache(c.heads.kv_heads, c.heads.head_dim);
        const Slot attended = p.attend(cache, qkv, c.heads, rope, c.attention_scale(),
                                       {l["attn_q_norm"], c.eps}, {l["attn_k_norm"], c.eps});
        p.linear_add(x, attended, l["attn_output"]);
        p.expert_block(x, {l["ffn_norm"], c.eps}, {l["ffn_gate_inp"], c.experts_used},
                       {l["ffn_gate_exps"], l["ffn_up_exps"], l["ffn_down_exps"]});
        p.next_layer();
    }
    p.logits(x, w["output"], {w["output_norm"], c.eps});
}

extern const Arch qwen3moe = {{"qwen3moe"}, config, weights, build};

}  // namespace redline::archs
