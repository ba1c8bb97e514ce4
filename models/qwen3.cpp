// Dense Qwen3: pre-norm, per-head norms of q and k before the half-split rope, SwiGLU. The text of
// qwen3vl is the same: the sections of its rope have positions of their own in images only, and what its
// vision adds to early layers comes with images.
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
    w.vector("attn_q_norm", c.heads.head_dim);
    w.vector("attn_k_norm", c.heads.head_dim);
    w.matrix("attn_output", c.dim, c.q_dim());
    w.vector("ffn_norm", c.dim);
    w.gated_ffn();
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
        p.linear_add(x, p.gated(x, l["ffn_gate"], l["ffn_up"], Act::silu, {l["ffn_norm"], c.eps}),
                     l["ffn_down"]);
        p.next_layer();
    }
    p.logits(x, w["output"], {w["output_norm"], c.eps});
}

extern const Arch qwen3 = {{"qwen3", "qwen3vl"}, config, weights, build};

}  // namespace redline::archs
