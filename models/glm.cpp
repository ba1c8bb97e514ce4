// GLM-4-0414 (9B, 32B): rope on neighbouring pairs of half a head, gate and up in one tensor, norms before
// and behind both blocks. GLM-4.5 to 4.7 and Air: half-split rope on half a head, the first layers dense, the
// others with experts beside one that all tokens share; the router's bias moves the choice alone. The last
// layers of these, which predict further tokens, are not run.
#include "arch/arch.h"
#include "arch/blocks.h"

namespace redline::archs {

static bool has_norms_behind(const Config& c) {
    return c.experts == 0;
}

static Result<Config> config(const ModelFile& file) {
    const bool mixture = file.arch == "glm4moe";
    Config c = RL_TRY(common_config(file));
    c.rope = RL_TRY(common_rope(file, c, mixture));
    RL_TRY(choose_layers(file, c));
    if (!mixture) c.experts = 0;
    if (!mixture) return c;
    RL_TRY(require_experts(file, c));
    RL_TRY(read_shared_experts(file, c, 1));
    RL_TRY(read_gating(file, c, Gating::sigmoid, Gatings::sigmoid));
    return c;
}

static void dense_weights(const Config& c, WeightList& w) {
    w.attention({.biases = Presence::optional});
    w.vector("post_attention_norm", c.dim);
    w.vector("ffn_norm", c.dim);
    w.gated_ffn_in_one();
    w.vector("post_ffw_norm", c.dim);
    w.ignore_unused_layers();
}

static void mixture_weights(const Config& c, WeightList& w) {
    w.attention({.biases = Presence::optional, .head_norms = Presence::optional});
    w.vector("post_attention_norm", c.dim);
    w.in_layers(0, c.dense_layers);
    w.gated_ffn();
    w.in_layers(c.dense_layers, c.layers);
    w.routed_experts(true);
    w.shared_expert();
    w.ignore_unused_layers();
}

static void weights(const Config& c, WeightList& w) {
    w.embedding_and_output();
    has_norms_behind(c) ? dense_weights(c, w) : mixture_weights(c, w);
}

static void build(const Config& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope);
    const Slot x = first_rows(c, w, p);
    for (size_t i = c.first_layer; i < c.layers; ++i) {
        const LayerWeights& l = w.layers()[i];
        const Slot seen = attend(c, l, x, c.norm(l["attn_norm"]), {rope}, p);
        const Norm norm = c.norm(l["post_attention_norm"]);
        if (has_norms_behind(c)) {
            add_normed(x, seen, l["attn_output"], norm, p);
            const Slot hidden = gated(l, x, c.norm(l["ffn_norm"]), p);
            add_normed(x, hidden, l["ffn_down"], c.norm(l["post_ffw_norm"]), p);
        } else {
            add_attention(l, x, seen, p);
            c.has_experts(i) ? add_experts(c, l, x, norm, p) : add_gated_ffn(l, x, norm, p);
        }
        p.next_layer();
    }
    add_logits(c, w, x, p);
}

extern const Arch glm = make_arch<config, weights, build>({"glm4", "glm4moe"});

}  // namespace redline::archs
