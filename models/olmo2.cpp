// OLMo 2 and 3: norms behind both blocks and none before them, norms of the whole of q and of k, half-split
// rope. OLMo 3 (olmo3 in Ollama's files) has a window on all but every fourth layer, and yarn where there is
// no window.
#include "arch/arch.h"

namespace redline::archs {

static Result<Config> config(const ModelFile& file) {
    Config c = RL_TRY(common_config(file));
    c.rope = RL_TRY(common_rope(file, c, true, {}));
    const float base = RL_TRY(file.meta().real(file.key("rope.freq_base"), 10000.0f));
    c.local_rope = RL_TRY(local_rope(file, c, "rope.freq_base_swa", base));
    RL_TRY(read_windows(file, c, 4, 0));
    return c;
}

static void weights(const Config& c, WeightList& w) {
    w.embedding_and_output();
    w.queries_keys_values();
    w.vector("attn_q_norm", c.q_dim());
    w.vector("attn_k_norm", c.kv_dim());
    w.matrix("attn_output", c.dim, c.q_dim());
    w.vector("post_attention_norm", c.dim);
    w.gated_ffn();
    w.vector("post_ffw_norm", c.dim);
}

static void build(const Config& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope), local = p.add_rope(c.local_rope);
    const Slot x = p.embed(w["token_embd"]);
    for (size_t i = 0; i < c.layers; ++i) {
        const LayerWeights& l = w.layers()[i];
        const auto qkv = p.group(x, {{{l["attn_q"]}, {l["attn_k"]}, {l["attn_v"]}}}, {});
        p.append(RmsNorm{qkv[0], {l["attn_q_norm"], c.eps}, c.q_dim(), qkv[0]});
        p.append(RmsNorm{qkv[1], {l["attn_k_norm"], c.eps}, c.kv_dim(), qkv[1]});
        const Cache cache = p.cache(c.heads.kv_heads, c.heads.head_dim, c.window_of(i));
        const Slot seen = p.attend(cache, qkv, c.heads, c.is_windowed(i) ? local : rope, c.attention_scale());
        p.add(x, p.linear(seen, l["attn_output"]), 1.0f, {l["post_attention_norm"], c.eps});
        const Slot hidden = p.gated(x, l["ffn_gate"], l["ffn_up"], Act::silu);
        p.add(x, p.linear(hidden, l["ffn_down"]), 1.0f, {l["post_ffw_norm"], c.eps});
        p.next_layer();
    }
    p.logits(x, w["output"], {w["output_norm"], c.eps});
}

extern const Arch olmo2 = {{"olmo2", "olmo3"}, config, weights, build};

}  // namespace redline::archs
