// Gemma 2: gemma with norms before and behind each block, softcaps of scores and of logits, and windows on
// every other layer, the first one included.
#include "arch/arch.h"

#include <cmath>

namespace redline::archs {

static Result<Config> config(const ModelFile& file) {
    Config c = RL_TRY(common_config(file));
    c.embedding_scale = std::sqrt(float(c.dim));
    c.rope = RL_TRY(common_rope(file, c, true, {}));
    RL_TRY(read_windows(file, c, 2, 4096));
    c.attention_softcap = RL_TRY(factor(file, "attn_logit_softcapping", 50.0f));
    c.logit_softcap = RL_TRY(factor(file, "final_logit_softcapping", 30.0f));
    // The 27B scales its queries by the width of a head of the embedding; GGUF has no key for that.
    if (c.layers == 46) c.scale = 1.0f / std::sqrt(float(c.dim) / float(c.heads.heads));
    return c;
}

static void weights(const Config& c, WeightList& w) {
    w.embedding_and_output();
    w.vector("attn_norm", c.dim);
    w.queries_keys_values();
    w.matrix("attn_output", c.dim, c.q_dim());
    w.vector("post_attention_norm", c.dim);
    w.vector("ffn_norm", c.dim);
    w.gated_ffn();
    w.vector("post_ffw_norm", c.dim);
}

static void build(const Config& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope);
    const Slot x = p.embed(w["token_embd"], c.embedding_scale);
    for (size_t i = 0; i < c.layers; ++i) {
        const LayerWeights& l = w.layers()[i];
        const auto qkv = p.group(x, {{{l["attn_q"]}, {l["attn_k"]}, {l["attn_v"]}}}, {l["attn_norm"], c.eps});
        const Cache cache = p.cache(c.heads.kv_heads, c.heads.head_dim, c.window_of(i));
        const Slot seen =
            p.attend(cache, qkv, c.heads, rope, c.attention_scale(), {}, {}, c.attention_softcap);
        p.add(x, p.linear(seen, l["attn_output"]), 1.0f, {l["post_attention_norm"], c.eps});
        const Slot hidden = p.gated(x, l["ffn_gate"], l["ffn_up"], Act::gelu_tanh, {l["ffn_norm"], c.eps});
        p.add(x, p.linear(hidden, l["ffn_down"]), 1.0f, {l["post_ffw_norm"], c.eps});
        p.next_layer();
    }
    p.logits(x, w["output"], {w["output_norm"], c.eps}, 1.0f, c.logit_softcap);
}

extern const Arch gemma2 = {{"gemma2"}, config, weights, build};

}  // namespace redline::archs
