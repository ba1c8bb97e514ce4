// Qwen2 and Qwen2.5, and distillations into them: as llama with biases on q, k and v, rope on half-split
// pairs. seed_oss is the same. So is the text of qwen2vl (qwen25vl in Ollama's files): the sections of its
// rope have positions of their own in images only.
#include "arch/arch.h"

namespace redline::archs {

static Result<Config> config(const ModelFile& file) {
    Config c = RL_TRY(common_config(file));
    c.rope = RL_TRY(common_rope(file, c, true, {}));
    return c;
}

static void weights(const Config& c, WeightList& w) {
    w.embedding_and_output();
    w.vector("attn_norm", c.dim);
    w.queries_keys_values();
    w.matrix("attn_output", c.dim, c.q_dim());
    w.vector("attn_q.bias", c.q_dim());
    w.vector("attn_k.bias", c.kv_dim());
    w.vector("attn_v.bias", c.kv_dim());
    w.vector("ffn_norm", c.dim, "post_attention_norm");
    w.gated_ffn();
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
        p.linear_add(x, p.attend(cache, qkv, c.heads, rope, c.attention_scale()), l["attn_output"]);
        p.linear_add(x, p.gated(x, l["ffn_gate"], l["ffn_up"], Act::silu, {l["ffn_norm"], c.eps}),
                     l["ffn_down"]);
        p.next_layer();
    }
    p.logits(x, w["output"], {w["output_norm"], c.eps});
}

extern const Arch qwen2 = {{"qwen2", "qwen2vl", "qwen25vl", "seed_oss"}, config, weights, build};

}  // namespace redline::archs
