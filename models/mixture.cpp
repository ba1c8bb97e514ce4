// Decoders as llama's with experts behind the leading dense layers: Qwen2-MoE and the text part of
// Qwen3-VL-MoE, OLMoE, MiniMax M2, dots.llm1, Ling and Ring 2 (bailingmoe2), Hunyuan A13B, ERNIE 4.5. They
// differ in rope, in what norms of queries and keys are over, and in how experts are chosen and weighted: see
// kKinds. The last layers, which predict further tokens, are not run.
#include "arch/arch.h"

#include <algorithm>

namespace redline::archs {

enum class HeadNorm : uint8_t { none, of_heads, of_heads_behind_rope, of_rows };
enum class Weighting : uint8_t { as_chosen, normalised, by_keys };

struct Kind {
    std::string_view name;
    bool half_split;
    HeadNorm head_norm;
    Gating gating;  // where the file does not say
    Weighting weighting;
    bool gated_shared;  // the shared expert is weighted by the sigmoid of a router of its own
};

constexpr Kind kKinds[] = {
    {"qwen2moe", true, HeadNorm::none, Gating::softmax, Weighting::as_chosen, true},
    {"qwen3vlmoe", true, HeadNorm::of_heads, Gating::softmax, Weighting::normalised, false},
    {"olmoe", true, HeadNorm::of_rows, Gating::softmax, Weighting::as_chosen, false},
    {"minimax-m2", true, HeadNorm::of_rows, Gating::sigmoid, Weighting::normalised, false},
    {"dots1", true, HeadNorm::of_heads, Gating::sigmoid, Weighting::by_keys, false},
    {"bailingmoe2", true, HeadNorm::of_heads, Gating::sigmoid, Weighting::by_keys, false},
    {"hunyuan-moe", true, HeadNorm::of_heads_behind_rope, Gating::softmax, Weighting::normalised, false},
    {"ernie4_5-moe", false, HeadNorm::none, Gating::softmax, Weighting::normalised, false},
};

static const Kind& kind_of(const Config& c) {
    const auto* found =
        std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& k) { return k.name == c.arch; });
    RL_CHECK(found != std::end(kKinds), "no kind of mixture is called {}", c.arch);
    return *found;
}

static Status read_experts(const ModelFile& file, Config& c) {
    const Kind& kind = kind_of(c);
    if (c.experts == 0) return error("{}: {} is missing or zero", file.gguf.path(), file.key("expert_count"));
    RL_TRY(read_shared_experts(file, c, 0, true));
    if (kind.gated_shared && c.shared_ffn_dim == 0) c.shared_ffn_dim = c.ffn_dim;
    if (kind.weighting != Weighting::by_keys) {
        c.expert_norm = kind.weighting == Weighting::normalised;
        c.expert_scale = 1.0f;
    }
    c.expert_step = RL_TRY(count(file, "interleave_moe_layer_step", 1, 1, 1024));
    const uint64_t otherwise = kind.gating == Gating::sigmoid ? 2 : 1;
    const uint64_t gating = RL_TRY(file.meta().integer(file.key("expert_gating_func"), otherwise));
    if (gating != 1 && gating != 2)
        return error("{}: {} is {}, 1 (softmax) or 2 (sigmoid) expected", file.gguf.path(),
                     file.key("expert_gating_func"), gating);
    c.gating = gating == 2 ? Gating::sigmoid : Gating::softmax;
    c.expert_groups.by_two = true;
    return {};
}

static Result<Config> config(const ModelFile& file) {
    Config c = RL_TRY(common_config(file));
    c.rope = RL_TRY(common_rope(file, c, kind_of(c).half_split, {}));
    RL_TRY(read_experts(file, c));
    return c;
}

static void attention_weights(const Config& c, WeightList& w) {
    w.vector("attn_norm", c.dim);
    w.queries_keys_values();
    w.matrix("attn_output", c.dim, c.q_dim());
    w.optional_biases();
    w.optional_vector("attn_output.bias", c.dim);
    const HeadNorm norm = kind_of(c).head_norm;
    if (norm == HeadNorm::none) return;
    w.vector("attn_q_norm", norm == HeadNorm::of_rows ? c.q_dim() : c.heads.head_dim);
    w.vector("attn_k_norm", norm == HeadNorm::of_rows ? c.kv_dim() : c.heads.head_dim);
}

static void ffn_weights(const Config& c, size_t layer, WeightList& w) {
    w.vector("ffn_norm", c.dim);
    if (!c.has_experts(layer)) {
        w.gated_ffn();
        return;
    }
    w.matrix("ffn_gate_inp", c.experts, c.dim);
    w.optional_vector("exp_probs_b.bias", c.experts);
    w.gated_experts();
    if (c.shared_ffn_dim == 0) return;
    if (kind_of(c).gated_shared) w.matrix("ffn_gate_inp_shexp", 1, c.dim);
    w.shared_expert();
}

static void weights(const Config& c, WeightList& w) {
    w.embedding_and_output();
    for (uint32_t i = 0; i < c.layers; ++i) {
        w.in_layers(i, i + 1);
        attention_weights(c, w);
        ffn_weights(c, i, w);
    }
    w.ignore_unused_layers();
}

static Slot attention(const Config& c, const LayerWeights& l, Slot x, uint32_t rope, PlanBuilder& p) {
    const HeadShape& s = c.heads;
    const auto qkv = p.group(
        x,
        {{{l["attn_q"], l["attn_q.bias"]}, {l["attn_k"], l["attn_k.bias"]}, {l["attn_v"], l["attn_v.bias"]}}},
        {l["attn_norm"], c.eps});
    const Cache cache = p.cache(s.kv_heads, s.head_dim);
    const HeadNorm kind = kind_of(c).head_norm;
    if (kind == HeadNorm::none) return p.attend(cache, qkv, s, rope, c.attention_scale());
    const Norm q_norm{l["attn_q_norm"], c.eps}, k_norm{l["attn_k_norm"], c.eps};
    if (kind == HeadNorm::of_heads) return p.attend(cache, qkv, s, rope, c.attention_scale(), q_norm, k_norm);
    const auto [q, k, v] = qkv;
    if (kind == HeadNorm::of_rows) {
        p.append(RmsNorm{q, q_norm, c.q_dim(), q});
        p.append(RmsNorm{k, k_norm, c.kv_dim(), k});
        return p.attend(cache, qkv, s, rope, c.attention_scale());
    }
    p.append(Rope{q, s.heads, s.head_dim, rope});
    p.append(Rope{k, s.kv_heads, s.head_dim, rope});
    p.append(RmsNorm{q, q_norm, s.head_dim, q});
    p.append(RmsNorm{k, k_norm, s.head_dim, k});
    p.append(KvStore{k, v, cache, s});
    return p.attention(cache, q, s, c.attention_scale());
}

static void experts(const Config& c, const LayerWeights& l, Slot x, Norm norm, PlanBuilder& p) {
    const PlanBuilder::Experts chosen{l["ffn_gate_exps"], l["ffn_up_exps"], l["ffn_down_exps"]};
    if (c.shared_ffn_dim == 0 && c.expert_groups.count <= 1) {
        p.expert_block(x, norm,
                       {l["ffn_gate_inp"], c.experts_used, c.gating, c.expert_norm, c.expert_scale,
                        l["exp_probs_b.bias"]},
                       chosen);
        return;
    }
    const Slot h = p.rms_norm(x, norm);
    const auto routing = p.route(h, l["ffn_gate_inp"], c.experts_used, c.gating, c.expert_norm,
                                 c.expert_scale, l["exp_probs_b.bias"], BiasOf::choice, c.expert_groups);
    p.experts_add(x, h, routing, chosen);
    if (c.shared_ffn_dim == 0) return;
    if (!kind_of(c).gated_shared) {
        p.linear_add(x, p.gated(h, l["ffn_gate_shexp"], l["ffn_up_shexp"], Act::silu), l["ffn_down_shexp"]);
        return;
    }
    // It is the only one of a router whose sigmoid is its weight.
    const auto shared = p.route(h, l["ffn_gate_inp_shexp"], 1, Gating::sigmoid, false);
    p.experts_add(x, h, shared, {l["ffn_gate_shexp"], l["ffn_up_shexp"], l["ffn_down_shexp"]});
}

static void build(const Config& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope);
    const Slot x = p.embed(w["token_embd"]);
    for (size_t i = 0; i < c.layers; ++i) {
        const LayerWeights& l = w.layers()[i];
        p.linear_add(x, attention(c, l, x, rope, p), l["attn_output"], l["attn_output.bias"]);
        const Norm norm{l["ffn_norm"], c.eps};
        if (c.has_experts(i))
            experts(c, l, x, norm, p);
        else
            p.linear_add(x, p.gated(x, l["ffn_gate"], l["ffn_up"], Act::silu, norm), l["ffn_down"]);
        p.next_layer();
    }
    p.logits(x, w["output"], {w["output_norm"], c.eps});
}

extern const Arch mixture = {
    {"qwen2moe", "qwen3vlmoe", "olmoe", "minimax-m2", "dots1", "bailingmoe2", "hunyuan-moe", "ernie4_5-moe"},
    config,
    weights,
    build};

}  // namespace redline::archs
