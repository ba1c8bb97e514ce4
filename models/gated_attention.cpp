// Attention whose output is gated by what it was made of: Muse Glimmer, Laguna, Step 3.5 and 3.7, Trinity
// (afmoe). A gate is for an element or for a whole head. Layers with a window are turned by their own rope,
// or are the only ones with rope. Trinity and Muse Glimmer have norms behind both blocks, too; all but the
// latter have experts behind the leading dense layers. The last layers, which predict further tokens, are
// not run.
#include "limits.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace redline::archs {

constexpr float kMusePostEps = 1e-8f;  // of the norms behind its blocks; no key has it

static bool sandwiched(const Config& c) {
    return c.arch == "muse-glimmer" || c.arch == "afmoe";
}

static HeadShape shape_of(const Config& c, size_t layer) {
    return {c.heads_of[layer], c.kv_heads_of[layer], c.heads.head_dim};
}

// Step turns half as much of a head in layers without a window, by frequencies that the file may divide.
static Status read_step_ropes(const ModelFile& file, Config& c) {
    const std::string type = RL_TRY(file.meta().text(file.key("rope.scaling.type"), "none"));
    if (type != "none")
        return error("{}: {} is {}, none expected", file.gguf.path(), file.key("rope.scaling.type"), type);
    const size_t pairs = c.rope.inverse_frequency.size();
    const std::vector<float> factors = RL_TRY(file.floats("rope_freqs.weight", pairs));
    c.local_rope = RL_TRY(local_rope(file, c, "rope.freq_base_swa", 10000.0f));
    c.rope.inverse_frequency.resize(pairs / 2);
    c.rope = RL_TRY(local_rope(file, c, "rope.freq_base", 10000.0f));
    for (size_t i = 0; i < factors.size() && i < c.rope.inverse_frequency.size(); ++i)
        c.rope.inverse_frequency[i] /= double(factors[i]);
    return {};
}

// Before the layers that are not run are left out: lists by layer have those, too.
static Status read_attention(const ModelFile& file, Config& c) {
    RL_TRY(read_windows(file, c, 4, 0));
    if (file.arch == "laguna" && !file.meta().find(file.key("attention.sliding_window_pattern")))
        for (uint32_t i = 0; i < c.layers; ++i) c.windowed[i] = i % 4 != 0;
    c.rope = RL_TRY(common_rope(file, c, file.arch != "muse-glimmer", {}));
    if (file.arch == "laguna") {
        c.local_rope = RL_TRY(local_rope(file, c, "rope.freq_base_swa", 10000.0f));
    } else if (file.arch == "step35") {
        RL_TRY(read_step_ropes(file, c));
    } else {
        c.local_rope = c.rope;
        c.rope.inverse_frequency.clear();
    }
    for (uint32_t i = 0; i < c.layers; ++i) {
        if (c.heads_of[i] == 0 || c.kv_heads_of[i] == 0)
            return error("{}: layer {} has no heads or no kv heads", file.gguf.path(), i);
        const GgufTensor* gate = file.gguf.find(fmt::format("blk.{}.attn_gate.weight", i));
        c.gates_of_heads.push_back(gate && gate->tensor.shape.rows == c.heads_of[i]);
    }
    return {};
}

static Result<Config> config(const ModelFile& file) {
    Config c = RL_TRY(common_config(file, {}, LayersDiffer::in_size));
    if (c.experts == 0 && file.arch != "muse-glimmer")
        return error("{}: {} is missing or zero", file.gguf.path(), file.key("expert_count"));
    RL_TRY(read_attention(file, c));
    if (file.arch == "afmoe") c.embedding_scale = std::sqrt(float(c.dim));
    if (file.arch == "muse-glimmer") {
        c.logit_scale = RL_TRY(factor(file, "logit_scale", 1.0f));
        c.logit_softcap = RL_TRY(factor(file, "final_logit_softcapping", 0.0f));
    }
    RL_TRY(read_limits(file, c, "swiglu_clamp_exp", c.expert_limits));
    RL_TRY(read_limits(file, c, "swiglu_clamp_shexp", c.shared_limits));
    RL_TRY(read_shared_experts(file, c, 0));
    const uint64_t gating = RL_TRY(file.meta().integer(file.key("expert_gating_func"), 2));
    if (gating != 1 && gating != 2)
        return error("{}: {} is {}, 1 (softmax) or 2 (sigmoid) expected", file.gguf.path(),
                     file.key("expert_gating_func"), gating);
    c.gating = gating == 2 ? Gating::sigmoid : Gating::softmax;
    return c;
}

static void attention_weights(const Config& c, size_t layer, WeightList& w) {
    const HeadShape s = shape_of(c, layer);
    const uint64_t q = uint64_t(s.heads) * s.head_dim, kv = uint64_t(s.kv_heads) * s.head_dim;
    w.vector("attn_norm", c.dim);
    w.matrix("attn_q", q, c.dim);
    w.matrix("attn_k", kv, c.dim);
    w.matrix("attn_v", kv, c.dim);
    w.vector("attn_q_norm", s.head_dim);
    w.vector("attn_k_norm", s.head_dim);
    w.matrix("attn_gate", c.gates_of_heads[layer] ? s.heads : q, c.dim);
    w.matrix("attn_output", c.dim, q);
    if (sandwiched(c)) w.vector("post_attention_norm", c.dim);
}

static void ffn_weights(const Config& c, size_t layer, WeightList& w) {
    w.vector("ffn_norm", c.dim);
    if (sandwiched(c)) w.vector("post_ffw_norm", c.dim);
    if (!c.has_experts(layer)) {
        w.matrix("ffn_gate", c.ffn_dims[layer], c.dim);
        w.matrix("ffn_up", c.ffn_dims[layer], c.dim);
        w.matrix("ffn_down", c.dim, c.ffn_dims[layer]);
        return;
    }
    w.matrix("ffn_gate_inp", c.experts, c.dim);
    w.optional_vector("exp_probs_b.bias", c.experts);
    w.gated_experts();
    if (c.shared_ffn_dim == 0) return;
    w.shared_expert();
}

static void weights(const Config& c, WeightList& w) {
    w.embedding_and_output();
    for (uint32_t i = 0; i < c.layers; ++i) {
        w.in_layers(i, i + 1);
        attention_weights(c, i, w);
        ffn_weights(c, i, w);
    }
    w.ignore("rope_freqs.weight");
    w.ignore_unused_layers();
}

// Index of the rope of layers with a window, and of the others, where those have rope.
struct Ropes {
    uint32_t local;
    std::optional<uint32_t> global;
};

static Slot attention(const Config& c, const LayerWeights& l, size_t layer, Slot x, const Ropes& ropes,
                      PlanBuilder& p) {
    const HeadShape s = shape_of(c, layer);
    const Norm norm{l["attn_norm"], c.eps}, q_norm{l["attn_q_norm"], c.eps}, k_norm{l["attn_k_norm"], c.eps};
    const auto qkv = p.group(x, {{{l["attn_q"]}, {l["attn_k"]}, {l["attn_v"]}}}, norm);
    const Slot gate = p.linear(x, l["attn_gate"], norm);
    const Cache cache = p.cache(s.kv_heads, s.head_dim, c.window_of(layer));
    const std::optional<uint32_t> rope = c.is_windowed(layer) ? ropes.local : ropes.global;
    Slot seen;
    if (rope) {
        seen = p.attend(cache, qkv, s, *rope, c.attention_scale(), q_norm, k_norm);
    } else {
        const auto [q, k, v] = qkv;
        p.append(RmsNorm{q, q_norm, s.head_dim, q});
        p.append(RmsNorm{k, k_norm, s.head_dim, k});
        p.append(KvStore{k, v, cache, s});
        seen = p.attention(cache, q, s, c.attention_scale());
    }
    p.append(OutputGate{gate, seen, s.head_dim, c.arch == "laguna" ? GateOf::softplus : GateOf::sigmoid});
    return seen;
}

// min(silu(gate), limit) * clamp(up, -limit, limit). Silu grows where it is above 0, so that its limit may
// be one of gate.
static void limited_silu(Slot gate, Slot up, float limit, PlanBuilder& p) {
    double low = 0.0, high = double(limit) + 1.0;
    for (int i = 0; i < 100; ++i) {
        const double middle = (low + high) / 2.0;
        (middle / (1.0 + std::exp(-middle)) < double(limit) ? low : high) = middle;
    }
    p.append(Clamp{gate, std::numeric_limits<float>::lowest(), float(high)});
    p.append(Clamp{up, -limit, limit});
    p.append(ActMul{gate, up, gate, Act::silu});
}

static void experts(const Config& c, const LayerWeights& l, size_t layer, Slot into, Slot h, PlanBuilder& p) {
    const auto routing = p.route(h, l["ffn_gate_inp"], c.experts_used, c.gating, c.expert_norm,
                                 c.expert_scale, l["exp_probs_b.bias"]);
    if (const float limit = c.expert_limits.empty() ? 0.0f : c.expert_limits[layer]; limit > 0.0f) {
        const Slot gate = p.slot(routing.used * c.expert_ffn_dim),
                   up = p.slot(routing.used * c.expert_ffn_dim);
        p.append(ExpertLinear{h, l["ffn_gate_exps"], routing.ids, gate, routing.used});
        p.append(ExpertLinear{h, l["ffn_up_exps"], routing.ids, up, routing.used});
        limited_silu(gate, up, limit, p);
        p.append(
            ExpertLinear{gate, l["ffn_down_exps"], routing.ids, into, routing.used, true, routing.scales});
    } else {
        p.experts_add(into, h, routing, {l["ffn_gate_exps"], l["ffn_up_exps"], l["ffn_down_exps"]});
    }
    if (c.shared_ffn_dim == 0) return;
    Slot hidden;
    if (const float limit = c.shared_limits.empty() ? 0.0f : c.shared_limits[layer]; limit > 0.0f) {
        hidden = p.linear(h, l["ffn_gate_shexp"]);
        limited_silu(hidden, p.linear(h, l["ffn_up_shexp"]), limit, p);
    } else {
        hidden = p.gated(h, l["ffn_gate_shexp"], l["ffn_up_shexp"], Act::silu);
    }
    p.linear_add(into, hidden, l["ffn_down_shexp"]);
}

static void ffn(const Config& c, const LayerWeights& l, size_t layer, Slot x, float post_eps,
                PlanBuilder& p) {
    const Norm norm{l["ffn_norm"], c.eps};
    if (!c.has_experts(layer)) {
        const Slot hidden = p.gated(x, l["ffn_gate"], l["ffn_up"], Act::silu, norm);
        if (sandwiched(c))
            p.add(x, p.linear(hidden, l["ffn_down"]), 1.0f, {l["post_ffw_norm"], post_eps});
        else
            p.linear_add(x, hidden, l["ffn_down"]);
        return;
    }
    const Slot h = p.rms_norm(x, norm);
    if (!sandwiched(c)) return experts(c, l, layer, x, h, p);
    const Slot sum = p.parts_of(h, 1, c.dim, 0, c.dim);
    p.add(sum, h, -1.0f);  // zero, to which experts are added
    experts(c, l, layer, sum, h, p);
    p.add(x, sum, 1.0f, {l["post_ffw_norm"], post_eps});
}

static void build(const Config& c, const WeightSet& w, PlanBuilder& p) {
    Ropes ropes{p.add_rope(c.local_rope), {}};
    if (!c.rope.inverse_frequency.empty()) ropes.global = p.add_rope(c.rope);
    const float post_eps = c.arch == "muse-glimmer" ? kMusePostEps : c.eps;
    Slot x = p.embed(w["token_embd"], c.embedding_scale);
    if (c.arch == "muse-glimmer") x = p.rms_norm(x, {{}, c.eps});
    for (size_t i = 0; i < c.layers; ++i) {
        const LayerWeights& l = w.layers()[i];
        const Slot seen = attention(c, l, i, x, ropes, p);
        if (sandwiched(c))
            p.add(x, p.linear(seen, l["attn_output"]), 1.0f, {l["post_attention_norm"], post_eps});
        else
            p.linear_add(x, seen, l["attn_output"]);
        ffn(c, l, i, x, post_eps, p);
        p.next_layer();
    }
    p.logits(x, w["output"], {w["output_norm"], c.eps}, c.logit_scale, c.logit_softcap);
}

extern const Arch gated_attention = {{"muse-glimmer", "laguna", "step35", "afmoe"}, config, weights, build};

}  // namespace redline::archs
