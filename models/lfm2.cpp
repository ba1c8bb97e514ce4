// LFM2 and LFM2.5, dense or with experts behind the first layers (lfm2moe): most layers are a short
// convolution between two gates, the others attention with norms of the heads of queries and keys. The last
// norm bears the embedding's name.
#include "arch/arch.h"
#include "arch/blocks.h"

namespace redline::archs {

struct Lfm2 : Config {
    uint32_t taps = 0;  // of the convolutions
};

static Result<Lfm2> config(const ModelFile& file) {
    Lfm2 c{RL_TRY(common_config(file, {}, LayersDiffer::in_kind))};
    c.rope = RL_TRY(common_rope(file, c, true));
    c.taps = RL_TRY(count(file, "shortconv.l_cache", 3, 2, kMostTaps));
    // Some files round the width in another way than the tensors do.
    if (const GgufTensor* gate = file.gguf.find("blk.0.ffn_gate.weight"))
        c.ffn_dim = uint32_t(std::min<uint64_t>(gate->tensor.shape.rows, 1u << 24));
    c.dense_layers =
        c.experts > 0 ? RL_TRY(count(file, "leading_dense_block_count", 0, 0, c.layers)) : c.layers;
    c.expert_norm = true;
    if (c.experts > 0) RL_TRY(read_gating(file, c, Gating::sigmoid, Gatings::sigmoid));
    return c;
}

static void convolution_weights(const Lfm2& c, WeightList& w) {
    uint64_t first = 0;
    for (const char* part : {"before", "behind", "x"}) {
        w.rows_of(part, "shortconv.in_proj.weight", 3 * uint64_t(c.dim), first, c.dim, c.dim);
        first += c.dim;
    }
    w.vector("shortconv.conv.weight", uint64_t(c.dim) * c.taps);
    w.matrix("shortconv.out_proj.weight", c.dim, c.dim);
}

static void weights(const Lfm2& c, WeightList& w) {
    w.global_matrix("token_embd", c.vocab, c.dim);
    w.global_vector("token_embd_norm", c.dim, "output_norm");
    w.global_matrix("output", c.vocab, c.dim, "token_embd");
    for (uint32_t i = 0; i < c.layers; ++i) {
        w.in_layers(i, i + 1);
        w.vector("attn_norm", c.dim);
        w.vector("ffn_norm", c.dim);
        if (c.is_recurrent(i))
            convolution_weights(c, w);
        else
            w.attention({.head_norms = Presence::required, .norm = false});
        c.has_experts(i) ? w.routed_experts(true) : w.gated_ffn();
    }
}

static void add_convolution(const Lfm2& c, const LayerWeights& l, Slot x, Norm norm, PlanBuilder& p) {
    const auto [before, behind, u] = p.group(x, {{{l["before"]}, {l["behind"]}, {l["x"]}}}, norm);
    const Cache state = p.state(uint64_t(c.dim) * (c.taps - 1));
    const Slot y = p.convolve(state, u, l["shortconv.conv.weight"], c.taps, false, before, behind);
    p.linear_add(x, y, l["shortconv.out_proj.weight"]);
}

static void build(const Lfm2& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope);
    const Slot x = p.embed(w["token_embd"]);
    for (size_t i = 0; i < c.layers; ++i) {
        const LayerWeights& l = w.layers()[i];
        const Norm norm = c.norm(l["attn_norm"]), ffn_norm = c.norm(l["ffn_norm"]);
        if (c.is_recurrent(i))
            add_convolution(c, l, x, norm, p);
        else
            add_attention(l, x, attend(c, l, x, norm, {rope}, p), p);
        c.has_experts(i) ? add_experts(c, l, x, ffn_norm, p) : add_gated_ffn(l, x, ffn_norm, p);
        p.next_layer();
    }
    p.logits(x, w["output"], c.norm(w["token_embd_norm"]));
}

extern const Arch lfm2 = make_arch<config, weights, build>({"lfm2", "lfm2moe"});

}  // namespace redline::archs
