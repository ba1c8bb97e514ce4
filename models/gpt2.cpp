// GPT-2: layer norms, biases everywhere, an embedding of positions in place of rope, and an FFN of gelu,
// which has no gate.
#include "arch/arch.h"

#include <algorithm>

namespace redline::archs {

static Result<Config> config(const ModelFile& file) {
    const float eps = RL_TRY(factor(file, "attention.layer_norm_epsilon", 1e-5f));
    Config c = RL_TRY(common_config(file, eps));
    const GgufTensor* table = file.gguf.find("position_embd.weight");
    if (!table || table->tensor.shape.rows == 0)
        return error("{}: tensor position_embd.weight is missing or empty", file.gguf.path());
    c.positions = uint32_t(std::min<uint64_t>(table->tensor.shape.rows, 1u << 24));
    c.train_context = std::min<uint64_t>(c.train_context, c.positions);
    return c;
}

static void weights(const Config& c, WeightList& w) {
    w.global_matrix("token_embd", c.vocab, c.dim);
    w.global_vector("position_embd", uint64_t(c.positions) * c.dim);
    w.global_vector("output_norm", c.dim);
    w.global_vector("output_norm.bias", c.dim);
    w.global_matrix("output", c.vocab, c.dim, "token_embd");
    w.vector("attn_norm", c.dim);
    w.vector("attn_norm.bias", c.dim);
    w.queries_keys_values();
    w.matrix("attn_output", c.dim, c.q_dim());
    w.vector("attn_q.bias", c.q_dim());
    w.vector("attn_k.bias", c.kv_dim());
    w.vector("attn_v.bias", c.kv_dim());
    w.vector("attn_output.bias", c.dim);
    w.vector("ffn_norm", c.dim);
    w.vector("ffn_norm.bias", c.dim);
    w.matrix("ffn_up", c.ffn_dim, c.dim);
    w.matrix("ffn_down", c.dim, c.ffn_dim);
    w.vector("ffn_up.bias", c.ffn_dim);
    w.vector("ffn_down.bias", c.dim);
}

static void build(const Config& c, const WeightSet& w, PlanBuilder& p) {
    const Slot x = p.embed(w["token_embd"]);
    p.append(AddPosition{x, w["position_embd"]});
    for (const LayerWeights& l : w.layers()) {
        const Slot h = p.layer_norm(x, {l["attn_norm"], c.eps}, l["attn_norm.bias"]);
        const auto qkv = p.group(h,
                                 {{{l["attn_q"], l["attn_q.bias"]},
                                   {l["attn_k"], l["attn_k.bias"]},
                                   {l["attn_v"], l["attn_v.bias"]}}},
                                 {});
        const Cache cache = p.cache(c.heads.kv_heads, c.heads.head_dim);
        const Slot seen = p.attend(cache, qkv, c.heads, kNoRope, c.attention_scale());
        p.linear_add(x, seen, l["attn_output"], l["attn_output.bias"]);
        const Slot g = p.layer_norm(x, {l["ffn_norm"], c.eps}, l["ffn_norm.bias"]);
        const Slot hidden = p.linear(g, l["ffn_up"], {}, l["ffn_up.bias"], Function::gelu_tanh);
        p.linear_add(x, hidden, l["ffn_down"], l["ffn_down.bias"]);
        p.next_layer();
    }
    p.logits(p.layer_norm(x, {w["output_norm"], c.eps}, w["output_norm.bias"]), w["output"], {});
}

extern const Arch gpt2 = {{"gpt2"}, config, weights, build};

}  // namespace redline::archs
