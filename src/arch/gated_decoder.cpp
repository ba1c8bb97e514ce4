#include "arch/gated_decoder.h"

#include "arch/blocks.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace redline {

static HeadShape shape_of(const GatedDecoder& c, size_t layer) {
    return {c.heads_of[layer], c.kv_heads_of[layer], c.heads.head_dim};
}

void give_rope_to_windows_only(Config& c) {
    c.local_rope = c.rope;
    c.rope.inverse_frequency.clear();
}

// Read before the layers that are not run are left out: lists by layer have those, too.
static Status read_attention(const ModelFile& file, GatedDecoder& c) {
    RL_TRY(read_windows(file, c, 4, 0));
    c.rope = RL_TRY(common_rope(file, c, c.kind.half_split));
    RL_TRY(c.kind.read(file, c));
    for (uint32_t i = 0; i < c.layers; ++i) {
        if (c.heads_of[i] == 0 || c.kv_heads_of[i] == 0)
            return error("{}: layer {} has no heads or no kv heads", file.gguf.path(), i);
        const GgufTensor* gate = file.gguf.find(fmt::format("blk.{}.attn_gate.weight", i));
        c.gates_of_heads.push_back(gate && gate->tensor.shape.rows == c.heads_of[i]);
    }
    c.expert_limits = RL_TRY(file.limits("swiglu_clamp_exp", c.layers));
    c.shared_limits = RL_TRY(file.limits("swiglu_clamp_shexp", c.layers));
    return {};
}

Result<GatedDecoder> gated_decoder_config(const ModelFile& file, const GatedKind& kind) {
    GatedDecoder c{RL_TRY(common_config(file, {}, LayersDiffer::in_size)), kind};
    if (kind.experts) RL_TRY(require_experts(file, c));
    RL_TRY(read_attention(file, c));
    RL_TRY(choose_layers(file, c));
    RL_TRY(read_shared_experts(file, c, 0));
    RL_TRY(read_gating(file, c, Gating::sigmoid));
    return c;
}

static void attention_weights(const GatedDecoder& c, size_t layer, WeightList& w) {
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
    if (c.kind.norms_behind) w.vector("post_attention_norm", c.dim);
}

static void ffn_weights(const GatedDecoder& c, size_t layer, WeightList& w) {
    w.vector("ffn_norm", c.dim);
    if (c.kind.norms_behind) w.vector("post_ffw_norm", c.dim);
    if (!c.has_experts(layer)) {
        w.matrix("ffn_gate", c.ffn_dims[layer], c.dim);
        w.matrix("ffn_up", c.ffn_dims[layer], c.dim);
        w.matrix("ffn_down", c.dim, c.ffn_dims[layer]);
        return;
    }
    w.routed_experts(true);
    w.shared_expert();
}

void gated_decoder_weights(const GatedDecoder& c, WeightList& w) {
    w.embedding_and_output();
    for (uint32_t i = c.first_layer; i < c.layers; ++i) {
        w.in_layers(i, i + 1);
        attention_weights(c, i, w);
        ffn_weights(c, i, w);
    }
    w.ignore_rope_factors();
    w.ignore_unused_layers();
}

// The plan's ropes: of layers with a window, and of the others, where those have rope.
struct GatedRopes {
    uint32_t local;
    std::optional<uint32_t> global;
};

static Slot attention(const GatedDecoder& c, const LayerWeights& l, size_t layer, Slot x,
                      const GatedRopes& ropes, PlanBuilder& p) {
    const HeadShape s = shape_of(c, layer);
    const Norm norm = c.norm(l["attn_norm"]), q_norm = c.norm(l["attn_q_norm"]),
               k_norm = c.norm(l["attn_k_norm"]);
    const auto products = qkv(p, x, l, norm);
    const Slot gate = p.linear(x, l["attn_gate"], norm);
    const Cache cache = p.cache(s.kv_heads, s.head_dim, c.window_of(layer));
    const std::optional<uint32_t> rope = c.is_windowed(layer) ? ropes.local : ropes.global;
    Slot seen;
    if (rope) {
        seen = p.attend(cache, products, s, *rope, c.attention_scale(), q_norm, k_norm);
    } else {
        const auto [q, k, v] = products;
        p.append(RmsNorm{q, q_norm, s.head_dim, q});
        p.append(RmsNorm{k, k_norm, s.head_dim, k});
        p.append(KvStore{k, v, cache, s});
        seen = p.attention(cache, q, s, c.attention_scale());
    }
    p.append(OutputGate{gate, seen, s.head_dim, c.kind.gate});
    return seen;
}

// min(silu(gate), limit) * clamp(up, -limit, limit). Silu grows where it is above 0, so that a limit of gate
// does the same as one of silu(gate).
static void limited_silu(Slot gate, Slot up, float limit, PlanBuilder& p) {
    double low = 0.0, high = double(limit) + 1.0;
    for (int i = 0; i < 100; ++i) {
        const double middle = (low + high) / 2.0;
        (middle / (1.0 + std::exp(-middle)) < double(limit) ? low : high) = middle;
    }
    p.append(each::clamp(gate, std::numeric_limits<float>::lowest(), float(high)));
    p.append(each::clamp(up, -limit, limit));
    p.append(each::silu_times(gate, gate, up));
}

// 0: there is none.
static float limit_of(const std::vector<float>& limits, size_t layer) {
    return limits.empty() ? 0.0f : limits[layer];
}

static void experts(const GatedDecoder& c, const LayerWeights& l, size_t layer, Slot into, Slot h,
                    PlanBuilder& p) {
    const auto routing = route(c, l, h, p);
    if (const float limit = limit_of(c.expert_limits, layer); limit > 0.0f) {
        const Slot gate = p.experts(h, l["ffn_gate_exps"], routing),
                   up = p.experts(h, l["ffn_up_exps"], routing);
        limited_silu(gate, up, limit, p);
        p.add_experts(into, gate, l["ffn_down_exps"], routing);
    } else {
        p.experts_add(into, h, routing, gated_experts(l));
    }
    if (c.shared_ffn_dim == 0) return;
    Slot hidden;
    if (const float limit = limit_of(c.shared_limits, layer); limit > 0.0f) {
        hidden = p.linear(h, l["ffn_gate_shexp"]);
        limited_silu(hidden, p.linear(h, l["ffn_up_shexp"]), limit, p);
    } else {
        hidden = shared_hidden(l, h, p);
    }
    p.linear_add(into, hidden, l["ffn_down_shexp"]);
}

static void ffn(const GatedDecoder& c, const LayerWeights& l, size_t layer, Slot x, float eps_behind,
                PlanBuilder& p) {
    const Norm norm = c.norm(l["ffn_norm"]);
    if (!c.has_experts(layer)) {
        const Slot hidden = gated(l, x, norm, p);
        if (c.kind.norms_behind)
            add_normed(x, hidden, l["ffn_down"], {l["post_ffw_norm"], eps_behind}, p);
        else
            p.linear_add(x, hidden, l["ffn_down"]);
        return;
    }
    const bool limited = limit_of(c.expert_limits, layer) > 0.0f || limit_of(c.shared_limits, layer) > 0.0f;
    if (!c.kind.norms_behind && !limited) return add_experts(c, l, x, norm, p);
    const Slot h = p.rms_norm(x, norm);
    if (!c.kind.norms_behind) return experts(c, l, layer, x, h, p);
    const Slot sum = zeros_like(h, c.dim, p);
    experts(c, l, layer, sum, h, p);
    p.add(x, sum, 1.0f, {l["post_ffw_norm"], eps_behind});
}

void build_gated_decoder(const GatedDecoder& c, const WeightSet& w, PlanBuilder& p) {
    GatedRopes ropes{p.add_rope(c.local_rope), {}};
    if (!c.rope.inverse_frequency.empty()) ropes.global = p.add_rope(c.rope);
    const float eps_behind = c.kind.eps_behind > 0.0f ? c.kind.eps_behind : c.eps;
    Slot x = first_rows(c, w, p);
    if (c.kind.normed_embedding && !c.predicts()) x = p.rms_norm(x, {{}, c.eps});
    for (size_t i = c.first_layer; i < c.layers; ++i) {
        const LayerWeights& l = w.layers()[i];
        const Slot seen = attention(c, l, i, x, ropes, p);
        if (c.kind.norms_behind)
            add_normed(x, seen, l["attn_output"], {l["post_attention_norm"], eps_behind}, p);
        else
            p.linear_add(x, seen, l["attn_output"]);
        ffn(c, l, i, x, eps_behind, p);
        p.next_layer();
    }
    add_logits(c, w, x, p);
}

}  // namespace redline
