// Llama 4, the text part: three of four layers have rope and look back within chunks of 8192 tokens, the
// fourth sees everything without rope, by queries that grow with the position. One expert is chosen, and its
// input is weighted, not its output; another is for all tokens.
#include "arch/arch.h"
#include "arch/blocks.h"

namespace redline::archs {

constexpr uint64_t kChunk = 8192;         // where the file does not say
constexpr uint64_t kGrowthPeriod = 8192;  // no key has these
constexpr uint32_t kPeriod = 4;
constexpr double kGrowth = 0.1;
constexpr uint32_t kExpertsWithoutNorm = 128;  // the model with so many has no norms of queries and keys

static Result<Config> config(const ModelFile& file) {
    Config c = RL_TRY(common_config(file));
    if (c.experts == 0 || c.experts_used != 1)
        return error("{}: {} experts, {} used, where architecture {} has some and uses one", file.gguf.path(),
                     c.experts, c.experts_used, file.arch);
    // A window of none stands for a model that sees everything, with rope in every layer.
    c.window = RL_TRY(count(file, "attention.sliding_window", kChunk, 0, 1u << 30));
    for (uint32_t i = 0; i < c.layers; ++i) c.roped.push_back(c.window == 0 || (i + 1) % kPeriod != 0);
    c.windowed = c.roped;
    c.rope = RL_TRY(common_rope(file, c, false, RL_TRY(rope_factors(file, c))));
    c.query_rope = RopeSpec{false, std::vector<double>(c.heads.head_dim / 2), 1.0, kGrowth, kGrowthPeriod, 1};
    if (c.heads.head_dim % 2 != 0)
        return error("{}: heads of {} are odd", file.gguf.path(), c.heads.head_dim);
    c.expert_step = RL_TRY(count(file, "interleave_moe_layer_step", {}, 1, 1024));
    c.shared_ffn_dim = c.expert_ffn_dim;
    return c;
}

static void weights(const Config& c, WeightList& w) {
    w.embedding_and_output();
    w.attention();
    w.vector("ffn_norm", c.dim);
    for (uint32_t i = 0; i < c.layers; ++i) {
        w.in_layers(i, i + 1);
        if (c.has_experts(i)) {
            w.routed_experts();
            w.shared_expert();
        } else {
            w.gated_ffn();
        }
    }
    w.ignore_rope_factors();
}

static Slot attention(const Config& c, const LayerWeights& l, size_t layer, Slot x, uint32_t rope,
                      uint32_t growing, PlanBuilder& p) {
    const HeadShape& s = c.heads;
    const auto [q, k, v] = qkv(p, x, l, c.norm(l["attn_norm"]));
    const uint32_t chunk = uint32_t(c.window_of(layer));
    const Cache cache = p.cache(s.kv_heads, s.head_dim, chunk);
    if (!c.has_rope(layer)) {
        p.append(Rope{q, s.heads, s.head_dim, growing});
        p.append(KvStore{k, v, cache, s});
        return p.attention(cache, q, s, c.attention_scale());
    }
    // Norms without gains are the same before rope, which keeps lengths, as behind it.
    if (c.experts != kExpertsWithoutNorm) {
        p.append(RmsNorm{q, {{}, c.eps}, s.head_dim, q});
        p.append(RmsNorm{k, {{}, c.eps}, s.head_dim, k});
    }
    const Slot seen = p.slot(c.q_dim());
    p.append(Attend{{q, k, v, cache, s, rope},
                    {q, seen, cache, s, c.attention_scale(), 0.0f, chunk, {}, chunk > 0}});
    return seen;
}

static void add_weighted_experts(const Config& c, const LayerWeights& l, Slot x, Norm norm, PlanBuilder& p) {
    const Slot h = p.rms_norm(x, norm);
    const auto routing = p.route(h, l["ffn_gate_inp"], 1, Gating::sigmoid, false);
    const Slot weighted = p.parts_of(h, 1, c.dim, 0, c.dim), hidden = p.slot(c.expert_ffn_dim),
               given = p.slot(c.dim);
    p.append(OutputGate{routing.scales, weighted, c.dim, GateOf::itself});
    p.append(
        products::gated_by_expert(weighted, l["ffn_gate_exps"], l["ffn_up_exps"], hidden, {routing.ids, 1}));
    p.append(products::by_expert(hidden, l["ffn_down_exps"], given, {routing.ids, 1, true}));
    p.add(x, given);
    add_shared_expert(l, x, h, p);
}

static void build(const Config& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope), growing = p.add_rope(c.query_rope);
    const Slot x = p.embed(w["token_embd"]);
    for (size_t i = 0; i < c.layers; ++i) {
        const LayerWeights& l = w.layers()[i];
        p.linear_add(x, attention(c, l, i, x, rope, growing, p), l["attn_output"]);
        const Norm norm = c.norm(l["ffn_norm"]);
        c.has_experts(i) ? add_weighted_experts(c, l, x, norm, p) : add_gated_ffn(l, x, norm, p);
        p.next_layer();
    }
    add_logits(c, w, x, p);
}

extern const Arch llama4 = make_arch<config, weights, build>({"llama4"});

}  // namespace redline::archs
