// Apertus: norms of the heads of queries and keys, half-split rope, and an FFN of xIELU, which has no gate
// and other numbers in each layer. The keys of these numbers do not begin with the architecture.
#include "arch/arch.h"
#include "arch/blocks.h"

#include <cmath>

namespace redline::archs {

struct Apertus : Config {
    std::vector<Each> xielu = {};  // by layer, without its slot
};

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

static Result<Apertus> config(const ModelFile& file) {
    Apertus c{RL_TRY(common_config(file))};
    c.rope = RL_TRY(common_rope(file, c, true, RL_TRY(rope_factors(file, c))));
    const std::vector<float> positive = RL_TRY(by_layer(file, c, "xielu.alpha_p")),
                             negative = RL_TRY(by_layer(file, c, "xielu.alpha_n")),
                             linear = RL_TRY(by_layer(file, c, "xielu.beta")),
                             limit = RL_TRY(by_layer(file, c, "xielu.eps"));
    for (uint32_t i = 0; i < c.layers; ++i) {
        if (!(limit[i] <= 0.0f && limit[i] > -1.0f))
            return error("{}: xielu.eps holds {}, a number from -1 to 0 expected", file.gguf.path(),
                         limit[i]);
        const float above = softplus(positive[i]), below = linear[i] + softplus(negative[i]);
        if (!std::isfinite(above) || !std::isfinite(below))
            return error("{}: xielu of layer {} has numbers that are not finite", file.gguf.path(), i);
        c.xielu.push_back(each::xielu({}, above, below, linear[i], limit[i]));
    }
    return c;
}

static void weights(const Apertus& c, WeightList& w) {
    w.embedding_and_output();
    w.attention({.head_norms = Presence::required});
    w.vector("ffn_norm", c.dim);
    w.plain_ffn();
    w.ignore_rope_factors();
}

static void build(const Apertus& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope);
    const Slot x = p.embed(w["token_embd"]);
    for (size_t i = 0; i < c.layers; ++i) {
        const LayerWeights& l = w.layers()[i];
        add_attention(l, x, attend(c, l, x, c.norm(l["attn_norm"]), {rope}, p), p);
        Each act = c.xielu[i];
        act.y = p.linear(x, l["ffn_up"], c.norm(l["ffn_norm"]));
        p.append(act);
        p.linear_add(x, act.y, l["ffn_down"]);
        p.next_layer();
    }
    add_logits(c, w, x, p);
}

extern const Arch apertus = make_arch<config, weights, build>({"apertus"});

}  // namespace redline::archs
