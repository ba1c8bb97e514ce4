// Granite 3 and 4 without Mamba layers, dense or with experts (granitemoe): Llama with factors of embeddings,
// scores, residuals and logits; experts are weighted by a softmax over the logits of the chosen, beside one
// that all tokens share, where the file has it. granite_swa adds sinks, and layers with a window or without
// rope. MiniCPM 1, 2 and 4 have such factors, too, but of scores.
#include "arch/arch.h"
#include "arch/blocks.h"

#include <algorithm>
#include <cmath>

namespace redline::archs {

struct GraniteKind {
    std::string_view name;
    bool windowed = false;  // sinks, layers with a window, and one tensor of the shared gate and up
    bool minicpm = false;   // files from before it had the keys leave its factors out
};

constexpr GraniteKind kKinds[] = {
    {"granite"},
    {"granitemoe"},
    {.name = "granite_swa", .windowed = true},
    {.name = "minicpm", .minicpm = true},
};

struct Granite : Config {
    GraniteKind kind;
};

static Status read_windows_and_ropes(const ModelFile& file, Config& c) {
    const std::string windows = file.key("attention.sliding_window_pattern");
    if (!file.meta().find(windows)) return error("{}: {} is missing", file.gguf.path(), windows);
    RL_TRY(read_windows(file, c, 1, 0));
    const std::vector<uint64_t> roped =
        RL_TRY(file.meta().integers(file.key("attention.rope_pattern"), c.layers, 1));
    c.roped.assign(roped.begin(), roped.end());
    return {};
}

static Result<Granite> config(const ModelFile& file) {
    Granite c{RL_TRY(common_config(file)), *std::ranges::find(kKinds, file.arch, &GraniteKind::name)};
    const bool minicpm = c.kind.minicpm;
    std::vector<float> factors = RL_TRY(longrope_factors(file, c));
    if (factors.empty()) factors = RL_TRY(rope_factors(file, c));
    c.rope = RL_TRY(common_rope(file, c, false, factors));
    const float of_layers = 1.4f / std::sqrt(float(c.layers)), of_logits = float(c.dim) / 256.0f;
    c.embedding_scale = RL_TRY(factor(file, "embedding_scale", minicpm ? 12.0f : 1.0f));
    c.residual_scale = RL_TRY(factor(file, "residual_scale", minicpm ? of_layers : 1.0f));
    if (!minicpm) c.scale = RL_TRY(factor(file, "attention.scale", 0.0f));
    const float divisor = RL_TRY(factor(file, "logit_scale", minicpm ? of_logits : 1.0f));
    if (divisor > 0.0f) c.logit_scale = 1.0f / divisor;
    if (c.kind.windowed) RL_TRY(read_windows_and_ropes(file, c));
    RL_TRY(read_shared_experts(file, c, 0));
    return c;
}

static void shared_weights(const Granite& c, WeightList& w) {
    if (!c.kind.windowed || c.shared_ffn_dim == 0) return w.shared_expert();
    const uint64_t width = c.shared_ffn_dim;
    w.rows_of("ffn_gate_shexp", "ffn_up_shexp", 2 * width, 0, width, c.dim);
    w.rows_of("ffn_up_shexp", "ffn_up_shexp", 2 * width, width, width, c.dim);
    w.matrix("ffn_down_shexp", c.dim, width);
}

static void weights(const Granite& c, WeightList& w) {
    w.embedding_and_output();
    w.attention({.biases = Presence::optional, .output_bias = Presence::optional});
    if (c.kind.windowed) w.vector("attn_sinks", c.heads.heads);
    w.vector("ffn_norm", c.dim);
    w.ignore_rope_factors();
    w.ignore_longrope_factors();
    if (c.experts == 0) return w.gated_ffn();
    w.routed_experts();
    shared_weights(c, w);
}

static void add_ffn(const Granite& c, const LayerWeights& l, Slot x, PlanBuilder& p) {
    const Norm norm = c.norm(l["ffn_norm"]);
    if (c.experts == 0) return p.add(x, p.linear(gated(l, x, norm, p), l["ffn_down"]), c.residual_scale);
    const Slot h = p.rms_norm(x, norm);
    const auto routing =
        p.route(h, l["ffn_gate_inp"], c.experts_used, Gating::softmax_of_selected, false, c.residual_scale);
    p.experts_add(x, h, routing, gated_experts(l));
    if (c.shared_ffn_dim > 0)
        p.add(x, p.linear(shared_hidden(l, h, p), l["ffn_down_shexp"]), c.residual_scale);
}

static void build(const Granite& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope);
    const Slot x = p.embed(w["token_embd"], c.embedding_scale);
    for (size_t i = 0; i < c.layers; ++i) {
        const LayerWeights& l = w.layers()[i];
        const AttentionWay way{c.has_rope(i) ? rope : kNoRope, c.window_of(i)};
        const Slot seen = attend(c, l, x, c.norm(l["attn_norm"]), way, p);
        p.add(x, p.linear(seen, l["attn_output"], {}, l["attn_output.bias"]), c.residual_scale);
        add_ffn(c, l, x, p);
        p.next_layer();
    }
    add_logits(c, w, x, p);
}

extern const Arch granite =
    make_arch<config, weights, build>({"granite", "granitemoe", "granite_swa", "minicpm"});

}  // namespace redline::archs
