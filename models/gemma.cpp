// Gemma 1: embeddings times the root of their width, half-split rope, GeGLU. Norms have their weight as the
// converter left it, plus one.
#include "arch/arch.h"

#include <cmath>

namespace redline::archs {

static Result<Config> config(const ModelFile& file) {
    Config c = RL_TRY(common_config(file));
    c.embedding_scale = std::sqrt(float(c.dim));
    c.rope = RL_TRY(common_rope(file, c, true, {}));
    return c;
}

static void weights(const Config& c, WeightList& w) {
    w.embedding_and_output();
    w.vector("attn_norm", c.dim);
    w.queries_keys_values();
    w.matrix("attn_output", c.dim, c.q_dim());
    w.vector("ffn_norm", c.dim);
    w.gated_ffn();
}

static void build(const Config& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope);
    const Slot x = p.embed(w["token_embd"], c.embedding_scale);
    for (const LayerWeights& l : w.layers()) {
        const auto qkv = p.group(x, {{{l["attn_q"]}, {l["attn_k"]}, {l["attn_v"]}}}, {l["attn_norm"], c.eps});
        const Cache cache = p.cache(c.heads.kv_heads, c.heads.head_dim);
        p.linear_add(x, p.attend(cache, qkv, c.heads, rope, c.attention_scale()), l["attn_output"]);
        p.linear_add(x, p.gated(x, l["ffn_gate"], l["ffn_up"], Act::gelu_tanh, {l["ffn_norm"], c.eps}),
                     l["ffn_down"]);
        p.next_layer();
    }
    p.logits(x, w["output"], {w["output_norm"], c.eps});
}

extern const Arch gemma = {{"gemma"}, config, weights, build};

}  // namespace redline::archs
