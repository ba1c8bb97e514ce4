// EXAONE 4: norms behind both blocks and none before them, norms of the heads of queries and keys. The 32B
// has a window on all but every fourth layer, and rope on layers with a window only. Layers that predict
// (EXAONE 4.5) have the window and rope wherever there are windows, as vLLM has them.
#include "arch/arch.h"
#include "arch/blocks.h"

namespace redline::archs {

// Without a pattern only the 32B, of 64 layers, has windows; other files hold a window that is not used.
static Status read_kinds(const ModelFile& file, Config& c) {
    const bool pattern = file.meta().find(file.key("attention.sliding_window_pattern")) != nullptr;
    const uint64_t predicting = RL_TRY(file.meta().integer(file.key("nextn_predict_layers"), 0));
    if (!pattern && c.layers != 64 + predicting) return {};
    RL_TRY(read_windows(file, c, 4, pattern ? 0 : 4096));
    if (RL_TRY(file.meta().integer(file.key("attention.sliding_window"), pattern ? 0 : 4096)) > 0)
        c.roped = c.windowed;
    return {};
}

static Status choose(const ModelFile& file, Config& c) {
    RL_TRY(choose_layers(file, c));
    for (std::vector<bool>* kinds : {&c.windowed, &c.roped})
        if (c.predicts() && !kinds->empty()) kinds->assign(c.layers, true);
    return {};
}

static Result<Config> config(const ModelFile& file) {
    Config c = RL_TRY(common_config(file));
    c.rope = RL_TRY(common_rope(file, c, true, RL_TRY(rope_factors(file, c))));
    RL_TRY(read_kinds(file, c));
    RL_TRY(choose(file, c));
    return c;
}

static void weights(const Config& c, WeightList& w) {
    w.embedding_and_output();
    w.attention({.head_norms = Presence::required, .norm = false});
    w.vector("post_attention_norm", c.dim);
    w.gated_ffn();
    w.vector("post_ffw_norm", c.dim);
    w.ignore_rope_factors();
    w.ignore_unused_layers();
}

static void build(const Config& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope);
    const Slot x = first_rows(c, w, p);
    for (size_t i = c.first_layer; i < c.layers; ++i) {
        const LayerWeights& l = w.layers()[i];
        const Slot seen = attend(c, l, x, {}, {c.has_rope(i) ? rope : kNoRope, c.window_of(i)}, p);
        add_normed(x, seen, l["attn_output"], c.norm(l["post_attention_norm"]), p);
        add_normed(x, gated(l, x, {}, p), l["ffn_down"], c.norm(l["post_ffw_norm"]), p);
        p.next_layer();
    }
    add_logits(c, w, x, p);
}

extern const Arch exaone = make_arch<config, weights, build>({"exaone4"});

}  // namespace redline::archs
