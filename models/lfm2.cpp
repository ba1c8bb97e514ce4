// LFM2 and LFM2.5, dense or with experts behind the first layers (lfm2moe): most layers are a short
// convolution between two gates, the others attention with norms of q and k. The last norm bears the
// embedding's name.
#include "arch/arch.h"

namespace redline::archs {

static Result<Config> config(const ModelFile& file) {
    Config c = RL_TRY(common_config(file, {}, LayersDiffer::in_kind));
    c.rope = RL_TRY(common_rope(file, c, true, {}));
    c.taps = RL_TRY(count(file, "shortconv.l_cache", 3, 2, kMostTaps));
    // Some files round the width in another way than the tensors do.
    if (const GgufTensor* gate = file.gguf.find("blk.0.ffn_gate.weight"))
        c.ffn_dim = uint32_t(std::min<uint64_t>(gate->tensor.shape.rows, 1u << 24));
    c.dense_layers =
        c.experts > 0 ? RL_TRY(count(file, "leading_dense_block_count", 0, 0, c.layers)) : c.layers;
    if (c.experts == 0) return c;
    const uint64_t gating = RL_TRY(file.meta().integer(file.key("expert_gating_func"), 2));
    if (gating != 2)
        return error("{}: {} is {}, 2 (sigmoid) expected", file.gguf.path(), file.key("expert_gating_func"),
                     gating);
    return c;
}

static void weights(const Config& c, WeightList& w) {
    w.global_matrix("token_embd", c.vocab, c.dim);
    w.global_vector("token_embd_norm", c.dim, "output_norm");
    w.global_matrix("output", c.vocab, c.dim, "token_embd");
    for (uint32_t i = 0; i < c.layers; ++i) {
        w.in_layers(i, i + 1);
        w.vector("attn_norm", c.dim);
        w.vector("ffn_norm", c.dim);
        if (c.is_recurrent(i)) {
            uint64_t first = 0;
            for (const char* part : {"before", "behind", "x"}) {
                w.rows_of(part, "shortconv.in_proj.weight", 3 * uint64_t(c.dim), first, c.dim, c.dim);
                first += c.dim;
            }
            w.vector("shortconv.conv.weight", uint64_t(c.dim) * c.taps);
            w.matrix("shortconv.out_proj.weight", c.dim, c.dim);
        } else {
            w.queries_keys_values();
            w.vector("attn_q_norm", c.heads.head_dim);
            w.vector("attn_k_norm", c.heads.head_dim);
            w.matrix("attn_output", c.dim, c.q_dim());
        }
        if (i < c.dense_layers) {
            w.gated_ffn();
        } else {
            w.matrix("ffn_gate_inp", c.experts, c.dim);
            w.optional_vector("exp_probs_b.bias", c.experts);
            w.gated_experts();
        }
    }
}

static void build(const Config& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope);
    const Slot x = p.embed(w["token_embd"]);
    for (size_t i = 0; i < c.layers; ++i) {
        const LayerWeights& l = w.layers()[i];
        const Norm norm{l["attn_norm"], c.eps};
        if (c.is_recurrent(i)) {
            const auto [before, behind, u] = p.group(x, {{{l["before"]}, {l["behind"]}, {l["x"]}}}, norm);
            const Cache state = p.state(uint64_t(c.dim) * (c.taps - 1));
            const Slot y = p.convolve(state, u, l["shortconv.conv.weight"], c.taps, false, before, behind);
            p.linear_add(x, y, l["shortconv.out_proj.weight"]);
        } else {
            const auto qkv = p.group(x, {{{l["attn_q"]}, {l["attn_k"]}, {l["attn_v"]}}}, norm);
            const Cache cache = p.cache(c.heads.kv_heads, c.heads.head_dim);
            const Slot seen = p.attend(cache, qkv, c.heads, rope, c.attention_scale(),
                                       {l["attn_q_norm"], c.eps}, {l["attn_k_norm"], c.eps});
            p.linear_add(x, seen, l["attn_output"]);
        }
        const Norm ffn_norm{l["ffn_norm"], c.eps};
        if (i < c.dense_layers)
            p.linear_add(x, p.gated(x, l["ffn_gate"], l["ffn_up"], Act::silu, ffn_norm), l["ffn_down"]);
        else
            p.expert_block(
                x, ffn_norm,
                {l["ffn_gate_inp"], c.experts_used, Gating::sigmoid, true, 1.0f, l["exp_probs_b.bias"]},
                {l["ffn_gate_exps"], l["ffn_up_exps"], l["ffn_down_exps"]});
        p.next_layer();
    }
    p.logits(x, w["output"], {w["token_embd_norm"], c.eps});
}

extern const Arch lfm2 = {{"lfm2", "lfm2moe"}, config, weights, build};

}  // namespace redline::archs
