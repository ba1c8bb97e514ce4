// Gemma 4, the text part: layers with a window have heads of another size than those that see everything, and
// values are normed like keys. The last layers of the small models see the keys and values of earlier ones,
// and each layer gets something of the token beside x; large ones may have experts beside the dense FFN.
#include "gemma4.h"

#include <algorithm>
#include <cmath>

namespace redline::archs {

struct Gemma4 : Config {
    HeadShape local_heads = {};            // of layers with a window
    std::vector<bool> raw_values = {};     // by layer: values are keys before their norm
    std::vector<float> layer_scales = {};  // multiply x behind each layer
};

uint32_t first_sharing(const Config& c) {
    return c.layers - c.shared_caches;
}

uint32_t layer_of_cache(const Config& c, uint32_t layer) {
    if (layer < first_sharing(c)) return layer;
    uint32_t from = first_sharing(c) - 1;
    while (from > 0 && c.is_windowed(from) != c.is_windowed(layer)) --from;
    return from;
}

static HeadShape shape_of(const Gemma4& c, uint32_t layer) {
    const uint32_t head_dim = c.is_windowed(layer) ? c.local_heads.head_dim : c.heads.head_dim;
    return {c.heads.heads, c.kv_heads_of[layer_of_cache(c, layer)], head_dim};
}

static Status read_ropes(const ModelFile& file, Gemma4& c) {
    const uint32_t dims = RL_TRY(count(file, "rope.dimension_count", c.heads.head_dim, 2, c.heads.head_dim));
    const std::vector<float> factors = RL_TRY(file.floats("rope_freqs.weight", dims / 2));
    c.rope = RL_TRY(common_rope(file, c, true, factors));
    const uint32_t local = c.local_heads.head_dim;
    const uint32_t pairs = RL_TRY(count(file, "rope.dimension_count_swa", local, 2, local)) / 2;
    const float base = RL_TRY(factor(file, "rope.freq_base_swa", 10000.0f));
    if (!(base > 1.0f))
        return error("{}: {} is {}, more than 1 expected", file.gguf.path(), file.key("rope.freq_base_swa"),
                     base);
    c.local_rope = RopeSpec{true, {}, 1.0};
    for (uint32_t i = 0; i < pairs; ++i)
        c.local_rope.inverse_frequency.push_back(std::pow(double(base), -double(i) / pairs));
    return {};
}

Status check_shared_caches(const ModelFile& file, const Config& c) {
    if (c.heads.heads == 0)
        return error("{}: {} is missing or zero", file.gguf.path(), file.key("attention.head_count"));
    for (uint32_t i = 0; i < c.layers; ++i) {
        const uint32_t from = layer_of_cache(c, i);
        if (c.is_windowed(from) != c.is_windowed(i))
            return error("{}: no layer before {} has keys and values that layer {} could share",
                         file.gguf.path(), first_sharing(c), i);
        if (c.kv_heads_of[from] == 0 || c.ffn_dims[i] == 0)
            return error("{}: layer {} has no kv heads or no FFN", file.gguf.path(), i);
    }
    return {};
}

static Result<Gemma4> config(const ModelFile& file) {
    Gemma4 c{RL_TRY(common_config(file, 1e-6f, LayersDiffer::in_size))};
    c.embedding_scale = std::sqrt(float(c.dim));
    c.scale = 1.0f;
    RL_TRY(read_windows(file, c, 6, 0));
    c.local_heads = c.heads;
    c.local_heads.head_dim = RL_TRY(count(file, "attention.key_length_swa", c.heads.head_dim, 1, 4096));
    c.shared_caches = RL_TRY(count(file, "attention.shared_kv_layers", 0, 0, c.layers - 1));
    RL_TRY(check_shared_caches(file, c));
    RL_TRY(read_ropes(file, c));
    c.layer_input = RL_TRY(count(file, "embedding_length_per_layer_input", 0, 0, 1u << 16));
    c.logit_softcap = RL_TRY(factor(file, "final_logit_softcapping", 0.0f));
    for (uint32_t i = 0; i < c.layers; ++i) {
        const auto scale = RL_TRY(file.floats(fmt::format("blk.{}.layer_output_scale.weight", i), 1));
        c.layer_scales.push_back(scale.empty() ? 1.0f : scale[0]);
        c.raw_values.push_back(!file.gguf.find(fmt::format("blk.{}.attn_v.weight", i)));
    }
    return c;
}

void ignore_keys_and_values(uint32_t layer, WeightList& w) {
    for (const char* name : {"attn_k.weight", "attn_v.weight", "attn_k_norm.weight"})
        w.ignore(fmt::format("blk.{}.{}", layer, name));
}

static void attention_weights(const Gemma4& c, uint32_t layer, WeightList& w) {
    const HeadShape s = shape_of(c, layer);
    const uint64_t kv = uint64_t(s.kv_heads) * s.head_dim;
    w.vector("attn_norm", c.dim);
    w.matrix("attn_q", uint64_t(s.heads) * s.head_dim, c.dim);
    w.vector("attn_q_norm", s.head_dim);
    w.matrix("attn_output", c.dim, uint64_t(s.heads) * s.head_dim);
    w.vector("post_attention_norm", c.dim);
    if (layer >= first_sharing(c)) return ignore_keys_and_values(layer, w);
    w.matrix("attn_k", kv, c.dim);
    w.vector("attn_k_norm", s.head_dim);
    if (!c.raw_values[layer]) w.matrix("attn_v", kv, c.dim);
}

static void ffn_weights(const Gemma4& c, uint32_t layer, WeightList& w) {
    const uint64_t width = c.ffn_dims[layer];
    w.vector("ffn_norm", c.dim);
    w.matrix("ffn_gate", width, c.dim);
    w.matrix("ffn_up", width, c.dim);
    w.matrix("ffn_down", c.dim, width);
    w.vector("post_ffw_norm", c.dim);
    if (c.experts > 0) {
        w.routed_experts();
        w.vector("ffn_gate_inp.scale", c.dim);
        w.vector("pre_ffw_norm_2", c.dim);
        w.vector("post_ffw_norm_1", c.dim);
        w.vector("post_ffw_norm_2", c.dim);
        w.vector("ffn_down_exps.scale", c.experts, "ffn_gate_inp.per_expert_scale");
    }
    if (c.layer_input > 0) {
        w.matrix("inp_gate", c.layer_input, c.dim);
        w.matrix("proj", c.dim, c.layer_input);
        w.vector("post_norm", c.dim);
    }
    w.ignore(fmt::format("blk.{}.layer_output_scale.weight", layer));
}

void layer_input_weights(const Config& c, WeightList& w) {
    const uint64_t all = uint64_t(c.layer_input) * c.layers;
    w.global_matrix("per_layer_token_embd", c.vocab, all);
    w.global_matrix("per_layer_model_proj", all, c.dim);
    w.global_vector("per_layer_proj_norm", c.layer_input);
}

static void weights(const Gemma4& c, WeightList& w) {
    w.embedding_and_output();
    if (c.layer_input > 0) layer_input_weights(c, w);
    for (uint32_t i = 0; i < c.layers; ++i) {
        w.in_layers(i, i + 1);
        attention_weights(c, i, w);
        ffn_weights(c, i, w);
    }
    w.ignore_rope_factors();
}

Slot layer_inputs(const Config& c, const WeightSet& w, Slot x, PlanBuilder& p) {
    const float half = std::sqrt(0.5f);
    const Slot all = p.linear(x, w["per_layer_model_proj"]);
    p.append(each::scale(all, 1.0f / std::sqrt(float(c.dim))));
    p.append(RmsNorm{all, c.norm(w["per_layer_proj_norm"]), c.layer_input, all});
    p.append(each::scale(all, half));
    p.add(all, p.embed(w["per_layer_token_embd"], std::sqrt(float(c.layer_input)) * half));
    return all;
}

Slot of_layer_input(const Config& c, const LayerWeights& l, uint32_t layer, Slot x, Slot inputs,
                    PlanBuilder& p) {
    const Slot gate = p.linear(x, l["inp_gate"]);
    const Slot input = p.parts_of(inputs, 1, c.layer_input, layer * c.layer_input, c.layer_input);
    p.append(each::gelu_times(gate, gate, input));
    return p.linear(gate, l["proj"]);
}

struct Gemma4Ropes {
    uint32_t global, local;
};

static Slot attention(const Gemma4& c, const LayerWeights& l, uint32_t layer, Slot x,
                      const Gemma4Ropes& ropes, std::vector<Cache>& caches, PlanBuilder& p) {
    const HeadShape s = shape_of(c, layer);
    const uint32_t rope = c.is_windowed(layer) ? ropes.local : ropes.global;
    const Norm norm = c.norm(l["attn_norm"]), q_norm = c.norm(l["attn_q_norm"]);
    if (layer >= first_sharing(c)) {
        const Slot q = p.linear(x, l["attn_q"], norm);
        p.append(RmsNorm{q, q_norm, s.head_dim, q});
        p.append(Rope{q, s.heads, s.head_dim, rope});
        return p.attention(caches[layer_of_cache(c, layer)], q, s, c.scale);
    }
    caches.push_back(p.cache(s.kv_heads, s.head_dim, c.window_of(layer)));
    Slot q, k, v;
    if (c.raw_values[layer]) {
        q = p.linear(x, l["attn_q"], norm);
        k = p.linear(x, l["attn_k"], norm);
        v = p.slot(s.kv_heads * s.head_dim);
    } else {
        const auto products = qkv(p, x, l, norm);
        q = products[0], k = products[1], v = products[2];
    }
    if (c.raw_values[layer]) p.append(RmsNorm{k, {{}, c.eps}, s.head_dim, v});
    return p.attend(caches.back(), {q, k, v}, s, rope, c.scale, q_norm, c.norm(l["attn_k_norm"]), 0.0f, {},
                    c.raw_values[layer] ? 0.0f : c.eps);
}

// Experts see what the dense FFN sees, normed in another way; the router, in a third.
static Slot experts(const Config& c, const LayerWeights& l, Slot x, PlanBuilder& p) {
    const auto routing =
        p.route(x, l["ffn_gate_inp"], c.experts_used, Gating::softmax, true, 1.0f, {}, BiasOf::choice, {}, {},
                c.norm(l["ffn_gate_inp.scale"]), 1.0f / std::sqrt(float(c.dim)));
    p.append(ScaleByExpert{routing.scales, routing.ids, l["ffn_down_exps.scale"]});
    const Slot h = p.rms_norm(x, c.norm(l["pre_ffw_norm_2"]));
    const Slot sum = p.rms_norm(x, {{}, c.eps}, 0.0f);  // zero, to which experts are added
    p.experts_add(sum, h, routing,
                  {l["ffn_gate_exps"], l["ffn_up_exps"], l["ffn_down_exps"], Act::gelu_tanh});
    return sum;
}

// x = scale * (x + the FFN of x).
static void ffn(const Config& c, const LayerWeights& l, Slot x, float scale, PlanBuilder& p) {
    const Slot hidden = gated(l, x, c.norm(l["ffn_norm"]), p, Act::gelu_tanh);
    const Slot out = p.linear(hidden, l["ffn_down"]);
    if (c.experts > 0) {
        const Slot of_experts = experts(c, l, x, p);
        p.append(NormedSum{out, of_experts, c.norm(l["post_ffw_norm_1"]), c.norm(l["post_ffw_norm_2"]),
                           c.norm(l["post_ffw_norm"]), x, scale});
        return;
    }
    p.add(x, out, 1.0f, c.norm(l["post_ffw_norm"]));
    if (scale != 1.0f) p.append(each::scale(x, scale));
}

static void build(const Gemma4& c, const WeightSet& w, PlanBuilder& p) {
    const Gemma4Ropes ropes{p.add_rope(c.rope), p.add_rope(c.local_rope)};
    const Slot x = p.embed(w["token_embd"], c.embedding_scale);
    const Slot inputs = c.layer_input > 0 ? layer_inputs(c, w, x, p) : Slot();
    std::vector<Cache> caches;
    for (uint32_t i = 0; i < c.layers; ++i) {
        const LayerWeights& l = w.layers()[i];
        const Slot seen = attention(c, l, i, x, ropes, caches, p);
        add_normed(x, seen, l["attn_output"], c.norm(l["post_attention_norm"]), p);
        const float scale = c.layer_scales[i];
        ffn(c, l, x, inputs ? 1.0f : scale, p);
        if (inputs) p.add(x, of_layer_input(c, l, i, x, inputs, p), 1.0f, c.norm(l["post_norm"]));
        if (inputs && scale != 1.0f) p.append(each::scale(x, scale));
        p.next_layer();
    }
    add_logits(c, w, x, p);
}

extern const Arch gemma4 = make_arch<config, weights, build>({"gemma4"});

}  // namespace redline::archs
