// OLMo 2 and 3: norms behind both blocks and none before them, norms of whole rows of queries and keys,
// half-split rope. OLMo 3 (olmo3 in Ollama's files) has a window on all but every fourth layer, and yarn
// where there is no window.
#include "arch/arch.h"
#include "arch/blocks.h"

namespace redline::archs {

static Result<Config> config(const ModelFile& file) {
    Config c = RL_TRY(common_config(file));
    c.rope = RL_TRY(common_rope(file, c, true));
    const float base = RL_TRY(file.meta().real(file.key("rope.freq_base"), 10000.0f));
    c.local_rope = RL_TRY(local_rope(file, c, "rope.freq_base_swa", base));
    RL_TRY(read_windows(file, c, 4, 0));
    return c;
}

static void weights(const Config& c, WeightList& w) {
    w.embedding_and_output();
    w.attention({.norm = false});
    w.vector("attn_q_norm", c.q_dim());
    w.vector("attn_k_norm", c.kv_dim());
    w.vector("post_attention_norm", c.dim);
    w.gated_ffn();
    w.vector("post_ffw_norm", c.dim);
}

static void build(const Config& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope), local = p.add_rope(c.local_rope);
    const Slot x = p.embed(w["token_embd"]);
    for (size_t i = 0; i < c.layers; ++i) {
        const LayerWeights& l = w.layers()[i];
        const AttentionWay way{c.is_windowed(i) ? local : rope, c.window_of(i)};
        const Slot seen = attend_with_row_norms(c, l, x, {}, way, p);
        add_normed(x, seen, l["attn_output"], c.norm(l["post_attention_norm"]), p);
        add_normed(x, gated(l, x, {}, p), l["ffn_down"], c.norm(l["post_ffw_norm"]), p);
        p.next_layer();
    }
    add_logits(c, w, x, p);
}

extern const Arch olmo = make_arch<config, weights, build>({"olmo2", "olmo3"});

}  // namespace redline::archs
