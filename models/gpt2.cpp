// GPT-2: layer norms, biases everywhere, an embedding of positions in place of rope, and an FFN of gelu,
// which has no gate.
#include "arch/arch.h"
#include "arch/blocks.h"

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
    w.embedding_and_output();
    w.global_vector("output_norm.bias", c.dim);
    w.global_vector("position_embd", uint64_t(c.positions) * c.dim);
    w.layer_norm("attn_norm");
    w.attention({.biases = Presence::required, .output_bias = Presence::required, .norm = false});
    w.layer_norm("ffn_norm");
    w.plain_ffn();
    w.vector("ffn_up.bias", c.ffn_dim);
    w.vector("ffn_down.bias", c.dim);
}

static void build(const Config& c, const WeightSet& w, PlanBuilder& p) {
    const Slot x = p.embed(w["token_embd"]);
    p.append(AddPosition{x, w["position_embd"]});
    for (const LayerWeights& l : w.layers()) {
        add_attention(l, x, attend(c, l, layer_norm(c, l, x, "attn_norm", p), {}, {}, p), p);
        add_plain_ffn(l, x, layer_norm(c, l, x, "ffn_norm", p), {}, Function::gelu_tanh, p);
        p.next_layer();
    }
    p.logits(layer_norm(c, w, x, "output_norm", p), w["output"], {});
}

extern const Arch gpt2 = make_arch<config, weights, build>({"gpt2"});

}  // namespace redline::archs
