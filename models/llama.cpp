// Llama 1 to 3.x, Mistral, TinyLlama, SmolLM and their kin, dense or with experts (Mixtral): pre-norm, rope
// on neighbouring pairs (the converter has permuted q and k for it), SwiGLU. mistral3 (Ministral 3) is the
// same with queries that grow with the position, on yarn; smollm3 has no rope on every fourth layer; ernie4_5
// is the same.
#include "arch/arch.h"

namespace redline::archs {

static Result<Config> config(const ModelFile& file) {
    Config c = RL_TRY(common_config(file));
    const std::vector<float> factors = RL_TRY(file.floats("rope_freqs.weight", c.heads.head_dim / 2));
    c.rope = RL_TRY(common_rope(file, c, false, factors));
    // Mistral 7B v0.1 was trained with one; llama.cpp ignores the key, transformers does not.
    c.window = RL_TRY(file.meta().integer(file.key("attention.sliding_window"), 0));
    if (c.window > c.train_context) c.window = 0;
    for (uint32_t i = 0; i < c.layers && file.arch == "smollm3"; ++i) c.roped.push_back((i + 1) % 4 != 0);
    if (file.arch != "mistral3") return c;
    // What the rope turns grows, and it turns all of a head.
    c.query_rope = c.rope;
    c.query_rope.growth = RL_TRY(factor(file, "attention.temperature_scale", 0.0f));
    c.query_rope.period =
        RL_TRY(file.meta().integer(file.key("rope.scaling.original_context_length"), c.train_context));
    if (c.query_rope.growth > 0.0 &&
        (c.query_rope.period == 0 || 2 * c.rope.inverse_frequency.size() != c.heads.head_dim))
        return error("{}: {} wants an original context and a rope over the whole head", file.gguf.path(),
                     file.key("attention.temperature_scale"));
    return c;
}

static void weights(const Config& c, WeightList& w) {
    w.embedding_and_output();
    w.vector("attn_norm", c.dim);
    w.queries_keys_values();
    w.matrix("attn_output", c.dim, c.q_dim());
    w.optional_biases();
    w.optional_vector("attn_output.bias", c.dim);
    w.vector("ffn_norm", c.dim);
    if (c.experts > 0) {
        w.matrix("ffn_gate_inp", c.experts, c.dim);
        w.gated_experts();
    } else {
        w.gated_ffn();
    }
    w.ignore("rope_freqs.weight");
    for (uint32_t i = 0; i < c.layers; ++i) w.ignore(fmt::format("blk.{}.attn_rot_embd.weight", i));
}

static void build(const Config& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope);
    const bool grows = c.query_rope.growth > 0.0;
    const uint32_t query_rope = grows ? p.add_rope(c.query_rope) : rope;
    const Slot x = p.embed(w["token_embd"]);
    for (size_t i = 0; i < c.layers; ++i) {
        const LayerWeights& l = w.layers()[i];
        const auto qkv = p.group(x,
                                 {{{l["attn_q"], l["attn_q.bias"]},
                                   {l["attn_k"], l["attn_k.bias"]},
                                   {l["attn_v"], l["attn_v.bias"]}}},
                                 {l["attn_norm"], c.eps});
        const Cache cache = p.cache(c.heads.kv_heads, c.heads.head_dim, c.window);
        Slot seen;
        if (grows) {
            const auto [q, k, v] = qkv;
            p.append(Rope{q, c.heads.heads, c.heads.head_dim, query_rope});
            p.append(Rope{k, c.heads.kv_heads, c.heads.head_dim, rope});
            p.append(KvStore{k, v, cache, c.heads});
            seen = p.attention(cache, q, c.heads, c.attention_scale());
        } else {
            seen = p.attend(cache, qkv, c.heads, c.has_rope(i) ? rope : kNoRope, c.attention_scale());
        }
        p.linear_add(x, seen, l["attn_output"], l["attn_output.bias"]);
        const Norm norm{l["ffn_norm"], c.eps};
        if (c.experts > 0) {
            p.expert_block(x, norm, {l["ffn_gate_inp"], c.experts_used},
                           {l["ffn_gate_exps"], l["ffn_up_exps"], l["ffn_down_exps"]});
        } else {
            p.linear_add(x, p.gated(x, l["ffn_gate"], l["ffn_up"], Act::silu, norm), l["ffn_down"]);
        }
        p.next_layer();
    }
    p.logits(x, w["output"], {w["output_norm"], c.eps});
}

extern const Arch llama = {{"llama", "mistral3", "smollm3", "ernie4_5"}, config, weights, build};

}  // namespace redline::archs
