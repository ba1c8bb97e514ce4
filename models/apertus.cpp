// Apertus: norms of q and k by head, half-split rope, and an FFN of xIELU, which has no gate and other
// numbers in each layer. Their keys have no name of the architecture before them.
#include "arch/arch.h"

#include <cmath>

namespace redline::archs {

static Result<std::vector<float>> by_layer(const ModelFile& file, const Config& c, const std::string& key) {
    const std::vector<float>* array = file.meta().floats(key);
    if (!array || array->size() != c.layers)
        return error("{}: {} is not an array of {} numbers, one for each layer", file.gguf.path(), key,
                     c.layers);
    return *array;
}

static float softplus(float x) {
    return x > 20.0f ? x : std::log1p(std::exp(x));
}

static Result<Config> config(const ModelFile& file) {
    Config c = RL_TRY(common_config(file));
    const std::vector<float> factors = RL_TRY(file.floats("rope_freqs.weight", c.heads.head_dim / 2));
    c.rope = RL_TRY(common_rope(file, c, true, factors));
    const std::vector<float> positive = RL_TRY(by_layer(file, c, "xielu.alpha_p")),
                             negative = RL_TRY(by_layer(file, c, "xielu.alpha_n")),
                             linear = RL_TRY(by_layer(file, c, "xielu.beta")),
                             limit = RL_TRY(by_layer(file, c, "xielu.eps"));
    for (uint32_t i = 0; i < c.layers; ++i) {
        if (!(limit[i] <= 0.0f && limit[i] > -1.0f))
            return error("{}: xielu.eps holds {}, a number from -1 to 0 expected", file.gguf.path(),
                         limit[i]);
        const Xielu made = {
            {}, softplus(positive[i]), linear[i] + softplus(negative[i]), linear[i], limit[i]};
        if (!std::isfinite(made.positive) || !std::isfinite(made.negative))
            return error("{}: xielu of layer {} has numbers that are not finite", file.gguf.path(), i);
        c.xielu.push_back(made);
    }
    return c;
}

static void weights(const Config& c, WeightList& w) {
    w.embedding_and_output();
    w.vector("attn_norm", c.dim);
    w.queries_keys_values();
    w.vector("attn_q_norm", c.heads.head_dim);
    w.vector("attn_k_norm", c.heads.head_dim);
    w.matrix("attn_output", c.dim, c.q_dim());
    w.vector("ffn_norm", c.dim);
    w.matrix("ffn_up", c.ffn_dim, c.dim);
    w.matrix("ffn_down", c.dim, c.ffn_dim);
    w.ignore("rope_freqs.weight");
}

static void build(const Config& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope);
    const Slot x = p.embed(w["token_embd"]);
    for (size_t i = 0; i < c.layers; ++i) {
        const LayerWeights& l = w.layers()[i];
        const auto qkv = p.group(x, {{{l["attn_q"]}, {l["attn_k"]}, {l["attn_v"]}}}, {l["attn_norm"], c.eps});
        const Cache cache = p.cache(c.heads.kv_heads, c.heads.head_dim);
        const Slot seen = p.attend(cache, qkv, c.heads, rope, c.attention_scale(), {l["attn_q_norm"], c.eps},
                                   {l["attn_k_norm"], c.eps});
        p.linear_add(x, seen, l["attn_output"]);
        Xielu act = c.xielu[i];
        act.y = p.linear(x, l["ffn_up"], {l["ffn_norm"], c.eps});
        p.append(act);
        p.linear_add(x, act.y, l["ffn_down"]);
        p.next_layer();
    }
    p.logits(x, w["output"], {w["output_norm"], c.eps});
}

extern const Arch apertus = {{"apertus"}, config, weights, build};

}  // namespace redline::archs
