// Llama 4, the text part: three of four layers have rope and look back within chunks of 8192 tokens, the
// fourth sees everything without rope, by queries that grow with the position. One expert is chosen, and
// what it reads is weighted, not what it gives; another is for all tokens.
#include "arch/arch.h"

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
    const std::vector<float> factors = RL_TRY(file.floats("rope_freqs.weight", c.heads.head_dim / 2));
    c.rope = RL_TRY(common_rope(file, c, false, factors));
    c.query_rope = RopeSpec{false, std::vector<double>(c.heads.head_dim / 2), 1.0, kGrowth, kGrowthPeriod, 1};
    if (c.heads.head_dim % 2 != 0)
        return error("{}: heads of {} are odd", file.gguf.path(), c.heads.head_dim);
    c.expert_step = RL_TRY(count(file, "interleave_moe_layer_step", {}, 1, 1024));
    c.shared_ffn_dim = c.expert_ffn_dim;
    return c;
}

static void weights(const Config& c, WeightList& w) {
    w.embedding_and_output();
    w.vector("attn_norm", c.dim);
    w.queries_keys_values();
    w.matrix("attn_output", c.dim, c.q_dim());
    w.vector("ffn_norm", c.dim);
    for (uint32_t i = 0; i < c.layers; ++i) {
        w.in_layers(i, i + 1);
        if (c.has_experts(i)) {
            w.matrix("ffn_gate_inp", c.experts, c.dim);
            w.gated_experts();
            w.shared_expert();
        } else {
            w.gated_ffn();
        }
    }
    w.ignore("rope_freqs.weight");
}

static Slot attention(const Config& c, const LayerWeights& l, size_t layer, Slot x, uint32_t rope,
                      uint32_t growing, PlanBuilder& p) {
    const HeadShape& s = c.heads;
    const auto qkv = p.group(x, {{{l["attn_q"]}, {l["attn_k"]}, {l["attn_v"]}}}, {l["attn_norm"], c.eps});
    const auto [q, k, v] = qkv;
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

static void experts(const Config& c, const LayerWeights& l, Slot x, Norm norm, PlanBuilder& p) {
    const Slot h = p.rms_norm(x, norm);
    const auto routing = p.route(h, l["ffn_gate_inp"], 1, Gating::sigmoid, false);
    const Slot weighted = p.parts_of(h, 1, c.dim, 0, c.dim), hidden = p.slot(c.expert_ffn_dim),
               given = p.slot(c.dim);
    p.append(OutputGate{routing.scales, weighted, c.dim, GateOf::itself});
    p.append(ExpertGated{weighted, l["ffn_gate_exps"], l["ffn_up_exps"], routing.ids, hidden, 1});
    p.append(ExpertLinear{hidden, l["ffn_down_exps"], routing.ids, given, 1, true});
    p.add(x, given);
    p.linear_add(x, p.gated(h, l["ffn_gate_shexp"], l["ffn_up_shexp"], Act::silu), l["ffn_down_shexp"]);
}

static void build(const Config& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope), growing = p.add_rope(c.query_rope);
    const Slot x = p.embed(w["token_embd"]);
    for (size_t i = 0; i < c.layers; ++i) {
        const LayerWeights& l = w.layers()[i];
        p.linear_add(x, attention(c, l, i, x, rope, growing, p), l["attn_output"]);
        const Norm norm{l["ffn_norm"], c.eps};
        if (c.has_experts(i))
            experts(c, l, x, norm, p);
        else
            p.linear_add(x, p.gated(x, l["ffn_gate"], l["ffn_up"], Act::silu, norm), l["ffn_down"]);
        p.next_layer();
    }
    p.logits(x, w["output"], {w["output_norm"], c.eps});
}

extern const Arch llama4 = {{"llama4"}, config, weights, build};

}  // namespace redline::archs
