#include "arch/blocks.h"

namespace redline {

namespace {

Norm norm_if_listed(const Config& c, Weight gain) {
    return gain ? c.norm(gain) : Norm{};
}

Cache new_cache(const Config& c, const AttentionWay& way, PlanBuilder& p) {
    return p.cache(c.heads.kv_heads, c.heads.head_dim, way.window);
}

}  // namespace

Slot side_by_side(Slot first, Slot second, PlanBuilder& p) {
    const uint32_t one = p.plan().slot(first).width, other = p.plan().slot(second).width;
    const Slot both = p.slot(one + other);
    p.append(CopyParts{first, both, 1, one, 0, one, 0, one});
    p.append(CopyParts{second, both, 1, other, 0, other, one, other});
    return both;
}

Slot first_rows(const Config& c, const WeightSet& w, PlanBuilder& p) {
    const Slot x = p.embed(w["token_embd"], c.embedding_scale);
    if (!c.predicts()) return x;
    const LayerWeights& l = w.layers()[c.first_layer];
    const Slot token = p.rms_norm(x, c.norm(l["nextn.enorm.weight"])),
               hidden = p.rms_norm(p.input(c.dim), c.norm(l["nextn.hnorm.weight"]));
    return p.linear(side_by_side(token, hidden, p), l["nextn.eh_proj.weight"]);
}

std::array<Slot, 3> qkv(PlanBuilder& p, Slot x, const LayerWeights& l, Norm norm) {
    return p.group(x,
                   {{{l["attn_q"], l.find("attn_q.bias")},
                     {l["attn_k"], l.find("attn_k.bias")},
                     {l["attn_v"], l.find("attn_v.bias")}}},
                   norm);
}

Slot attend(const Config& c, const LayerWeights& l, Slot x, Norm norm, const AttentionWay& way,
            PlanBuilder& p) {
    const auto products = qkv(p, x, l, norm);
    return p.attend(new_cache(c, way, p), products, c.heads, way.rope, c.attention_scale(),
                    norm_if_listed(c, l.find("attn_q_norm")), norm_if_listed(c, l.find("attn_k_norm")),
                    way.softcap, l.find("attn_sinks"));
}

Slot attend_with_row_norms(const Config& c, const LayerWeights& l, Slot x, Norm norm, const AttentionWay& way,
                           PlanBuilder& p) {
    const auto products = qkv(p, x, l, norm);
    const auto [q, k, v] = products;
    p.append(RmsNorm{q, c.norm(l["attn_q_norm"]), c.q_dim(), q});
    p.append(RmsNorm{k, c.norm(l["attn_k_norm"]), c.kv_dim(), k});
    return p.attend(new_cache(c, way, p), products, c.heads, way.rope, c.attention_scale());
}

void add_attention(const LayerWeights& l, Slot x, Slot seen, PlanBuilder& p) {
    p.linear_add(x, seen, l["attn_output"], l.find("attn_output.bias"));
}

void add_normed(Slot x, Slot y, Weight w, Norm norm, PlanBuilder& p) {
    p.add(x, p.linear(y, w), 1.0f, norm);
}

Slot gated(const LayerWeights& l, Slot x, Norm norm, PlanBuilder& p, Act act) {
    return p.gated(x, l["ffn_gate"], l["ffn_up"], act, norm);
}

void add_gated_ffn(const LayerWeights& l, Slot x, Norm norm, PlanBuilder& p, Act act) {
    p.linear_add(x, gated(l, x, norm, p, act), l["ffn_down"]);
}

void add_plain_ffn(const LayerWeights& l, Slot x, Slot in, Norm norm, Function function, PlanBuilder& p) {
    const Slot hidden = p.linear(in, l["ffn_up"], norm, l.find("ffn_up.bias"), function);
    p.linear_add(x, hidden, l["ffn_down"], l.find("ffn_down.bias"));
}

PlanBuilder::Experts gated_experts(const LayerWeights& l) {
    return {l["ffn_gate_exps"], l["ffn_up_exps"], l["ffn_down_exps"]};
}

PlanBuilder::Routing route(const Config& c, const LayerWeights& l, Slot h, PlanBuilder& p) {
    return p.route(h, l["ffn_gate_inp"], c.experts_used, c.gating, c.expert_norm, c.expert_scale,
                   l.find("exp_probs_b.bias"), BiasOf::choice, c.expert_groups);
}

Slot shared_hidden(const LayerWeights& l, Slot h, PlanBuilder& p) {
    return p.gated(h, l["ffn_gate_shexp"], l["ffn_up_shexp"], Act::silu);
}

void add_shared_expert(const LayerWeights& l, Slot x, Slot h, PlanBuilder& p) {
    p.linear_add(x, shared_hidden(l, h, p), l["ffn_down_shexp"]);
}

void add_experts(const Config& c, const LayerWeights& l, Slot x, Norm norm, PlanBuilder& p) {
    p.expert_block(x, norm,
                   {l["ffn_gate_inp"], c.experts_used, c.gating, c.expert_norm, c.expert_scale,
                    l.find("exp_probs_b.bias"), BiasOf::choice, c.expert_groups},
                   gated_experts(l),
                   {l.find("ffn_gate_inp_shexp"), l.find("ffn_gate_shexp"), l.find("ffn_up_shexp"),
                    l.find("ffn_down_shexp")});
}

Slot zeros_like(Slot h, uint32_t width, PlanBuilder& p) {
    const Slot zeros = p.parts_of(h, 1, width, 0, width);
    p.add(zeros, h, -1.0f);
    return zeros;
}

void add_logits(const Config& c, const WeightSet& w, Slot x, PlanBuilder& p) {
    const Norm norm = c.norm(w["output_norm"]);
    if (p.wants_hidden()) p.leave_hidden(c.hidden_before_norm ? x : p.rms_norm(x, norm));
    p.logits(x, w["output"], norm, c.logit_scale, c.logit_softcap);
}

}  // namespace redline
