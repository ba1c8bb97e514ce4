#include "arch/decoder.h"

#include "arch/blocks.h"

#include <algorithm>

namespace redline {

static Status read_expert_keys(const ModelFile& file, const DecoderKind& kind, Config& c) {
    RL_TRY(read_shared_experts(file, c, 0, true));
    if (kind.gated_shared && c.shared_ffn_dim == 0) c.shared_ffn_dim = c.ffn_dim;
    if (kind.weighting != Weighting::by_keys) {
        c.expert_norm = kind.weighting == Weighting::normalised;
        c.expert_scale = 1.0f;
    }
    c.expert_step = RL_TRY(count(file, "interleave_moe_layer_step", 1, 1, 1024));
    c.expert_groups.by_two = true;
    return read_gating(file, c, kind.gating);
}

Result<Decoder> decoder_config(const ModelFile& file, std::span<const DecoderKind> kinds) {
    const auto kind = std::find_if(kinds.begin(), kinds.end(),
                                   [&](const DecoderKind& one) { return one.name == file.arch; });
    RL_CHECK(kind != kinds.end(), "no kind of decoder is called {}", file.arch);
    Decoder c{RL_TRY(common_config(file)), *kind};
    RL_TRY(choose_layers(file, c));
    if (kind->experts == ExpertLayers::none) c.experts = 0;
    if (kind->experts >= ExpertLayers::all) RL_TRY(require_experts(file, c));
    std::vector<float> factors;
    if (kind->rope_factors) factors = RL_TRY(rope_factors(file, c));
    c.rope = RL_TRY(common_rope(file, c, kind->half_split, factors));
    c.expert_norm = kind->weighting == Weighting::normalised;
    if (kind->experts == ExpertLayers::by_keys) RL_TRY(read_expert_keys(file, *kind, c));
    if (kind->read) RL_TRY(kind->read(file, c));
    return c;
}

static void ffn_weights(const Decoder& c, size_t layer, WeightList& w) {
    w.vector("ffn_norm", c.dim, std::string(c.kind.ffn_norm));
    if (!c.has_experts(layer)) return c.kind.plain_ffn ? w.plain_ffn() : w.gated_ffn();
    w.routed_experts(c.kind.experts == ExpertLayers::by_keys);
    if (c.kind.gated_shared && c.shared_ffn_dim > 0) w.matrix("ffn_gate_inp_shexp", 1, c.dim);
    w.shared_expert();
}

void decoder_weights(const Decoder& c, WeightList& w) {
    const HeadNorm norm = c.kind.head_norm;
    const bool of_heads = norm == HeadNorm::of_heads || norm == HeadNorm::of_heads_behind_rope;
    w.embedding_and_output();
    for (uint32_t i = c.first_layer; i < c.layers; ++i) {
        w.in_layers(i, i + 1);
        w.attention({.biases = c.kind.biases,
                     .output_bias = c.kind.output_bias,
                     .head_norms = of_heads ? Presence::required : Presence::none});
        if (norm == HeadNorm::of_rows) {
            w.vector("attn_q_norm", c.q_dim());
            w.vector("attn_k_norm", c.kv_dim());
        }
        ffn_weights(c, i, w);
        if (c.kind.rope_factors) w.ignore(fmt::format("blk.{}.attn_rot_embd.weight", i));
    }
    if (c.kind.rope_factors) w.ignore_rope_factors();
    w.ignore_unused_layers();
}

// Indices of the plan's ropes, of queries and of keys.
struct Ropes {
    uint32_t q, k;
};

static Slot attention(const Decoder& c, const LayerWeights& l, size_t layer, Slot x, const Ropes& ropes,
                      PlanBuilder& p) {
    const HeadNorm norm = c.kind.head_norm;
    const AttentionWay way{c.has_rope(layer) ? ropes.k : kNoRope, c.window_of(layer)};
    if (norm == HeadNorm::of_rows) return attend_with_row_norms(c, l, x, c.norm(l["attn_norm"]), way, p);
    if (ropes.q == ropes.k && norm != HeadNorm::of_heads_behind_rope)
        return attend(c, l, x, c.norm(l["attn_norm"]), way, p);
    const HeadShape& s = c.heads;
    const auto [q, k, v] = qkv(p, x, l, c.norm(l["attn_norm"]));
    const Cache cache = p.cache(s.kv_heads, s.head_dim, way.window);
    p.append(Rope{q, s.heads, s.head_dim, ropes.q});
    p.append(Rope{k, s.kv_heads, s.head_dim, ropes.k});
    if (norm == HeadNorm::of_heads_behind_rope) {
        p.append(RmsNorm{q, c.norm(l["attn_q_norm"]), s.head_dim, q});
        p.append(RmsNorm{k, c.norm(l["attn_k_norm"]), s.head_dim, k});
    }
    p.append(KvStore{k, v, cache, s});
    return p.attention(cache, q, s, c.attention_scale());
}

void build_decoder(const Decoder& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope);
    const Ropes ropes{c.query_rope.growth > 0.0 ? p.add_rope(c.query_rope) : rope, rope};
    const Slot x = first_rows(c, w, p);
    for (size_t i = c.first_layer; i < c.layers; ++i) {
        const LayerWeights& l = w.layers()[i];
        add_attention(l, x, attention(c, l, i, x, ropes, p), p);
        const Norm norm = c.norm(l["ffn_norm"]);
        if (c.has_experts(i))
            add_experts(c, l, x, norm, p);
        else if (c.kind.plain_ffn)
            add_plain_ffn(l, x, x, norm, *c.kind.plain_ffn, p);
        else
            add_gated_ffn(l, x, norm, p);
        p.next_layer();
    }
    add_logits(c, w, x, p);
}

}  // namespace redline
