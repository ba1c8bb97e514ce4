// Gemma 3n, the text part: a residual of several streams, of which a block sees the first and corrects all
// (AltUp, arXiv 2301.13310); beside attention a product of low rank (LAuReL, arXiv 2411.07501); FFNs of which
// few gates count in the first layers; an input for each layer and shared keys and values as in Gemma 4.
#include "gemma4.h"

#include <algorithm>
#include <cmath>

namespace redline::archs {

constexpr float kTinyEps = 1e-12f;  // of norms of streams, which the model has without an epsilon

struct Gemma3n : Config {
    uint32_t other_rows = 0;         // of the embedding, behind `vocab`: tokens that are not of text
    uint32_t streams = 1;            // of the residual
    uint32_t laurel_rank = 0;        // of the product beside attention
    std::vector<float> sparse = {};  // by layer: Sparsify::deviations of its FFN; 0: dense
};

static Status read_streams(const ModelFile& file, Gemma3n& c) {
    c.streams = RL_TRY(count(file, "altup.num_inputs", 4, 2, 64));
    const uint32_t active = RL_TRY(count(file, "altup.active_idx", 0, 0, c.streams - 1));
    if (active != 0)
        return error("{}: {} is {}; only the first stream can be the active one", file.gguf.path(),
                     file.key("altup.active_idx"), active);
    const GgufTensor* laurel = file.gguf.find("blk.0.laurel_l.weight");
    if (!laurel) return error("{}: tensor blk.0.laurel_l.weight is missing", file.gguf.path());
    if (laurel->tensor.shape.rows == 0 || laurel->tensor.shape.rows > (1u << 20))
        return error("{}: tensor blk.0.laurel_l.weight has an impossible shape", file.gguf.path());
    c.laurel_rank = uint32_t(laurel->tensor.shape.rows);
    return {};
}

// Dense layers have 0 in the list, or minus infinity, which stands for no sparsity. Files without the key are
// of models whose first ten layers keep one gate of twenty.
static Status read_sparsity(const ModelFile& file, Gemma3n& c) {
    const std::string key = file.key("activation_sparsity_scale");
    const std::vector<float>* stored = file.meta().floats(key);
    for (uint32_t i = 0; i < c.layers && !stored; ++i) c.sparse.push_back(i < 10 ? 1.6448534f : 0.0f);
    if (!stored) return {};
    if (stored->size() != c.layers)
        return error("{}: {} has {} numbers, {} expected", file.gguf.path(), key, stored->size(), c.layers);
    for (const float deviations : *stored) {
        if (std::isnan(deviations) || deviations > 100.0f)
            return error("{}: {} holds {}, at most 100 expected", file.gguf.path(), key, deviations);
        c.sparse.push_back(std::max(deviations, 0.0f));
    }
    return {};
}

// Leaves out the tokens of images and sounds, for which the table of inputs to layers has no rows.
static Status read_vocabulary(const ModelFile& file, Gemma3n& c) {
    const GgufTensor* table = file.gguf.find("per_layer_token_embd.weight");
    if (!table) return error("{}: tensor per_layer_token_embd.weight is missing", file.gguf.path());
    const uint32_t rows = c.vocab;
    c.vocab = uint32_t(std::min<uint64_t>(rows, table->tensor.shape.rows));
    c.other_rows = rows - c.vocab;
    return {};
}

static Result<Gemma3n> config(const ModelFile& file) {
    Gemma3n c{RL_TRY(common_config(file, 1e-6f, LayersDiffer::in_size))};
    c.embedding_scale = std::sqrt(float(c.dim));
    c.scale = 1.0f;
    RL_TRY(read_windows(file, c, 5, 512));
    c.shared_caches = RL_TRY(
        count(file, "attention.shared_kv_layers", c.layers - std::min(c.layers, 20u), 0, c.layers - 1));
    RL_TRY(check_shared_caches(file, c));
    c.heads.kv_heads = c.kv_heads_of[0];
    for (uint32_t i = 0; i < c.layers; ++i)
        if (c.heads_of[i] != c.heads.heads || c.kv_heads_of[i] != c.heads.kv_heads)
            return error("{}: layer {} has other heads than layer 0", file.gguf.path(), i);
    c.rope = RL_TRY(common_rope(file, c, true));
    c.local_rope = RL_TRY(local_rope(file, c));
    c.layer_input = RL_TRY(count(file, "embedding_length_per_layer_input", 256, 1, 1u << 16));
    c.logit_softcap = RL_TRY(factor(file, "final_logit_softcapping", 30.0f));
    RL_TRY(read_streams(file, c));
    RL_TRY(read_sparsity(file, c));
    RL_TRY(read_vocabulary(file, c));
    return c;
}

static void layer_weights(const Gemma3n& c, uint32_t layer, WeightList& w) {
    const uint64_t streams = c.streams, ffn = c.ffn_dims[layer];
    w.vector("altup_router_norm", c.dim);
    w.matrix("altup_router", streams, c.dim);
    w.matrix("altup_predict_coef", streams * streams, streams);
    w.matrix("altup_correct_coef", streams, streams);
    w.vector("altup_correct_scale", c.dim);
    w.matrix("laurel_l", c.laurel_rank, c.dim);
    w.matrix("laurel_r", c.dim, c.laurel_rank);
    for (const char* norm :
         {"attn_norm", "post_attention_norm", "laurel_post_norm", "ffn_norm", "post_ffw_norm", "post_norm"})
        w.vector(norm, c.dim);
    w.matrix("attn_q", c.q_dim(), c.dim);
    w.vector("attn_q_norm", c.heads.head_dim);
    w.matrix("attn_output", c.dim, c.q_dim());
    if (layer < first_sharing(c)) {
        w.matrix("attn_k", c.kv_dim(), c.dim);
        w.matrix("attn_v", c.kv_dim(), c.dim);
        w.vector("attn_k_norm", c.heads.head_dim);
    } else {
        ignore_keys_and_values(layer, w);
    }
    w.matrix("ffn_gate", ffn, c.dim);
    w.matrix("ffn_up", ffn, c.dim);
    w.matrix("ffn_down", c.dim, ffn);
    w.matrix("inp_gate", c.layer_input, c.dim);
    w.matrix("proj", c.dim, c.layer_input);
}

static std::string unembedding(uint32_t stream) {
    return fmt::format("altup_unembd_proj.{}", stream);
}

static void weights(const Gemma3n& c, WeightList& w) {
    const uint64_t others = uint64_t(c.streams - 1) * c.dim;
    w.global_rows_of("token_embd", "token_embd", c.vocab + c.other_rows, 0, c.vocab, c.dim);
    w.global_vector("output_norm", c.dim);
    layer_input_weights(c, w);
    w.global_rows_of("altup_proj", "altup_proj", others, 0, others, c.dim);
    for (uint32_t i = 1; i < c.streams; ++i)
        w.global_rows_of(unembedding(i), "altup_unembd_proj", others, uint64_t(i - 1) * c.dim, c.dim, c.dim);
    for (uint32_t i = 0; i < c.layers; ++i) {
        w.in_layers(i, i + 1);
        layer_weights(c, i, w);
    }
}

// The root of the mean square of a row.
static Slot size_of(const Gemma3n& c, Slot x, PlanBuilder& p) {
    const Slot size = p.slot(1, p.plan().slot(x).of_outputs);
    p.append(StreamProduct{StreamKind::dot, x, x, size, 1, 1.0f / float(c.dim)});
    p.append(each::signed_root(size));
    return size;
}

// Streams of y, each as large as `size`.
static void resize(const Gemma3n& c, Slot y, Slot size, PlanBuilder& p) {
    p.append(RmsNorm{y, {{}, kTinyEps}, c.dim, y});
    p.append(StreamProduct{StreamKind::mix, y, size, y, 1});
}

// The embedding, and products of it that are as large.
static Slot first_streams(const Gemma3n& c, const WeightSet& w, Slot x, PlanBuilder& p) {
    const uint32_t d = c.dim, others = c.streams - 1;
    const Slot made = p.linear(x, w["altup_proj"]), streams = p.slot(c.streams * d);
    resize(c, made, size_of(c, x, p), p);
    p.append(CopyParts{x, streams, 1, d, 0, d, 0, d});
    p.append(CopyParts{made, streams, others, d, 0, d, d, d});
    return streams;
}

// The row of which the coefficients of the streams are made, from the active one.
static Slot routed(const Gemma3n& c, const LayerWeights& l, Slot x, PlanBuilder& p) {
    const Slot y = p.linear(x, l["altup_router"], c.norm(l["altup_router_norm"]));
    p.append(each::softcap(y, 1.0f / float(c.dim), 1.0f));  // its tangent
    return y;
}

static Slot active(const Gemma3n& c, Slot streams, PlanBuilder& p) {
    return p.parts_of(streams, 1, c.dim, 0, c.dim);
}

struct Gemma3nRopes {
    uint32_t global, local;
};

static Slot attention(const Gemma3n& c, const LayerWeights& l, uint32_t layer, Slot x,
                      const Gemma3nRopes& ropes, std::vector<Cache>& caches, PlanBuilder& p) {
    const uint32_t rope = c.is_windowed(layer) ? ropes.local : ropes.global, d = c.heads.head_dim;
    const Norm q_norm = c.norm(l["attn_q_norm"]);
    if (layer >= first_sharing(c)) {
        const Slot q = p.linear(x, l["attn_q"]);
        p.append(RmsNorm{q, q_norm, d, q});
        p.append(Rope{q, c.heads.heads, d, rope});
        return p.attention(caches[layer_of_cache(c, layer)], q, c.heads, c.scale);
    }
    caches.push_back(p.cache(c.heads.kv_heads, d, c.window_of(layer)));
    const auto products = qkv(p, x, l);
    p.append(RmsNorm{products[2], {{}, c.eps}, d, products[2]});
    return p.attend(caches.back(), products, c.heads, rope, c.scale, q_norm, c.norm(l["attn_k_norm"]));
}

static Slot ffn(const Gemma3n& c, const LayerWeights& l, uint32_t layer, Slot x, PlanBuilder& p) {
    const Norm norm = c.norm(l["ffn_norm"]);
    if (c.sparse[layer] == 0.0f) return p.linear(gated(l, x, norm, p, Act::gelu_tanh), l["ffn_down"]);
    const Slot normed = p.rms_norm(x, norm), gate = p.linear(normed, l["ffn_gate"]);
    p.append(Sparsify{gate, c.sparse[layer]});
    p.append(each::gelu_times(gate, gate, p.linear(normed, l["ffn_up"])));
    return p.linear(gate, l["ffn_down"]);
}

// The layer's attention and FFN of the active stream.
static Slot activated(const Gemma3n& c, const LayerWeights& l, uint32_t layer, Slot x,
                      const Gemma3nRopes& ropes, std::vector<Cache>& caches, PlanBuilder& p) {
    const Slot normed = p.rms_norm(x, c.norm(l["attn_norm"])), y = active(c, x, p);
    p.add(y, normed);
    p.add(y, p.linear(p.linear(normed, l["laurel_l"]), l["laurel_r"]), 1.0f, c.norm(l["laurel_post_norm"]));
    const Slot seen = attention(c, l, layer, normed, ropes, caches, p);
    p.add(y, p.linear(seen, l["attn_output"]), 1.0f, c.norm(l["post_attention_norm"]));
    p.append(each::scale(y, std::sqrt(0.5f)));
    p.add(y, ffn(c, l, layer, y, p), 1.0f, c.norm(l["post_ffw_norm"]));
    return y;
}

// The streams behind a layer.
static Slot next_streams(const Gemma3n& c, const LayerWeights& l, uint32_t layer, Slot x, Slot inputs,
                         const Gemma3nRopes& ropes, std::vector<Cache>& caches, PlanBuilder& p) {
    const Slot streams = p.slot(c.streams * c.dim);
    const Slot predict = p.linear(routed(c, l, active(c, x, p), p), l["altup_predict_coef"]);
    p.append(StreamProduct{StreamKind::turn, x, predict, streams, c.streams});
    const Slot predicted = active(c, streams, p);
    const Slot y = activated(c, l, layer, predicted, ropes, caches, p);
    const Slot correct = p.linear(routed(c, l, y, p), l["altup_correct_coef"]);
    p.add(y, predicted, -1.0f);
    p.append(StreamProduct{StreamKind::add, y, correct, streams, c.streams, 1.0f, false, 1.0f});
    const Slot corrected = active(c, streams, p);
    p.append(each::multiply(corrected, l["altup_correct_scale"]));
    const Slot more = p.rms_norm(of_layer_input(c, l, layer, corrected, inputs, p), c.norm(l["post_norm"]));
    p.append(StreamProduct{StreamKind::add, more, {}, streams, c.streams, 1.0f, false, 1.0f, 1});
    return streams;
}

// The mean of the streams, each as large as the first.
static Slot joined(const Gemma3n& c, const WeightSet& w, Slot streams, PlanBuilder& p) {
    const Slot sum = active(c, streams, p), size = size_of(c, sum, p);
    for (uint32_t i = 1; i < c.streams; ++i) {
        const Slot one = p.linear(p.parts_of(streams, 1, c.dim, i * c.dim, c.dim), w[unembedding(i)]);
        resize(c, one, size, p);
        p.add(sum, one);
    }
    p.append(each::scale(sum, 1.0f / float(c.streams)));
    return sum;
}

static void build(const Gemma3n& c, const WeightSet& w, PlanBuilder& p) {
    const Gemma3nRopes ropes{p.add_rope(c.rope), p.add_rope(c.local_rope)};
    const Slot x = p.embed(w["token_embd"], c.embedding_scale);
    const Slot inputs = layer_inputs(c, w, x, p);
    Slot streams = first_streams(c, w, x, p);
    std::vector<Cache> caches;
    for (uint32_t i = 0; i < c.layers; ++i) {
        streams = next_streams(c, w.layers()[i], i, streams, inputs, ropes, caches, p);
        p.next_layer();
    }
    const Slot wanted = p.slot(c.streams * c.dim, true);
    p.append(SelectRows{streams, wanted});
    const Slot logits = p.linear(joined(c, w, wanted, p), w["token_embd"], c.norm(w["output_norm"]));
    if (c.logit_softcap > 0.0f) p.append(each::softcap(logits, 1.0f, c.logit_softcap));
    p.output(logits);
}

extern const Arch gemma3n = make_arch<config, weights, build>({"gemma3n"});

}  // namespace redline::archs
