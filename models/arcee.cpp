// Arcee's AFM: llama with an FFN of squared relu, which has no gate.
#include "arch/arch.h"

namespace redline::archs {

static Result<Config> config(const ModelFile& file) {
    Config c = RL_TRY(common_config(file));
    const std::vector<float> factors = RL_TRY(file.floats("rope_freqs.weight", c.heads.head_dim / 2));
    c.rope = RL_TRY(common_rope(file, c, false, factors));
    return c;
}

static void weights(const Config& c, WeightList& w) {
    w.embedding_and_output();
    w.vector("attn_norm", c.dim);
    w.queries_keys_values();
    w.matrix("attn_output", c.dim, c.q_dim());
    w.vector("ffn_norm", c.dim);
    w.matrix("ffn_up", c.ffn_dim, c.dim);
    w.matrix("ffn_down", c.dim, c.ffn_dim);
    w.ignore("rope_freqs.weight");
}

static void build(const Config& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope);
    const Slot x = p.embed(w["token_embd"]);
    for (const LayerWeights& l : w.layers()) {
        const auto qkv = p.group(x, {{{l["attn_q"]}, {l["attn_k"]}, {l["attn_v"]}}}, {l["attn_norm"], c.eps});
        const Cache cache = p.cache(c.heads.kv_heads, c.heads.head_dim);
        p.linear_add(x, p.attend(cache, qkv, c.heads, rope, c.attention_scale()), l["attn_output"]);
        const Slot hidden = p.linear(x, l["ffn_up"], {l["ffn_norm"], c.eps}, {}, Function::squared_relu);
        p.linear_add(x, hidden, l["ffn_down"]);
        p.next_layer();
    }
    p.logits(x, w["output"], {w["output_norm"], c.eps});
}

extern const Arch arcee = {{"arcee"}, config, weights, build};

}  // namespace redline::archs
