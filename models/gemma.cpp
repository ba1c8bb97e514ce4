// Gemma 1 to 3, the text part: embeddings times the root of their width, half-split rope, GeGLU. Gemma 2 has
// norms behind both blocks, too, softcaps of scores and logits, and a window on every other layer. Gemma 3
// has norms of the heads of queries and keys in place of the softcap of scores, windows on all but every
// sixth layer, and another rope base there. Norms have their weight plus one, as the converter left it.
#include "arch/arch.h"
#include "arch/blocks.h"

#include <algorithm>
#include <cmath>

namespace redline::archs {

struct GemmaKind {
    std::string_view name;
    std::optional<float> eps;  // where the file does not say
    bool norms_behind;         // behind both blocks, beside those before them
    Presence head_norms;
    uint32_t period = 0;  // of layers with a window, the last of which sees everything; 0: no windows
    uint64_t window = 0;  // where the file does not say
    float attention_softcap = 0.0f;  // likewise; 0: none, whatever the file says
    float logit_softcap = 0.0f;
    uint32_t large =
        0;  // the layers of a model whose queries are scaled by the width of a head of the embedding
};

constexpr GemmaKind kKinds[] = {
    {"gemma", {}, false, Presence::none},
    {"gemma2", {}, true, Presence::none, 2, 4096, 50.0f, 30.0f, 46},
    {"gemma3", 1e-6f, true, Presence::required, 6, 0, 0.0f, 0.0f, 62},
};

struct Gemma : Config {
    GemmaKind kind;
    float attention_softcap = 0.0f;
};

static Result<Gemma> config(const ModelFile& file) {
    const GemmaKind& kind = *std::ranges::find(kKinds, file.arch, &GemmaKind::name);
    Gemma c{RL_TRY(common_config(file, kind.eps)), kind};
    c.embedding_scale = std::sqrt(float(c.dim));
    c.rope = RL_TRY(common_rope(file, c, true));
    if (kind.period == 0) return c;
    if (kind.head_norms == Presence::required) c.local_rope = RL_TRY(local_rope(file, c));
    RL_TRY(read_windows(file, c, kind.period, kind.window));
    if (kind.attention_softcap > 0.0f)
        c.attention_softcap = RL_TRY(factor(file, "attn_logit_softcapping", kind.attention_softcap));
    c.logit_softcap = RL_TRY(factor(file, "final_logit_softcapping", kind.logit_softcap));
    // GGUF has no key for that.
    if (c.layers == kind.large) c.scale = 1.0f / std::sqrt(float(c.dim) / float(c.heads.heads));
    return c;
}

static void weights(const Gemma& c, WeightList& w) {
    w.embedding_and_output();
    w.attention({.head_norms = c.kind.head_norms});
    w.vector("ffn_norm", c.dim);
    w.gated_ffn();
    if (!c.kind.norms_behind) return;
    w.vector("post_attention_norm", c.dim);
    w.vector("post_ffw_norm", c.dim);
}

static void build(const Gemma& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope);
    const uint32_t local = c.local_rope.inverse_frequency.empty() ? rope : p.add_rope(c.local_rope);
    const Slot x = p.embed(w["token_embd"], c.embedding_scale);
    for (size_t i = 0; i < c.layers; ++i) {
        const LayerWeights& l = w.layers()[i];
        const AttentionWay way{c.is_windowed(i) ? local : rope, c.window_of(i), c.attention_softcap};
        const Slot seen = attend(c, l, x, c.norm(l["attn_norm"]), way, p);
        const Norm norm = c.norm(l["ffn_norm"]);
        if (c.kind.norms_behind) {
            add_normed(x, seen, l["attn_output"], c.norm(l["post_attention_norm"]), p);
            const Slot hidden = gated(l, x, norm, p, Act::gelu_tanh);
            add_normed(x, hidden, l["ffn_down"], c.norm(l["post_ffw_norm"]), p);
        } else {
            add_attention(l, x, seen, p);
            add_gated_ffn(l, x, norm, p, Act::gelu_tanh);
        }
        p.next_layer();
    }
    add_logits(c, w, x, p);
}

extern const Arch gemma = make_arch<config, weights, build>({"gemma", "gemma2", "gemma3"});

}  // namespace redline::archs
