// Qwen3.5 to 3.8, dense or with experts (qwen35moe), and Qwen3-Next: most layers follow the gated delta rule
// behind a short convolution, every fourth is attention whose output is gated. The shared expert is gated,
// too. The first of the layers that predict further tokens is attention.
#include "qwen35.h"

namespace redline::archs {

struct Qwen35 : Config {
    DeltaLayers delta = {};
};

static Status read_delta(const ModelFile& file, const Config& c, DeltaLayers& delta) {
    DeltaShape& s = delta.shape;
    s.key_heads = RL_TRY(count(file, "ssm.group_count", {}, 1, 65536));
    s.heads = RL_TRY(count(file, "ssm.time_step_rank", {}, 1, 65536));
    s.key_dim = RL_TRY(count(file, "ssm.state_size", {}, 1, 4096));
    const uint32_t values = RL_TRY(count(file, "ssm.inner_size", {}, 1, 1u << 24));
    s.value_dim = values / s.heads;
    if (s.heads % s.key_heads != 0 || s.value_dim == 0 || s.values() != values)
        return error("{}: {} values for {} heads, and {} heads of keys, do not divide", file.gguf.path(),
                     values, s.heads, s.key_heads);
    // Converters of qwen35 put the heads that share a head of keys apart.
    s.in_turns =
        file.arch != "qwen3next" && RL_TRY(file.meta().boolean(file.key("ssm.v_head_reordered"), true));
    delta.taps = RL_TRY(count(file, "ssm.conv_kernel", 4, 2, kMostTaps));
    delta.in_one = file.any_layer_has("ssm_in.weight", c.layers);
    delta.steps_in_one = file.any_layer_has("ssm_ba.weight", c.layers);
    return {};
}

Result<Config> read_qwen35(const ModelFile& file, DeltaLayers& delta) {
    Config c = RL_TRY(common_config(file, {}, LayersDiffer::in_kind));
    c.rope = RL_TRY(common_rope(file, c, true));
    RL_TRY(leave_out_predicting_layers(file, c));
    RL_TRY(read_delta(file, c, delta));
    if (c.recurrent.empty()) {
        const uint32_t every = RL_TRY(count(file, "full_attention_interval", 4, 1, 1024));
        for (uint32_t i = 0; i < c.layers; ++i) c.recurrent.push_back((i + 1) % every != 0);
    }
    c.recurrent.resize(c.layers);
    if (c.experts == 0) return c;
    c.shared_ffn_dim =
        RL_TRY(count(file, "expert_shared_feed_forward_length", c.expert_ffn_dim, 1, 1u << 24));
    c.expert_norm = true;
    return c;
}

static Result<Qwen35> config(const ModelFile& file) {
    DeltaLayers delta = {};
    Config c = RL_TRY(read_qwen35(file, delta));
    RL_TRY(choose_layers(file, c));
    c.recurrent.resize(c.layers);  // a layer that predicts is attention
    return Qwen35{std::move(c), delta};
}

void delta_weights(const Config& c, const DeltaLayers& delta, WeightList& w) {
    const DeltaShape& s = delta.shape;
    if (delta.in_one) {
        w.matrix("ssm_in", s.width() + s.values(), c.dim);
    } else {
        w.matrix("attn_qkv", s.width(), c.dim);
        w.matrix("attn_gate", s.values(), c.dim);
    }
    if (delta.steps_in_one) {
        w.matrix("ssm_ba", 2 * s.heads, c.dim);
    } else {
        w.matrix("ssm_beta", s.heads, c.dim);
        w.matrix("ssm_alpha", s.heads, c.dim);
    }
    w.vector("ssm_conv1d", uint64_t(s.width()) * delta.taps);
    w.vector("ssm_dt.bias", s.heads, "ssm_dt");
    w.vector("ssm_a", s.heads);
    w.vector("ssm_norm", s.value_dim);
    w.matrix("ssm_out", c.dim, s.values());
}

void qwen35_ffn_weights(const Config& c, WeightList& w) {
    if (c.experts == 0) return w.gated_ffn();
    w.routed_experts();
    w.matrix("ffn_gate_inp_shexp", 1, c.dim);
    w.shared_expert();
}

static void weights(const Qwen35& c, WeightList& w) {
    w.embedding_and_output();
    for (uint32_t i = c.first_layer; i < c.layers; ++i) {
        w.in_layers(i, i + 1);
        w.vector("attn_norm", c.dim);
        w.vector("post_attention_norm", c.dim);
        if (c.is_recurrent(i)) {
            delta_weights(c, c.delta, w);
        } else {
            w.matrix("attn_q", 2 * uint64_t(c.q_dim()), c.dim);
            w.matrix("attn_k", c.kv_dim(), c.dim);
            w.matrix("attn_v", c.kv_dim(), c.dim);
            w.vector("attn_q_norm", c.heads.head_dim);
            w.vector("attn_k_norm", c.heads.head_dim);
            w.matrix("attn_output", c.dim, c.q_dim());
        }
        qwen35_ffn_weights(c, w);
    }
    w.ignore_unused_layers();
    w.ignore("mtp.");
    w.ignore("output_extra.weight");
}

// A query stands beside its gate in each head.
static Slot gated_attention(const Config& c, const LayerWeights& l, Slot x, uint32_t rope, PlanBuilder& p) {
    const uint32_t d = c.heads.head_dim;
    const auto [both, k, v] = qkv(p, x, l, c.norm(l["attn_norm"]));
    const Slot q = p.parts_of(both, c.heads.heads, d, 0, 2 * d);
    const Slot seen = p.attend(p.cache(c.heads.kv_heads, d), {q, k, v}, c.heads, rope, c.attention_scale(),
                               c.norm(l["attn_q_norm"]), c.norm(l["attn_k_norm"]));
    p.append(OutputGate{both, seen, d});
    return seen;
}

struct DeltaInputs {
    Slot qkv, z, beta, alpha;
};

// One group of four where beta and alpha have the gates' format; qkv, to which quantizers give more bits in
// some layers, comes last, as kernels of two formats want it. Else beta and alpha are a second group, behind
// the larger one: of several groups only the first takes x in int8.
static DeltaInputs delta_inputs(const DeltaLayers& delta, const LayerWeights& l, Slot x, Norm norm,
                                PlanBuilder& p) {
    const DeltaShape& s = delta.shape;
    const uint32_t heads = s.heads / s.key_heads, values = heads * s.value_dim;
    const auto format = [&](const char* name) {
        return l[name] ? p.plan().weight(l[name]).tensor.format : nullptr;
    };
    if (!delta.in_one && !delta.steps_in_one && format("attn_gate") == format("ssm_beta") &&
        format("ssm_beta") == format("ssm_alpha")) {
        const auto [z, beta, alpha, qkv] =
            p.group(x, {l["attn_gate"]}, {l["ssm_beta"]}, {l["ssm_alpha"]}, {l["attn_qkv"]}, norm);
        return {qkv, z, beta, alpha};
    }
    DeltaInputs in;
    if (delta.in_one) {
        // Each head of keys has its queries, keys, values and gates side by side.
        const uint32_t stride = 2 * (s.key_dim + values);
        const Slot all = p.linear(x, l["ssm_in"], norm);
        in.qkv = p.slot(s.width());
        const auto copy = [&](uint32_t width, uint32_t first, uint32_t to) {
            p.append(CopyParts{all, in.qkv, s.key_heads, width, first, stride, to, width});
        };
        copy(s.key_dim, 0, 0);
        copy(s.key_dim, s.key_dim, s.keys());
        copy(values, 2 * s.key_dim, 2 * s.keys());
        in.z = p.parts_of(all, s.key_heads, values, 2 * s.key_dim + values, stride);
    } else {
        const auto [z, qkv] = p.group(x, {l["attn_gate"]}, {l["attn_qkv"]}, norm);
        in.qkv = qkv, in.z = z;
    }
    if (delta.steps_in_one) {
        // Each head of keys has the step sizes of its heads of values, then their decays.
        const Slot both = p.linear(x, l["ssm_ba"], norm);
        in.beta = p.parts_of(both, s.key_heads, heads, 0, 2 * heads);
        in.alpha = p.parts_of(both, s.key_heads, heads, heads, 2 * heads);
    } else {
        const auto [beta, alpha] = p.group(x, {l["ssm_beta"]}, {l["ssm_alpha"]}, norm);
        in.beta = beta, in.alpha = alpha;
    }
    return in;
}

DeltaOutput delta_rule(const Config& c, const DeltaLayers& delta, const LayerWeights& l, Slot x, Norm norm,
                       PlanBuilder& p) {
    const DeltaShape& s = delta.shape;
    const DeltaInputs in = delta_inputs(delta, l, x, norm, p);
    const Cache last = p.state(uint64_t(s.width()) * (delta.taps - 1));
    const Slot mixed = p.convolve(last, in.qkv, l["ssm_conv1d"], delta.taps, true);
    const Slot y = p.slot(s.values());
    p.append(
        DeltaNet{mixed, in.beta, in.alpha, l["ssm_a"], l["ssm_dt.bias"], y, p.state(s.state_floats()), s});
    return {y, in.z, c.norm(l["ssm_norm"])};
}

static Slot delta(const Qwen35& c, const LayerWeights& l, Slot x, PlanBuilder& p) {
    const auto [y, gate, norm] = delta_rule(c, c.delta, l, x, c.norm(l["attn_norm"]), p);
    p.append(RmsNorm{y, norm, c.delta.shape.value_dim, y, gate, Act::silu});
    return y;
}

static void add_ffn(const Config& c, const LayerWeights& l, Slot x, PlanBuilder& p) {
    const Norm norm = c.norm(l["post_attention_norm"]);
    c.experts > 0 ? add_experts(c, l, x, norm, p) : add_gated_ffn(l, x, norm, p);
}

static void build(const Qwen35& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope);
    const Slot x = first_rows(c, w, p);
    for (size_t i = c.first_layer; i < c.layers; ++i) {
        const LayerWeights& l = w.layers()[i];
        if (c.is_recurrent(i))
            p.linear_add(x, delta(c, l, x, p), l["ssm_out"]);
        else
            p.linear_add(x, gated_attention(c, l, x, rope, p), l["attn_output"]);
        add_ffn(c, l, x, p);
        p.next_layer();
    }
    add_logits(c, w, x, p);
}

extern const Arch qwen35 = make_arch<config, weights, build>({"qwen35", "qwen35moe", "qwen3next"});

}  // namespace redline::archs
