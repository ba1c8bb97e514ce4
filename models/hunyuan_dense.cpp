// Dense Hunyuan: qwen3 with the norms of q and k behind the rope. The converter has the scaling of its rope
// in the base.
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

static Slot attention(const Config& c, const LayerWeights& l, Slot x, uint32_t rope, PlanBuilder& p) {
    const HeadShape& heads = c.heads;
    const auto qkv = p.group(x, {{{l["attn_q"]}, {l["attn_k"]}, {l["attn_v"]}}}, {l["attn_norm"], c.eps});
    p.append(Rope{qkv[0], heads.heads, heads.head_dim, rope});
    p.append(Rope{qkv[1], heads.kv_heads, heads.head_dim, rope});
    return p.attend(p.cache(heads.kv_heads, heads.head_dim), qkv, heads, kNoRope, c.attention_scale(),
                    {l["attn_q_norm"], c.eps}, {l["attn_k_norm"], c.eps});
}

static void build(const Config& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope);
    const Slot x = p.embed(w["token_embd"]);
    for (const LayerWeights& l : w.layers()) {
        p.linear_add(x, attention(c, l, x, rope, p), l["attn_output"]);
        p.linear_add(x, p.gated(x, l["ffn_gate"], l["ffn_up"], Act::silu, {l["ffn_norm"], c.eps}),
                     l["ffn_down"]);
        p.next_layer();
    }
    p.logits(x, w["output"], {w["output_norm"], c.eps});
}

extern const Arch hunyuan_dense = {{"hunyuan-dense"}, config, weights, build};

}  // namespace redline::archs
