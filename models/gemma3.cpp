// Gemma 3, the text part: gemma2 with norms of q and k in place of the softcap of scores, windows on all but
// every sixth layer, and another rope base where there is one.
#include "arch/arch.h"

#include <cmath>

namespace redline::archs {

static Result<Config> config(const ModelFile& file) {
    Config c = RL_TRY(common_config(file, 1e-6f));
    c.embedding_scale = std::sqrt(float(c.dim));
    c.rope = RL_TRY(common_rope(file, c, true, {}));
    c.local_rope = RL_TRY(local_rope(file, c, "rope.freq_base_swa", 10000.0f));
    RL_TRY(read_windows(file, c, 6, 0));
    c.logit_softcap = RL_TRY(factor(file, "final_logit_softcapping", 0.0f));
    // The 27B scales its queries by the width of a head of the embedding; GGUF has no key for that.
    if (c.layers == 62) c.scale = 1.0f / std::sqrt(float(c.dim) / float(c.heads.heads));
    return c;
}

static void weights(const Config& c, WeightList& w) {
    w.embedding_and_output();
    w.vector("attn_norm", c.dim);
    w.queries_keys_values();
    w.vector("attn_q_norm", c.heads.head_dim);
    w.vector("attn_k_norm", c.heads.head_dim);
    w.matrix("attn_output", c.dim, c.q_dim());
    w.vector("post_attention_norm", c.dim);
    w.vector("ffn_norm", c.dim);
    w.gated_ffn();
    w.vector("post_ffw_norm", c.dim);
}

static void build(const Config& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope), local = p.add_rope(c.local_rope);
    const Slot x = p.embed(w["token_embd"], c.embedding_scale);
    for (size_t i = 0; i < c.layers; ++i) {
        const LayerWeights& l = w.layers()[i];
        const auto qkv = p.group(x, {{{l["attn_q"]}, {l["attn_k"]}, {l["attn_v"]}}}, {l["attn_norm"], c.eps});
        const Cache cache = p.cache(c.heads.kv_heads, c.heads.head_dim, c.window_of(i));
        const Slot seen = p.attend(cache, qkv, c.heads, c.is_windowed(i) ? local : rope, c.attention_scale(),
                                   {l["attn_q_norm"], c.eps}, {l["attn_k_norm"], c.eps});
        p.add(x, p.linear(seen, l["attn_output"]), 1.0f, {l["post_attention_norm"], c.eps});
        const Slot hidden = p.gated(x, l["ffn_gate"], l["ffn_up"], Act::gelu_tanh, {l["ffn_norm"], c.eps});
        p.add(x, p.linear(hidden, l["ffn_down"]), 1.0f, {l["post_ffw_norm"], c.eps});
        p.next_layer();
    }
    p.logits(x, w["output"], {w["output_norm"], c.eps}, 1.0f, c.logit_softcap);
}

extern const Arch gemma3 = {{"gemma3"}, config, weights, build};

}  // namespace redline::archs
