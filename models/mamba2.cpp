// State spaces of Mamba-2, and what is built of them: mamba2 has nothing else; of nemotron_h and
// nemotron_h_moe each layer is one of a state space, attention without rope, and an FFN or experts; of
// granitehybrid each layer is a state space or attention, with an FFN or experts behind it; of falcon-h1 it
// is both beside each other, with rope, and an FFN. Layers of nemotron_h that predict have attention and an
// FFN or experts: one layer has both, or two layers in turn make one head.
#include "arch/arch.h"
#include "arch/blocks.h"

#include <algorithm>
#include <cmath>

namespace redline::archs {

enum class Mixer : uint8_t { state_space, attention, both, none };

struct MambaKind {
    std::string_view name;
    LayersDiffer layers;
    bool all_scan = false;  // every layer is a state space and nothing else
    bool both = false;      // every layer has a state space and attention, and no layer has experts
    bool granite = false;   // factors and gated FFNs as Granite has them
};

constexpr MambaKind kKinds[] = {
    {.name = "mamba2", .layers = LayersDiffer::in_size, .all_scan = true},
    {.name = "nemotron_h", .layers = LayersDiffer::in_size},
    {.name = "nemotron_h_moe", .layers = LayersDiffer::in_size},
    {.name = "granitehybrid", .layers = LayersDiffer::in_kind, .granite = true},
    {.name = "falcon-h1", .layers = LayersDiffer::no, .both = true},
};

struct Mamba : Config {
    MambaKind kind;
    ScanShape scan = {};
    uint32_t taps = 0;          // of the convolution before the scan
    bool without_rope = false;  // of all layers with attention
    uint32_t expert_input = 0;  // width of the rows that experts read and write; 0: dim
};

static Mixer mixer_of(const Mamba& c, size_t layer) {
    if (c.kind.both) return Mixer::both;
    if (c.is_recurrent(layer)) return Mixer::state_space;
    return c.kv_heads_of.empty() || c.kv_heads_of[layer] > 0 ? Mixer::attention : Mixer::none;
}

// A layer of nemotron_h is its mixer or its FFN alone.
static bool has_ffn(const Mamba& c, size_t layer) {
    return c.ffn_dims.empty() || c.ffn_dims[layer] > 0;
}

// The norm before the FFN, which has a name for itself in a layer with attention before it.
static const char* ffn_norm(const Mamba& c, size_t layer) {
    const bool both = c.predicts() && mixer_of(c, layer) == Mixer::attention;
    return c.ffn_dims.empty() ? "ffn_norm" : both ? "post_attention_norm" : "attn_norm";
}

// Chooses the head that begins with the layer that is meant. What its layers have is told by their tensors:
// lists by layer may lack them.
static Status choose_head(const ModelFile& file, Mamba& c) {
    RL_TRY(leave_out_predicting_layers(file, c));
    const uint32_t all = c.layers + c.unused_layers;
    const auto tensor = [&](uint32_t layer, const char* name) {
        return file.gguf.find(fmt::format("blk.{}.{}.weight", layer, name));
    };
    if (!file.prediction) return {};
    RL_TRY(choose_layers(file, c));
    const auto ends = [&](uint32_t layer) { return tensor(layer, "nextn.shared_head_norm") != nullptr; };
    while (!ends(c.layers - 1) && c.layers < all && !tensor(c.layers, "nextn.eh_proj")) ++c.layers;
    c.unused_layers = 0;
    for (uint32_t i = c.first_layer; i < c.layers; ++i) {
        const GgufTensor *keys = tensor(i, "attn_k"), *ups = tensor(i, "ffn_up");
        const bool routes = tensor(i, "ffn_gate_inp") != nullptr;
        c.kv_heads_of[i] = keys ? uint32_t(keys->tensor.shape.rows) / c.heads.head_dim : 0;
        c.ffn_dims[i] = routes ? c.expert_ffn_dim : ups ? uint32_t(ups->tensor.shape.rows) : 0;
        if (c.kv_heads_of[i] == 0 && c.ffn_dims[i] == 0)
            return error("{}: layer {} predicts further tokens, and has neither attention nor an FFN",
                         file.gguf.path(), i);
        if (c.kv_heads_of[i] > 0 && c.heads.heads % c.kv_heads_of[i] != 0)
            return error("{}: {} heads are not a multiple of {} kv heads", file.gguf.path(), c.heads.heads,
                         c.kv_heads_of[i]);
    }
    return {};
}

static Status read_scan(const ModelFile& file, Mamba& c) {
    ScanShape& s = c.scan;
    s.heads = RL_TRY(count(file, "ssm.time_step_rank", {}, 1, 65536));
    s.groups = RL_TRY(count(file, "ssm.group_count", {}, 1, 65536));
    s.state_dim = RL_TRY(count(file, "ssm.state_size", {}, 1, 4096));
    const uint32_t inner = RL_TRY(count(file, "ssm.inner_size", {}, 1, 1u << 24));
    s.head_dim = inner / s.heads;
    if (s.head_dim == 0 || s.inner() != inner || s.heads % s.groups != 0)
        return error("{}: {} inner elements, {} heads and {} groups do not divide", file.gguf.path(), inner,
                     s.heads, s.groups);
    c.taps = RL_TRY(count(file, "ssm.conv_kernel", 4, 2, kMostTaps));
    return {};
}

static Status read_granite(const ModelFile& file, Mamba& c) {
    c.rope = RL_TRY(common_rope(file, c, false));
    c.without_rope = !RL_TRY(file.meta().boolean(file.key("rope.scaling.finetuned"), true));
    c.embedding_scale = RL_TRY(factor(file, "embedding_scale", 1.0f));
    c.residual_scale = RL_TRY(factor(file, "residual_scale", 1.0f));
    c.scale = RL_TRY(factor(file, "attention.scale", 0.0f));
    const float divisor = RL_TRY(factor(file, "logit_scale", 1.0f));
    if (divisor > 0.0f) c.logit_scale = 1.0f / divisor;
    c.gating = Gating::softmax_of_selected;
    c.expert_norm = false;
    c.expert_scale = c.residual_scale;
    return {};
}

static Result<Mamba> config(const ModelFile& file) {
    const MambaKind& kind = *std::ranges::find(kKinds, file.arch, &MambaKind::name);
    const float eps = RL_TRY(factor(file, "attention.layer_norm_epsilon", 1e-5f));
    Mamba c{RL_TRY(common_config(file, eps, kind.layers)), kind};
    RL_TRY(read_scan(file, c));
    if (kind.layers == LayersDiffer::in_size && !kind.all_scan) RL_TRY(choose_head(file, c));
    if (kind.both) {
        if (c.experts > 0)
            return error("{}: {} experts, where architecture {} has none", file.gguf.path(), c.experts,
                         file.arch);
        c.rope = RL_TRY(common_rope(file, c, true));
        return c;
    }
    RL_TRY(read_shared_experts(file, c, 0, !kind.granite));
    if (kind.granite) {
        RL_TRY(read_granite(file, c));
        return c;
    }
    c.without_rope = true;
    c.gating = Gating::sigmoid;
    c.expert_groups.by_two = true;
    c.expert_input = RL_TRY(count(file, "moe_latent_size", 0, 0, 1u << 20));
    for (uint32_t i = 0; i < c.layers; ++i) {
        const bool scans = kind.all_scan || (c.kv_heads_of[i] == 0 && c.ffn_dims[i] == 0);
        c.recurrent.push_back(scans);
        if (scans) c.ffn_dims[i] = 0;
    }
    return c;
}

static void mixer_weights(const Mamba& c, size_t layer, WeightList& w) {
    const ScanShape& s = c.scan;
    const uint64_t inner = s.inner(), all = inner + s.width() + s.heads;
    const Mixer mixer = mixer_of(c, layer);
    if (mixer != Mixer::none) w.vector("attn_norm", c.dim);
    if (mixer == Mixer::state_space || mixer == Mixer::both) {
        w.rows_of("gate", "ssm_in", all, 0, inner, c.dim);
        w.rows_of("inputs", "ssm_in", all, inner, s.width(), c.dim);
        w.rows_of("steps", "ssm_in", all, inner + s.width(), s.heads, c.dim);
        w.vector("ssm_conv1d", uint64_t(s.width()) * c.taps);
        w.optional_vector("ssm_conv1d.bias", s.width());
        w.vector("ssm_dt.bias", s.heads);
        w.vector("ssm_a", s.heads);
        w.vector("ssm_d", s.heads);
        w.optional_vector("ssm_norm", inner);
        w.matrix("ssm_out", c.dim, inner);
    }
    if (mixer == Mixer::attention || mixer == Mixer::both) {
        const uint64_t kv =
            uint64_t(c.kv_heads_of.empty() ? c.heads.kv_heads : c.kv_heads_of[layer]) * c.heads.head_dim;
        w.matrix("attn_q", c.q_dim(), c.dim);
        w.matrix("attn_k", kv, c.dim);
        w.matrix("attn_v", kv, c.dim);
        w.optional_vector("attn_q.bias", c.q_dim());
        w.optional_vector("attn_k.bias", kv);
        w.optional_vector("attn_v.bias", kv);
        w.matrix("attn_output", c.dim, c.q_dim());
        w.optional_vector("attn_output.bias", c.dim);
    }
}

// FFNs of granite have gates.
static void ffn_weights(const Mamba& c, size_t layer, WeightList& w) {
    const bool gated = c.ffn_dims.empty();
    const uint64_t input = c.expert_input > 0 ? c.expert_input : c.dim;
    w.vector(ffn_norm(c, layer), c.dim);
    if (c.experts == 0) {
        const uint64_t width = gated ? c.ffn_dim : c.ffn_dims[layer];
        if (gated) w.matrix("ffn_gate", width, c.dim);
        w.matrix("ffn_up", width, c.dim);
        w.matrix("ffn_down", c.dim, width);
        w.optional_vector("ffn_up.bias", width);
        w.optional_vector("ffn_down.bias", c.dim);
        return;
    }
    w.matrix("ffn_gate_inp", c.experts, c.dim);
    w.optional_vector("exp_probs_b.bias", c.experts);
    if (gated) w.experts("ffn_gate_exps", c.experts, c.expert_ffn_dim, input);
    w.experts("ffn_up_exps", c.experts, c.expert_ffn_dim, input);
    w.experts("ffn_down_exps", c.experts, input, c.expert_ffn_dim);
    if (c.expert_input > 0) {
        w.matrix("ffn_latent_down", input, c.dim);
        w.matrix("ffn_latent_up", c.dim, input);
    }
    if (c.shared_ffn_dim == 0) return;
    if (gated) w.matrix("ffn_gate_shexp", c.shared_ffn_dim, c.dim);
    w.matrix("ffn_up_shexp", c.shared_ffn_dim, c.dim);
    w.matrix("ffn_down_shexp", c.dim, c.shared_ffn_dim);
}

static void weights(const Mamba& c, WeightList& w) {
    w.embedding_and_output();
    for (uint32_t i = c.first_layer; i < c.layers; ++i) {
        w.in_layers(i, i + 1);
        mixer_weights(c, i, w);
        if (has_ffn(c, i)) ffn_weights(c, i, w);
    }
    w.ignore_unused_layers();
}

static Slot state_space(const Mamba& c, const LayerWeights& l, Slot x, PlanBuilder& p) {
    const ScanShape& s = c.scan;
    const auto [gate, inputs, steps] =
        p.group(x, {{{l["gate"]}, {l["inputs"]}, {l["steps"]}}}, c.norm(l["attn_norm"]));
    const Weight bias = l["ssm_conv1d.bias"];
    const Cache last = p.state(uint64_t(s.width()) * (c.taps - 1));
    const Slot mixed = p.slot(s.width());
    p.append(Convolve{inputs, l["ssm_conv1d"], mixed, last, c.taps, true, {}, {}, 1, bias});
    const Slot y = p.slot(s.inner());
    p.append(
        StateScan{mixed, steps, l["ssm_a"], l["ssm_dt.bias"], l["ssm_d"], y, p.state(s.state_floats()), s});
    if (!l["ssm_norm"]) {
        p.append(each::silu_times(y, gate, y));
        return y;
    }
    // Statistics are of a group, the gain is of the row.
    RmsNorm norm{y, c.norm(l["ssm_norm"]), s.inner() / s.groups, y, gate};
    norm.gates_x = true;
    p.append(norm);
    return y;
}

static Slot attention(const Mamba& c, const LayerWeights& l, size_t layer, Slot x, uint32_t rope,
                      PlanBuilder& p) {
    HeadShape shape = c.heads;
    if (!c.kv_heads_of.empty()) shape.kv_heads = c.kv_heads_of[layer];
    const auto products = qkv(p, x, l, c.norm(l["attn_norm"]));
    const Cache cache = p.cache(shape.kv_heads, shape.head_dim);
    return p.attend(cache, products, shape, rope, c.attention_scale());
}

static PlanBuilder::Routing route(const Mamba& c, const LayerWeights& l, Slot x, Norm norm, PlanBuilder& p) {
    return p.route(x, l["ffn_gate_inp"], c.experts_used, c.gating, c.expert_norm, c.expert_scale,
                   l["exp_probs_b.bias"], BiasOf::choice, c.expert_groups, {}, norm);
}

static void add_product(const Mamba& c, Slot x, Slot in, Weight w, Weight bias, PlanBuilder& p) {
    if (c.residual_scale == 1.0f)
        p.linear_add(x, in, w, bias);
    else
        p.add(x, p.linear(in, w, {}, bias), c.residual_scale);
}

static void gated_ffn(const Mamba& c, const LayerWeights& l, Slot x, PlanBuilder& p) {
    const Norm norm = c.norm(l["ffn_norm"]);
    if (c.experts == 0) return add_product(c, x, gated(l, x, norm, p), l["ffn_down"], {}, p);
    if (c.residual_scale == 1.0f) return add_experts(c, l, x, norm, p);
    const Slot h = p.rms_norm(x, norm);
    p.experts_add(x, h, route(c, l, h, {}, p), gated_experts(l));
    if (c.shared_ffn_dim > 0) add_product(c, x, shared_hidden(l, h, p), l["ffn_down_shexp"], {}, p);
}

// down(relu(up)^2), without gates; experts may read and write vectors of another width.
static void plain_ffn(const Mamba& c, const LayerWeights& l, size_t layer, Slot x, PlanBuilder& p) {
    const Norm norm = c.norm(l[ffn_norm(c, layer)]);
    const auto add = [&](Slot in, Weight up, Weight down, Norm in_norm, Weight up_bias, Weight down_bias) {
        const Slot hidden = p.linear(in, up, in_norm, up_bias, Function::squared_relu);
        p.linear_add(x, hidden, down, down_bias);
    };
    if (c.experts == 0) return add(x, l["ffn_up"], l["ffn_down"], norm, l["ffn_up.bias"], l["ffn_down.bias"]);
    const Slot h = p.rms_norm(x, norm);
    const auto routing = route(c, l, x, norm, p);
    // Before the experts, beside whose products it then runs.
    if (c.shared_ffn_dim > 0) add(x, l["ffn_up_shexp"], l["ffn_down_shexp"], norm, {}, {});
    Slot in = h, into = x;
    if (c.expert_input > 0) {
        in = p.linear(h, l["ffn_latent_down"]);
        into = zeros_like(in, c.expert_input, p);
    }
    const Slot hidden = p.experts(in, l["ffn_up_exps"], routing, Function::squared_relu);
    p.add_experts(into, hidden, l["ffn_down_exps"], routing);
    if (c.expert_input > 0) p.linear_add(x, into, l["ffn_latent_up"]);
}

static void build(const Mamba& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = c.without_rope ? kNoRope : p.add_rope(c.rope);
    const Slot x = first_rows(c, w, p);
    for (size_t i = c.first_layer; i < c.layers; ++i) {
        const LayerWeights& l = w.layers()[i];
        const Mixer mixer = mixer_of(c, i);
        // Both read x before either adds to it.
        Slot scanned, seen;
        if (mixer == Mixer::state_space || mixer == Mixer::both) scanned = state_space(c, l, x, p);
        if (mixer == Mixer::attention || mixer == Mixer::both) seen = attention(c, l, i, x, rope, p);
        if (scanned) add_product(c, x, scanned, l["ssm_out"], {}, p);
        if (seen) add_product(c, x, seen, l["attn_output"], l["attn_output.bias"], p);
        if (has_ffn(c, i)) c.ffn_dims.empty() ? gated_ffn(c, l, x, p) : plain_ffn(c, l, i, x, p);
        p.next_layer();
    }
    add_logits(c, w, x, p);
}

extern const Arch mamba2 = make_arch<config, weights, build>(
    {"mamba2", "nemotron_h", "nemotron_h_moe", "granitehybrid", "falcon-h1"});

}  // namespace redline::archs
