// Command R and Command A (cohere2): attention and FFN beside each other, behind one layer norm without bias;
// rope on neighbouring pairs. cohere2 has a window and rope on all but every fourth layer, and neither there.
// The largest Command R has layer norms of heads, with a gain for each head of queries and keys. cohere2moe
// has experts behind leading dense layers, which have rope whatever their window; shared experts and those
// that are chosen count by halves, and its norms may be of root mean squares. Its layer that predicts sees
// everything and has rope.
#include "arch/arch.h"
#include "arch/blocks.h"

#include <algorithm>

namespace redline::archs {

struct CohereKind {
    std::string_view name;
    bool windowed;     // a window on all but every fourth layer
    bool has_experts;  // and norms that may be of root mean squares
};

constexpr CohereKind kKinds[] = {
    {"command-r", false, false}, {"cohere2", true, false}, {"cohere2moe", true, true}};

struct Cohere : Config {
    bool layer_norms = true;  // norms are of rows less their mean
};

static Status read_experts(const ModelFile& file, Config& c) {
    RL_TRY(require_experts(file, c));
    RL_TRY(read_shared_experts(file, c, 0));
    RL_TRY(read_gating(file, c, Gating::sigmoid));
    if (c.gating == Gating::softmax) c.gating = Gating::softmax_of_selected;
    return {};
}

static Result<Cohere> config(const ModelFile& file) {
    const CohereKind& kind = *std::ranges::find(kKinds, file.arch, &CohereKind::name);
    const float eps = RL_TRY(factor(file, "attention.layer_norm_epsilon", 1e-5f));
    Cohere c{RL_TRY(common_config(file, eps))};
    c.rope = RL_TRY(common_rope(file, c, false));
    c.logit_scale = RL_TRY(factor(file, "logit_scale", 1.0f));
    if (c.logit_scale == 0.0f) c.logit_scale = 1.0f;
    c.layer_norms = !kind.has_experts || !file.meta().find(file.key("attention.layer_norm_rms_epsilon"));
    // Windows are read first: their list may have the layers, too, that are not run.
    if (kind.windowed) RL_TRY(read_windows(file, c, 4, 4096));
    if (kind.has_experts) RL_TRY(choose_layers(file, c));
    if (kind.has_experts) RL_TRY(read_experts(file, c));
    if (!kind.windowed) return c;
    for (uint32_t i = 0; i < c.layers; ++i)
        c.roped.push_back(c.predicts() || c.windowed[i] || (kind.has_experts && i < c.dense_layers));
    if (c.predicts()) c.window = 0;
    return c;
}

static void ffn_weights(const Cohere& c, size_t layer, WeightList& w) {
    if (!c.has_experts(layer)) return w.gated_ffn();
    w.routed_experts();
    w.shared_expert();
}

static void weights(const Cohere& c, WeightList& w) {
    w.embedding_and_output();
    w.attention({.biases = Presence::optional, .output_bias = Presence::optional});
    w.optional_vector("attn_q_norm", c.q_dim());
    w.optional_vector("attn_k_norm", c.kv_dim());
    for (uint32_t i = c.first_layer; i < c.layers; ++i) {
        w.in_layers(i, i + 1);
        ffn_weights(c, i, w);
    }
    w.ignore_unused_layers();
}

static void norm_heads(const Cohere& c, Slot heads, Weight gains, PlanBuilder& p) {
    if (!gains) return;
    p.append(Center{heads, c.heads.head_dim, heads});
    p.append(RmsNorm{heads, {{}, c.eps}, c.heads.head_dim, heads});
    p.append(each::multiply(heads, gains));
}

// x += the FFN or the experts of norm(in), where `in` is the block's input.
static void add_ffn(const Cohere& c, const LayerWeights& l, size_t layer, Slot x, Slot in, Norm norm,
                    PlanBuilder& p) {
    if (!c.has_experts(layer)) return p.linear_add(x, gated(l, in, norm, p), l["ffn_down"]);
    const bool shared = c.shared_ffn_dim > 0;
    const float part = shared ? 0.5f : 1.0f;
    const Slot h = norm ? p.rms_norm(in, norm) : in;
    const auto routing =
        p.route(h, l["ffn_gate_inp"], c.experts_used, c.gating, c.expert_norm, c.expert_scale * part);
    p.experts_add(x, h, routing, gated_experts(l));
    if (shared) p.add(x, p.linear(shared_hidden(l, h, p), l["ffn_down_shexp"]), part);
}

static Slot cohere_rows(const Cohere& c, const WeightSet& w, PlanBuilder& p) {
    const Slot x = p.embed(w["token_embd"]);
    if (!c.predicts()) return x;
    const LayerWeights& l = w.layers()[c.first_layer];
    const auto normed = [&](Slot rows, const char* gain) {
        return p.rms_norm(c.layer_norms ? p.centered(rows) : rows, c.norm(l[gain]));
    };
    const Slot token = normed(x, "nextn.enorm.weight"), hidden = normed(p.input(c.dim), "nextn.hnorm.weight");
    return p.linear(side_by_side(token, hidden, p), l["nextn.eh_proj.weight"]);
}

static void build(const Cohere& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope);
    const Slot x = cohere_rows(c, w, p);
    for (size_t i = c.first_layer; i < c.layers; ++i) {
        const LayerWeights& l = w.layers()[i];
        // The FFN reads x as it was before attention is added: here it is in another slot.
        const Norm given = c.norm(l["attn_norm"]), norm = c.layer_norms ? given : Norm{};
        const Slot in = c.layer_norms ? p.centered(x) : p.rms_norm(x, given);
        const auto products = qkv(p, in, l, norm);
        norm_heads(c, products[0], l["attn_q_norm"], p);
        norm_heads(c, products[1], l["attn_k_norm"], p);
        const Cache cache = p.cache(c.heads.kv_heads, c.heads.head_dim, c.window_of(i));
        const uint32_t way = c.has_rope(i) ? rope : kNoRope;
        add_attention(l, x, p.attend(cache, products, c.heads, way, c.attention_scale()), p);
        add_ffn(c, l, i, x, in, norm, p);
        p.next_layer();
    }
    add_logits(c, w, c.layer_norms ? p.centered(x) : x, p);
}

extern const Arch cohere = make_arch<config, weights, build>({"command-r", "cohere2", "cohere2moe"});

}  // namespace redline::archs
