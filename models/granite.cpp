// Granite 3 and 4 without Mamba layers, dense or with experts (granitemoe): llama with factors of embeddings,
// scores, residuals and logits; experts are weighted by a softmax over the logits of the chosen, beside one
// that all tokens share, where the file has it. granite_swa adds sinks, and layers with a window or without
// rope. MiniCPM 1, 2 and 4 have such factors, too, but of scores.
#include "arch/arch.h"

#include <cmath>

namespace redline::archs {

static Status read_kinds(const ModelFile& file, Config& c) {
    const std::string windows = file.key("attention.sliding_window_pattern");
    if (!file.meta().find(windows)) return error("{}: {} is missing", file.gguf.path(), windows);
    RL_TRY(read_windows(file, c, 1, 0));
    const std::vector<uint64_t> roped =
        RL_TRY(file.meta().integers(file.key("attention.rope_pattern"), c.layers, 1));
    c.roped.assign(roped.begin(), roped.end());
    return {};
}

static Result<Config> config(const ModelFile& file) {
    Config c = RL_TRY(common_config(file));
    const bool minicpm = file.arch == "minicpm";
    std::vector<float> factors = RL_TRY(longrope_factors(file, c));
    if (factors.empty()) factors = RL_TRY(file.floats("rope_freqs.weight", c.heads.head_dim / 2));
    c.rope = RL_TRY(common_rope(file, c, false, factors));
    // Files of MiniCPM from before it had the keys leave them out.
    const float of_layers = 1.4f / std::sqrt(float(c.layers)), of_logits = float(c.dim) / 256.0f;
    c.embedding_scale = RL_TRY(factor(file, "embedding_scale", minicpm ? 12.0f : 1.0f));
    c.residual_scale = RL_TRY(factor(file, "residual_scale", minicpm ? of_layers : 1.0f));
    if (!minicpm) c.scale = RL_TRY(factor(file, "attention.scale", 0.0f));
    const float divisor = RL_TRY(factor(file, "logit_scale", minicpm ? of_logits : 1.0f));
    if (divisor > 0.0f) c.logit_scale = 1.0f / divisor;
    if (file.arch == "granite_swa") RL_TRY(read_kinds(file, c));
    RL_TRY(read_shared_experts(file, c, 0));
    return c;
}

static void weights(const Config& c, WeightList& w) {
    w.embedding_and_output();
    w.vector("attn_norm", c.dim);
    w.queries_keys_values();
    w.matrix("attn_output", c.dim, c.q_dim());
    w.optional_biases();
    w.optional_vector("attn_output.bias", c.dim);
    if (!c.windowed.empty()) w.vector("attn_sinks", c.heads.heads);
    w.vector("ffn_norm", c.dim);
    w.ignore("rope_freqs.weight");
    w.ignore("rope_factors_long.weight");
    w.ignore("rope_factors_short.weight");
    if (c.experts == 0) {
        w.gated_ffn();
        return;
    }
    w.matrix("ffn_gate_inp", c.experts, c.dim);
    w.gated_experts();
    if (c.shared_ffn_dim == 0) return;
    w.matrix("ffn_down_shexp", c.dim, c.shared_ffn_dim);
    if (c.windowed.empty()) {
        w.matrix("ffn_gate_shexp", c.shared_ffn_dim, c.dim);
        w.matrix("ffn_up_shexp", c.shared_ffn_dim, c.dim);
        return;
    }
    const uint64_t both = 2 * uint64_t(c.shared_ffn_dim);
    w.rows_of("ffn_gate_shexp", "ffn_up_shexp", both, 0, c.shared_ffn_dim, c.dim);
    w.rows_of("ffn_up_shexp", "ffn_up_shexp", both, c.shared_ffn_dim, c.shared_ffn_dim, c.dim);
}

static void build(const Config& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope);
    const Slot x = p.embed(w["token_embd"], c.embedding_scale);
    for (size_t i = 0; i < c.layers; ++i) {
        const LayerWeights& l = w.layers()[i];
        const Weight sinks = c.windowed.empty() ? Weight{} : l["attn_sinks"];
        const auto qkv = p.group(x,
                                 {{{l["attn_q"], l["attn_q.bias"]},
                                   {l["attn_k"], l["attn_k.bias"]},
                                   {l["attn_v"], l["attn_v.bias"]}}},
                                 {l["attn_norm"], c.eps});
        const Cache cache = p.cache(c.heads.kv_heads, c.heads.head_dim, c.window_of(i));
        const Slot seen = p.attend(cache, qkv, c.heads, c.has_rope(i) ? rope : kNoRope, c.attention_scale(),
                                   {}, {}, 0.0f, sinks);
        p.add(x, p.linear(seen, l["attn_output"], {}, l["attn_output.bias"]), c.residual_scale);
        const Norm norm{l["ffn_norm"], c.eps};
        if (c.experts == 0) {
            const Slot hidden = p.gated(x, l["ffn_gate"], l["ffn_up"], Act::silu, norm);
            p.add(x, p.linear(hidden, l["ffn_down"]), c.residual_scale);
        } else {
            const Slot h = p.rms_norm(x, norm);
            const auto routing = p.route(h, l["ffn_gate_inp"], c.experts_used, Gating::softmax_of_selected,
                                         false, c.residual_scale);
            p.experts_add(x, h, routing, {l["ffn_gate_exps"], l["ffn_up_exps"], l["ffn_down_exps"]});
            if (c.shared_ffn_dim > 0) {
                const Slot hidden = p.gated(h, l["ffn_gate_shexp"], l["ffn_up_shexp"], Act::silu);
                p.add(x, p.linear(hidden, l["ffn_down_shexp"]), c.residual_scale);
            }
        }
        p.next_layer();
    }
    p.logits(x, w["output"], {w["output_norm"], c.eps}, c.logit_scale);
}

extern const Arch granite = {{"granite", "granitemoe", "granite_swa", "minicpm"}, config, weights, build};

}  // namespace redline::archs
