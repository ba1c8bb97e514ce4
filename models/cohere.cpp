// Command R and Command A (cohere2): attention and FFN beside each other, behind one layer norm without bias;
// rope on neighbouring pairs. cohere2 has a window and rope on all but every fourth layer, and neither there.
// The largest Command R has layer norms of heads, each head of q and k with a gain of its own. cohere2moe has
// experts behind leading dense layers, which have rope whatever their window; shared ones and those that are
// chosen count by halves, and its norms may be of root mean squares.
#include "arch/arch.h"

namespace redline::archs {

static Status read_experts(const ModelFile& file, Config& c) {
    if (file.arch != "cohere2moe") return {};
    if (c.experts == 0) return error("{}: {} is missing or zero", file.gguf.path(), file.key("expert_count"));
    RL_TRY(read_shared_experts(file, c, 0));
    const uint64_t gating = RL_TRY(file.meta().integer(file.key("expert_gating_func"), 2));
    if (gating != 1 && gating != 2)
        return error("{}: {} is {}, 1 (softmax) or 2 (sigmoid) expected", file.gguf.path(),
                     file.key("expert_gating_func"), gating);
    c.gating = gating == 2 ? Gating::sigmoid : Gating::softmax_of_selected;
    return {};
}

static Result<Config> config(const ModelFile& file) {
    const float eps = RL_TRY(factor(file, "attention.layer_norm_epsilon", 1e-5f));
    Config c = RL_TRY(common_config(file, eps));
    c.rope = RL_TRY(common_rope(file, c, false, {}));
    c.logit_scale = RL_TRY(factor(file, "logit_scale", 1.0f));
    if (c.logit_scale == 0.0f) c.logit_scale = 1.0f;
    c.layer_norms =
        file.arch != "cohere2moe" || !file.meta().find(file.key("attention.layer_norm_rms_epsilon"));
    if (file.arch == "command-r") return c;
    RL_TRY(read_experts(file, c));
    RL_TRY(read_windows(file, c, 4, 4096));
    for (uint32_t i = 0; i < c.layers; ++i)
        c.roped.push_back(c.windowed[i] || (file.arch == "cohere2moe" && i < c.dense_layers));
    return c;
}

static void ffn_weights(const Config& c, size_t layer, WeightList& w) {
    if (!c.has_experts(layer)) {
        w.gated_ffn();
        return;
    }
    w.matrix("ffn_gate_inp", c.experts, c.dim);
    w.gated_experts();
    if (c.shared_ffn_dim == 0) return;
    w.shared_expert();
}

static void weights(const Config& c, WeightList& w) {
    w.embedding_and_output();
    w.vector("attn_norm", c.dim);
    w.queries_keys_values();
    w.matrix("attn_output", c.dim, c.q_dim());
    w.optional_biases();
    w.optional_vector("attn_output.bias", c.dim);
    w.optional_vector("attn_q_norm", c.q_dim());
    w.optional_vector("attn_k_norm", c.kv_dim());
    for (uint32_t i = 0; i < c.layers; ++i) {
        w.in_layers(i, i + 1);
        ffn_weights(c, i, w);
    }
    w.ignore_unused_layers();
}

static void norm_heads(const Config& c, Slot heads, Weight gains, PlanBuilder& p) {
    if (!gains) return;
    p.append(Center{heads, c.heads.head_dim, heads});
    p.append(RmsNorm{heads, {{}, c.eps}, c.heads.head_dim, heads});
    p.append(Multiply{heads, gains});
}

// Of the block's input, into x.
static void ffn(const Config& c, const LayerWeights& l, size_t layer, Slot x, Slot in, Norm norm,
                PlanBuilder& p) {
    if (!c.has_experts(layer))
        return p.linear_add(x, p.gated(in, l["ffn_gate"], l["ffn_up"], Act::silu, norm), l["ffn_down"]);
    const bool shared = c.shared_ffn_dim > 0;
    const float part = shared ? 0.5f : 1.0f;
    const Slot h = norm ? p.rms_norm(in, norm) : in;
    const auto routing =
        p.route(h, l["ffn_gate_inp"], c.experts_used, c.gating, c.expert_norm, c.expert_scale * part);
    p.experts_add(x, h, routing, {l["ffn_gate_exps"], l["ffn_up_exps"], l["ffn_down_exps"]});
    if (!shared) return;
    const Slot hidden = p.gated(h, l["ffn_gate_shexp"], l["ffn_up_shexp"], Act::silu);
    p.add(x, p.linear(hidden, l["ffn_down_shexp"]), part);
}

static void build(const Config& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope);
    const Slot x = p.embed(w["token_embd"]);
    for (size_t i = 0; i < c.layers; ++i) {
        const LayerWeights& l = w.layers()[i];
        // The FFN reads x as it was before attention is added: here it is in another slot.
        const Norm own{l["attn_norm"], c.eps}, norm = c.layer_norms ? own : Norm{};
        const Slot in = c.layer_norms ? p.centered(x) : p.rms_norm(x, own);
        const auto qkv = p.group(in,
                                 {{{l["attn_q"], l["attn_q.bias"]},
                                   {l["attn_k"], l["attn_k.bias"]},
                                   {l["attn_v"], l["attn_v.bias"]}}},
                                 norm);
        norm_heads(c, qkv[0], l["attn_q_norm"], p);
        norm_heads(c, qkv[1], l["attn_k_norm"], p);
        const Cache cache = p.cache(c.heads.kv_heads, c.heads.head_dim, c.window_of(i));
        const Slot seen = p.attend(cache, qkv, c.heads, c.has_rope(i) ? rope : kNoRope, c.attention_scale());
        p.linear_add(x, seen, l["attn_output"], l["attn_output.bias"]);
        ffn(c, l, i, x, in, norm, p);
        p.next_layer();
    }
    p.logits(c.layer_norms ? p.centered(x) : x, w["output"], {w["output_norm"], c.eps}, c.logit_scale);
}

extern const Arch cohere = {{"command-r", "cohere2", "cohere2moe"}, config, weights, build};

}  // namespace redline::archs
