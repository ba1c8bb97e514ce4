// EXAONE 4: norms behind both blocks and none before them, norms of q and k by head. The 32B has a window on
// all but every fourth layer, and rope on layers with a window only.
#include "arch/arch.h"

namespace redline::archs {

// Of files without a pattern only the 32B, of 64 layers, has windows; others hold a window that is not used.
static Status read_kinds(const ModelFile& file, Config& c) {
    const bool pattern = file.meta().find(file.key("attention.sliding_window_pattern")) != nullptr;
    if (!pattern && c.layers != 64) return {};
    RL_TRY(read_windows(file, c, 4, pattern ? 0 : 4096));
    if (RL_TRY(file.meta().integer(file.key("attention.sliding_window"), pattern ? 0 : 4096)) > 0)
        c.roped = c.windowed;
    return {};
}

static Result<Config> config(const ModelFile& file) {
    Config c = RL_TRY(common_config(file));
    const std::vector<float> factors = RL_TRY(file.floats("rope_freqs.weight", c.heads.head_dim / 2));
    c.rope = RL_TRY(common_rope(file, c, true, factors));
    RL_TRY(read_kinds(file, c));
    return c;
}

static void weights(const Config& c, WeightList& w) {
    w.embedding_and_output();
    w.queries_keys_values();
    w.vector("attn_q_norm", c.heads.head_dim);
    w.vector("attn_k_norm", c.heads.head_dim);
    w.matrix("attn_output", c.dim, c.q_dim());
    w.vector("post_attention_norm", c.dim);
    w.gated_ffn();
    w.vector("post_ffw_norm", c.dim);
    w.ignore("rope_freqs.weight");
}

static void build(const Config& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope);
    const Slot x = p.embed(w["token_embd"]);
    for (size_t i = 0; i < c.layers; ++i) {
        const LayerWeights& l = w.layers()[i];
        const auto qkv = p.group(x, {{{l["attn_q"]}, {l["attn_k"]}, {l["attn_v"]}}}, {});
        const Cache cache = p.cache(c.heads.kv_heads, c.heads.head_dim, c.window_of(i));
        const Slot seen = p.attend(cache, qkv, c.heads, c.has_rope(i) ? rope : kNoRope, c.attention_scale(),
                                   {l["attn_q_norm"], c.eps}, {l["attn_k_norm"], c.eps});
        p.add(x, p.linear(seen, l["attn_output"]), 1.0f, {l["post_attention_norm"], c.eps});
        const Slot hidden = p.gated(x, l["ffn_gate"], l["ffn_up"], Act::silu);
        p.add(x, p.linear(hidden, l["ffn_down"]), 1.0f, {l["post_ffw_norm"], c.eps});
        p.next_layer();
    }
    p.logits(x, w["output"], {w["output_norm"], c.eps});
}

extern const Arch exaone4 = {{"exaone4"}, config, weights, build};

}  // namespace redline::archs
