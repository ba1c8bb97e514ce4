// gpt-oss: attention with sinks and biases, a window on every other layer, the first one included; experts
// with biases and a limited SwiGLU, weighted by a softmax over the logits of the chosen. Ollama's files call
// it gptoss, and name some tensors in another way.
#include "arch/arch.h"
#include "arch/blocks.h"

namespace redline::archs {

static Result<Config> config(const ModelFile& file) {
    Config c = RL_TRY(common_config(file));
    RL_TRY(require_experts(file, c));
    c.rope = RL_TRY(common_rope(file, c, true, {}, false));
    RL_TRY(read_windows(file, c, 2, 0));
    return c;
}

static void weights(const Config& c, WeightList& w) {
    const uint64_t hidden = uint64_t(c.experts) * c.expert_ffn_dim;
    w.embedding_and_output();
    w.vector("attn_norm", c.dim);
    w.queries_keys_values();
    w.vector("attn_q.bias", c.q_dim());
    w.vector("attn_k.bias", c.kv_dim());
    w.vector("attn_v.bias", c.kv_dim());
    w.matrix("attn_output", c.dim, c.q_dim(), "attn_out");
    w.vector("attn_output.bias", c.dim, "attn_out.bias");
    w.vector("attn_sinks", c.heads.heads);
    w.vector("post_attention_norm", c.dim, "ffn_norm");
    w.routed_experts();
    w.vector("ffn_gate_inp.bias", c.experts);
    w.vector("ffn_gate_exps.bias", hidden);
    w.vector("ffn_up_exps.bias", hidden);
    w.vector("ffn_down_exps.bias", uint64_t(c.experts) * c.dim);
}

static void build(const Config& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope);
    const Slot x = p.embed(w["token_embd"]);
    for (size_t i = 0; i < c.layers; ++i) {
        const LayerWeights& l = w.layers()[i];
        add_attention(l, x, attend(c, l, x, c.norm(l["attn_norm"]), {rope, c.window_of(i)}, p), p);
        p.expert_block(x, c.norm(l["post_attention_norm"]),
                       {l["ffn_gate_inp"], c.experts_used, Gating::softmax_of_selected, false, 1.0f,
                        l["ffn_gate_inp.bias"], BiasOf::logits},
                       {l["ffn_gate_exps"], l["ffn_up_exps"], l["ffn_down_exps"], Act::swiglu_clamped,
                        l["ffn_gate_exps.bias"], l["ffn_up_exps.bias"], l["ffn_down_exps.bias"]});
        p.next_layer();
    }
    add_logits(c, w, x, p);
}

extern const Arch gpt_oss = make_arch<config, weights, build>({"gpt-oss", "gptoss"});

}  // namespace redline::archs
