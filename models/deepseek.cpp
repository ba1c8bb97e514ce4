// DeepSeek V2 to V3.1 and R1, Kimi K2, Moonlight, GLM-4.7-Flash: attention on latents, in the form that keeps
// a row of a latent and of a rotated key for each token; experts behind the leading dense layers, chosen by
// groups in the large ones, beside those that all tokens share. Old files have the matrices of keys and of
// values in one tensor. Mistral Large 3 and mistral4 have queries that grow with the position. The last
// layers, which predict further tokens, are not run.
#include "arch/arch.h"
#include "arch/blocks.h"

#include <cmath>

namespace redline::archs {

// Attention on latents: a head's query and key have `plain` elements without rope, then `rope` with it.
struct LatentShape {
    uint32_t rank = 0;        // of the latent that keys and values are made of
    uint32_t query_rank = 0;  // of the latent that queries are made of; 0: they are made of the embedding
    uint32_t plain = 0, rope = 0;
    uint32_t value_dim = 0;  // of a head
    bool in_one = false;     // the matrices of keys and values are one tensor

    uint32_t width() const { return rank + rope; }  // of a row of the cache
};

struct DeepSeek : Config {
    LatentShape latent = {};
};

static Status read_latent(const ModelFile& file, DeepSeek& c) {
    LatentShape& s = c.latent;
    s.rank = RL_TRY(count(file, "attention.kv_lora_rank", {}, 1, 65536));
    s.query_rank = RL_TRY(count(file, "attention.q_lora_rank", 0, 0, 65536));
    s.rope = RL_TRY(count(file, "rope.dimension_count", {}, 2, 4096));
    const std::string layer = fmt::format("blk.{}.", c.first_layer);
    const GgufTensor* keys = file.gguf.find(layer + "attn_k_b.weight");
    const GgufTensor* values = file.gguf.find(layer + "attn_v_b.weight");
    s.in_one = !keys || !values;
    // Files that have two tensors count heads of latents in the metadata, or of other things.
    const uint64_t plain =
        keys ? keys->tensor.shape.cols : c.heads.head_dim - std::min(c.heads.head_dim, s.rope);
    const uint64_t value_dim = s.in_one
                                   ? RL_TRY(count(file, "attention.value_length", c.heads.head_dim, 1, 4096))
                                   : values->tensor.shape.rows;
    if (plain == 0 || plain > 4096 || value_dim > 4096)
        return error("{}: heads of {} without rope, and values of {}, are not possible", file.gguf.path(),
                     plain, value_dim);
    s.plain = uint32_t(plain);
    s.value_dim = uint32_t(value_dim);
    return {};
}

// With yarn, scores are scaled in place of queries and keys, if the file says by how much.
static Status read_scale(const ModelFile& file, DeepSeek& c) {
    c.rope = RL_TRY(common_rope(file, c, false));
    c.scale = 1.0f / std::sqrt(float(c.latent.plain + c.latent.rope));
    const float multiplier = RL_TRY(factor(file, "rope.scaling.yarn_log_multiplier", 0.0f));
    const std::string type = RL_TRY(file.meta().text(file.key("rope.scaling.type"), "none"));
    if (multiplier == 0.0f || type != "yarn") return {};
    const float longer = RL_TRY(factor(file, "rope.scaling.factor", 1.0f));
    const float growth = 1.0f + multiplier * std::log(std::max(longer, 1.0f));
    c.scale *= growth * growth;
    c.rope.magnitude = RL_TRY(factor(file, "rope.scaling.attn_factor", 1.0f));
    return {};
}

// Queries grow with the position, as by a rope whose frequencies are zero.
static Status read_growth(const ModelFile& file, DeepSeek& c) {
    const uint32_t head = c.latent.plain + c.latent.rope;
    RopeSpec& growing = c.query_rope;
    growing.growth = RL_TRY(factor(file, "attention.temperature_scale", 0.0f));
    if (growing.growth == 0.0) return {};
    const uint64_t trained =
        RL_TRY(file.meta().integer(file.key("rope.scaling.original_context_length"), c.train_context));
    growing.period = RL_TRY(file.meta().integer(file.key("attention.temperature_length"), trained));
    if (growing.period == 0 || head % 2 != 0)
        return error("{}: {} wants a length, and heads of {} to be even", file.gguf.path(),
                     file.key("attention.temperature_scale"), head);
    growing.inverse_frequency.assign(head / 2, 0.0);
    return {};
}

// Files that do not say it have a bias of the router where experts are chosen by sigmoid.
static Status read_experts(const ModelFile& file, DeepSeek& c) {
    RL_TRY(read_shared_experts(file, c, 0, true));
    if (RL_TRY(file.meta().integer(file.key("expert_gating_func"), 0)) > 0)
        RL_TRY(read_gating(file, c, {}));
    else if (file.any_layer_has("exp_probs_b.bias", c.layers))
        c.gating = Gating::sigmoid;
    c.expert_groups.by_two = c.gating == Gating::sigmoid || file.arch == "mistral4";
    return {};
}

static Result<DeepSeek> config(const ModelFile& file) {
    DeepSeek c{RL_TRY(common_config(file))};
    RL_TRY(choose_layers(file, c));
    RL_TRY(read_latent(file, c));
    RL_TRY(read_scale(file, c));
    RL_TRY(read_growth(file, c));
    c.dense_layers = c.layers;
    if (c.experts > 0) RL_TRY(read_experts(file, c));
    return c;
}

static void attention_weights(const DeepSeek& c, WeightList& w) {
    const LatentShape& s = c.latent;
    const uint64_t heads = c.heads.heads, head = s.plain + s.rope;
    w.vector("attn_norm", c.dim);
    if (s.query_rank > 0) {
        w.matrix("attn_q_a", s.query_rank, c.dim);
        w.vector("attn_q_a_norm", s.query_rank);
        w.matrix("attn_q_b", heads * head, s.query_rank);
    } else {
        w.matrix("attn_q", heads * head, c.dim);
    }
    w.rows_of("latent", "attn_kv_a_mqa", s.width(), 0, s.rank, c.dim);
    w.rows_of("key", "attn_kv_a_mqa", s.width(), s.rank, s.rope, c.dim);
    w.vector("attn_kv_a_norm", s.rank);
    if (s.in_one) {
        const uint64_t both = s.plain + s.value_dim;
        w.head_rows_of("attn_k_b", "attn_kv_b", heads, both, 0, s.plain, s.rank, true);
        w.head_rows_of("attn_v_b", "attn_kv_b", heads, both, s.plain, s.value_dim, s.rank, false);
    } else {
        w.experts("attn_k_b", heads, s.rank, s.plain);
        w.experts("attn_v_b", heads, s.value_dim, s.rank);
        for (uint32_t i = 0; i < c.layers; ++i) w.ignore(fmt::format("blk.{}.attn_kv_b.weight", i));
    }
    w.matrix("attn_output", c.dim, heads * s.value_dim);
}

static void weights(const DeepSeek& c, WeightList& w) {
    w.embedding_and_output();
    attention_weights(c, w);
    w.vector("ffn_norm", c.dim);
    w.in_layers(0, c.dense_layers);
    w.gated_ffn();
    w.in_layers(c.dense_layers, c.layers);
    w.routed_experts(true);
    w.shared_expert();
    w.ignore_unused_layers();
}

// A query is multiplied with the matrix of its head's keys, so that it meets the latents themselves; the
// matrix of values is applied to their weighted sum.
static Slot attention(const DeepSeek& c, const LayerWeights& l, Slot x, uint32_t rope, uint32_t growing,
                      PlanBuilder& p) {
    const LatentShape& s = c.latent;
    const uint32_t heads = c.heads.heads, head = s.plain + s.rope;
    auto [q, latent, key] =
        p.group(x, {{{l[s.query_rank > 0 ? "attn_q_a" : "attn_q"]}, {l["latent"]}, {l["key"]}}},
                c.norm(l["attn_norm"]));
    if (s.query_rank > 0) q = p.linear(q, l["attn_q_b"], c.norm(l["attn_q_a_norm"]));
    if (c.query_rope.growth > 0.0) p.append(Rope{q, heads, head, growing});
    const Cache cache = p.latents(s.width(), s.rank);
    p.append(Rope{key, 1, s.rope, rope});
    p.append(LatentStore{p.rms_norm(latent, c.norm(l["attn_kv_a_norm"])), key, cache});
    const Slot rotated = p.parts_of(q, heads, s.rope, s.plain, head);
    p.append(Rope{rotated, heads, s.rope, rope});
    const Slot queries = p.head_linear(q, l["attn_k_b"], head, s.width());
    p.append(CopyParts{rotated, queries, heads, s.rope, 0, s.rope, s.rank, s.width()});
    const Slot seen = p.latent_attention(cache, queries, heads, c.scale);
    return p.head_linear(seen, l["attn_v_b"], s.rank, s.value_dim);
}

static void build(const DeepSeek& c, const WeightSet& w, PlanBuilder& p) {
    const uint32_t rope = p.add_rope(c.rope);
    const uint32_t growing = c.query_rope.growth > 0.0 ? p.add_rope(c.query_rope) : rope;
    const Slot x = first_rows(c, w, p);
    for (size_t i = c.first_layer; i < c.layers; ++i) {
        const LayerWeights& l = w.layers()[i];
        p.linear_add(x, attention(c, l, x, rope, growing, p), l["attn_output"]);
        const Norm norm = c.norm(l["ffn_norm"]);
        if (i < c.dense_layers)
            add_gated_ffn(l, x, norm, p);
        else
            add_experts(c, l, x, norm, p);
        p.next_layer();
    }
    add_logits(c, w, x, p);
}

extern const Arch deepseek = make_arch<config, weights, build>({"deepseek2", "glm4moelite", "mistral4"});

}  // namespace redline::archs
