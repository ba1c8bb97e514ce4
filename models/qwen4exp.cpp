// Qwen3.8-Flash-Next: the layers of Qwen3.5 with experts, whose residual has several streams (hyper-
// connections): each block reads a mix of them and is added to each with a weight. Attention sees the blocks
// of tokens that an indexer chooses. One layer adds what a table of n-grams has of the last tokens. A layer
// that predicts has all streams as its hidden rows, and its attention sees everything.
#include "indexer.h"
#include "qwen35.h"

#include <algorithm>
#include <cmath>

namespace redline::archs {

struct Qwen4 : Config {
    DeltaLayers delta = {};
    uint32_t streams = 1;      // of the residual
    uint32_t stream_rank = 0;  // of the matrices that mix them
    IndexShape index = {};
    std::optional<NgramTable> ngrams = {};
    uint32_t ngram_layer = 0;  // the layer that reads the table
    uint32_t ngram_taps = 0;   // of its convolution
};

static Status read_index(const ModelFile& file, Qwen4& c) {
    RL_TRY(read_index_heads(file, c, c.index));
    const std::string key = file.key("attention.compress_ratios");
    for (const uint64_t ratio :
         RL_TRY(file.integers("attention.compress_ratios", c.layers + c.unused_layers, {}))) {
        if (ratio > c.index.tokens)
            return error("{}: {} holds {}; of {} tokens none would be chosen", file.gguf.path(), key, ratio,
                         c.index.tokens);
        c.index.ratios.push_back(uint32_t(ratio));
    }
    for (size_t i = c.first_layer; c.predicts() && i < c.index.ratios.size(); ++i) c.index.ratios[i] = 0;
    return {};
}

// The numbers of a required key, which has to have so many.
static Result<std::vector<uint64_t>> numbers(const ModelFile& file, std::string_view rest, size_t size) {
    return file.meta().integers(file.key(rest), size, {});
}

static Status read_ngrams(const ModelFile& file, Qwen4& c) {
    const std::string key = file.key("ple.layers");
    const std::vector<int64_t>* layers = file.meta().integers(key);
    if (!layers || layers->empty() || c.predicts()) return {};
    if (layers->size() > 1 || (*layers)[0] < 0 || (*layers)[0] >= c.layers)
        return error("{}: {} names {} layers, the first of which is {}; one of {} is supported",
                     file.gguf.path(), key, layers->size(), (*layers)[0], c.layers);
    NgramTable& t = c.ngrams.emplace();
    c.ngram_layer = uint32_t((*layers)[0]);
    c.ngram_taps = RL_TRY(count(file, "ple.conv_kernel", {}, 2, kMostTaps));
    const uint32_t longest = RL_TRY(count(file, "ple.ngram_size", {}, 2, 16));
    t.heads = RL_TRY(count(file, "ple.heads_per_ngram", {}, 1, 1024));
    t.end = Token(RL_TRY(count(file, "ple.eos_token_id", {}, 0, c.vocab - 1)));
    t.width = RL_TRY(count(file, "embedding_length_per_layer_input", {}, 1, 1u << 16));
    t.multipliers = RL_TRY(numbers(file, "ple.layer_multipliers", longest));
    t.sizes = RL_TRY(numbers(file, "ple.head_vocab_sizes", (longest - 1) * t.heads));
    t.first = RL_TRY(numbers(file, "ple.head_offsets", (longest - 1) * t.heads));
    t.tensor = "per_layer_token_embd.weight";
    const GgufTensor* table = file.gguf.find(t.tensor);
    if (!table) return error("{}: tensor {} is missing", file.gguf.path(), t.tensor);
    const Shape& shape = table->tensor.shape;
    if (!table->tensor.format || shape.count != 1 || shape.cols != t.width)
        return error(
            "{}: tensor {} is ({}, {}, {}) of {}, rows of {} in a format that can be decoded expected",
            file.gguf.path(), t.tensor, shape.count, shape.rows, shape.cols, describe_type(table->type),
            t.width);
    for (size_t i = 0; i < t.sizes.size(); ++i)
        if (t.sizes[i] == 0 || t.first[i] >= shape.rows || t.sizes[i] > shape.rows - t.first[i])
            return error("{}: rows {} and {} more of tensor {} are hashed to, which has {}", file.gguf.path(),
                         t.first[i], t.sizes[i], t.tensor, shape.rows);
    return {};
}

static Result<Qwen4> config(const ModelFile& file) {
    RL_TRY(count(file, "expert_count", {}, 1, 1u << 16));  // it has no dense layers
    DeltaLayers delta = {};
    Qwen4 c{RL_TRY(read_qwen35(file, delta))};
    c.delta = delta;
    c.streams = RL_TRY(count(file, "hyper_connection.count", {}, 1, 64));
    c.hidden_streams = c.streams;
    RL_TRY(choose_layers(file, c));
    c.recurrent.resize(c.layers);  // a layer that predicts is attention
    c.stream_rank = RL_TRY(count(file, "hyper_connection.low_rank", {}, 1, 1u << 16));
    RL_TRY(read_index(file, c));
    RL_TRY(read_ngrams(file, c));
    return c;
}

// The mix before the output. A layer that predicts has one for itself.
static void last_mix_weights(const Qwen4& c, WeightList& w) {
    const uint64_t wide = uint64_t(c.streams) * c.dim;
    const auto may_have = [&](const char* part) {
        if (c.predicts())
            w.or_of_prediction(fmt::format("blk.{}.nextn.hc_head_{}.weight", c.first_layer, part));
    };
    w.global_vector("output_hc_norm", wide);
    may_have("norm");
    w.global_matrix("output_hc_down", c.stream_rank, wide);
    may_have("down");
    w.global_matrix("output_hc_up", wide, c.stream_rank);
    may_have("up");
}

// `at`: "hc_attn", "hc_ffn".
static void mix_weights(const Qwen4& c, const std::string& at, WeightList& w) {
    const uint64_t wide = uint64_t(c.streams) * c.dim;
    w.vector(at + "_norm", wide);
    w.matrix(at + "_down", c.stream_rank, wide);
    w.matrix(at + "_up", wide, c.stream_rank);
    w.matrix(at + "_inject", c.streams, wide);
}

static void attention_weights(const Qwen4& c, uint32_t layer, WeightList& w) {
    w.matrix("attn_q", 2 * uint64_t(c.q_dim()), c.dim);
    w.matrix("attn_k", c.kv_dim(), c.dim);
    w.matrix("attn_v", c.kv_dim(), c.dim);
    w.vector("attn_q_norm", c.heads.head_dim);
    w.vector("attn_k_norm", c.heads.head_dim);
    w.matrix("attn_output", c.dim, c.q_dim());
    if (c.index.ratios[layer] == 0) return;
    w.matrix("indexer.q_proj.weight", uint64_t(c.index.heads) * c.index.head_dim, c.dim);
    w.matrix("indexer.k_proj.weight", c.index.head_dim, c.dim);
    w.vector("indexer.q_norm.weight", c.index.head_dim);
    w.vector("indexer.k_norm.weight", c.index.head_dim);
}

static void ngram_weights(const Qwen4& c, WeightList& w) {
    const uint64_t wide = uint64_t(c.streams) * c.dim;
    w.look_up(*c.ngrams);
    w.matrix("ple_key", wide, c.ngrams->floats());
    w.matrix("ple_value", c.dim, c.ngrams->floats());
    for (const char* name : {"ple_norm_key", "ple_norm_query", "ple_norm_conv"}) w.vector(name, wide);
    w.vector("ple_conv1d", wide * c.ngram_taps);
}

static void weights(const Qwen4& c, WeightList& w) {
    if (c.predicts()) {
        w.prediction_ends(false);
        w.prediction_input();
        w.ignore(fmt::format("blk.{}.indexer.", c.first_layer));
    } else {
        w.global_matrix("token_embd", c.vocab, c.dim);
        w.global_matrix("output", c.vocab, c.dim, "token_embd");
    }
    last_mix_weights(c, w);
    for (uint32_t i = c.first_layer; i < c.layers; ++i) {
        w.in_layers(i, i + 1);
        mix_weights(c, "hc_attn", w);
        mix_weights(c, "hc_ffn", w);
        if (c.is_recurrent(i))
            delta_weights(c, c.delta, w);
        else
            attention_weights(c, i, w);
        if (c.ngrams && i == c.ngram_layer) ngram_weights(c, w);
        qwen35_ffn_weights(c, w);
    }
    w.ignore_unused_layers();
}

// Each stream of x normed by itself, with a gain for all of them.
static Slot normed_streams(const Qwen4& c, Slot x, Weight gain, PlanBuilder& p) {
    const SlotInfo info = p.plan().slot(x);
    const Slot y = p.slot(info.width, info.of_outputs);
    p.append(RmsNorm{x, {{}, c.eps}, c.dim, y});
    p.append(each::multiply(y, gain));
    return y;
}

// The mix of the streams that a block reads, and the weights by which its result is added to them.
struct QwenMixed {
    Slot y, weights;
};

static QwenMixed mix(const Qwen4& c, const auto& w, const std::string& at, Slot x, bool injects,
                     PlanBuilder& p) {
    const Slot normed = normed_streams(c, x, w[at + "_norm"], p);
    const float mean = 1.0f / float(c.streams);
    const Slot low = p.linear(normed, w[at + "_down"]);
    p.append(each::scale(low, mean));
    p.append(each::silu(low));
    const Slot gates = p.linear(low, w[at + "_up"]);
    p.append(each::sigmoid(gates));
    QwenMixed mixed{p.slot(c.dim, p.plan().slot(x).of_outputs), {}};
    p.append(StreamProduct{StreamKind::mix, normed, gates, mixed.y, c.streams, mean});
    if (!injects) return mixed;
    mixed.weights = p.linear(normed, w[at + "_inject"]);
    p.append(each::scale(mixed.weights, mean));
    p.append(each::sigmoid(mixed.weights));
    return mixed;
}

static Slot delta(const Qwen4& c, const LayerWeights& l, Slot x, PlanBuilder& p) {
    const auto [y, gate, norm] = delta_rule(c, c.delta, l, x, {}, p);
    p.append(RmsNorm{y, norm, c.delta.shape.value_dim, y});
    p.append(each::sigmoid(gate));
    p.append(StreamProduct{StreamKind::mix, y, gate, y, 1});
    return p.linear(y, l["ssm_out"]);
}

// The blocks that each token sees.
static Slot chosen_blocks(const Qwen4& c, const LayerWeights& l, uint32_t ratio, Slot x, uint32_t rope,
                          uint32_t block_rope, PlanBuilder& p) {
    const uint32_t heads = c.index.heads, d = c.index.head_dim;
    const Slot key = p.linear(x, l["indexer.k_proj.weight"]), mean = p.slot(d);
    p.append(BlockMean{key, mean, p.state(d), ratio});
    p.append(RmsNorm{mean, c.norm(l["indexer.k_norm.weight"]), d, mean});
    p.append(Rope{mean, 1, d, block_rope});
    // A row for each block, where pages are whole blocks.
    const Cache keys = kPageRows % ratio == 0 ? p.entries(d, ratio) : p.latents(d, d);
    p.append(LatentStore{mean, {}, keys});
    const Slot q = p.linear(x, l["indexer.q_proj.weight"]);
    p.append(RmsNorm{q, c.norm(l["indexer.q_norm.weight"]), d, q});
    p.append(Rope{q, heads, d, rope});
    const uint64_t blocks = std::max<uint64_t>(1, p.plan().sizing.context / ratio);
    const Slot scores = p.slot(uint32_t(blocks)), chosen = p.slot(c.index.tokens / ratio);
    p.append(BlockScores{q, scores, keys, heads, ratio});
    p.append(ChooseBlocks{scores, chosen, ratio});
    return chosen;
}

struct QwenRopes {
    uint32_t tokens;
    std::vector<uint32_t> blocks;  // by layer
};

// A query stands beside its gate in each head.
static Slot attention(const Qwen4& c, const LayerWeights& l, uint32_t layer, Slot x, const QwenRopes& ropes,
                      PlanBuilder& p) {
    const uint32_t d = c.heads.head_dim, ratio = c.index.ratios[layer];
    const Norm q_norm = c.norm(l["attn_q_norm"]), k_norm = c.norm(l["attn_k_norm"]);
    const auto [both, k, v] = qkv(p, x, l);
    const Slot q = p.parts_of(both, c.heads.heads, d, 0, 2 * d);
    const Cache cache = p.cache(c.heads.kv_heads, d);
    Slot seen;
    if (ratio == 0) {
        seen = p.attend(cache, {q, k, v}, c.heads, ropes.tokens, c.attention_scale(), q_norm, k_norm);
    } else {
        const Slot chosen = chosen_blocks(c, l, ratio, x, ropes.tokens, ropes.blocks[layer], p);
        p.rope_store(cache, q, k, v, c.heads, ropes.tokens, q_norm, k_norm);
        seen = p.slot(c.q_dim());
        p.append(Attention{.q = q,
                           .y = seen,
                           .cache = cache,
                           .shape = c.heads,
                           .scale = c.attention_scale(),
                           .keys = {Keys::blocks, chosen, ratio}});
    }
    p.append(OutputGate{both, seen, d});
    return p.linear(seen, l["attn_output"]);
}

static Slot ffn(const Qwen4& c, const LayerWeights& l, Slot x, PlanBuilder& p) {
    const Slot share = p.linear(x, l["ffn_gate_inp_shexp"]);
    p.append(each::sigmoid(share));
    const Slot shared = p.linear(shared_hidden(l, x, p), l["ffn_down_shexp"]);
    p.append(StreamProduct{StreamKind::mix, shared, share, shared, 1});
    const auto routing = p.route(x, l["ffn_gate_inp"], c.experts_used, Gating::softmax, true);
    p.experts_add(shared, x, routing, gated_experts(l));
    return shared;
}

// x += the table's rows for the last tokens, as far as they agree with each stream, and a convolution of
// these.
static void add_ngrams(const Qwen4& c, const LayerWeights& l, Slot x, PlanBuilder& p) {
    const uint32_t wide = c.streams * c.dim, apart = uint32_t(c.ngrams->multipliers.size());
    const Slot found = p.look_up(c.ngrams->floats());
    const Slot key = normed_streams(c, p.linear(found, l["ple_key"]), l["ple_norm_key"], p);
    const Slot query = normed_streams(c, x, l["ple_norm_query"], p);
    const Slot gates = p.slot(c.streams), gated = p.slot(wide);
    p.append(StreamProduct{StreamKind::dot, key, query, gates, c.streams, 1.0f / std::sqrt(float(c.dim))});
    p.append(each::signed_root(gates));
    p.append(each::sigmoid(gates));
    p.append(
        StreamProduct{StreamKind::add, p.linear(found, l["ple_value"]), gates, gated, c.streams, 1.0f, true});
    const Slot normed = normed_streams(c, gated, l["ple_norm_conv"], p);
    const Cache last = p.state(uint64_t(wide) * (c.ngram_taps - 1) * apart);
    p.add(x, gated);
    p.add(x, p.convolve(last, normed, l["ple_conv1d"], c.ngram_taps, true, {}, {}, apart));
}

static QwenRopes add_ropes(const Qwen4& c, PlanBuilder& p) {
    QwenRopes ropes{p.add_rope(c.rope), {}};
    std::vector<uint32_t> known(size_t(c.index.tokens) + 1, kNoRope);
    for (uint32_t i = 0; i < c.layers; ++i) {
        const uint32_t ratio = c.is_recurrent(i) ? 0 : c.index.ratios[i];
        if (ratio > 0 && known[ratio] == kNoRope) {
            RopeSpec of_blocks = c.rope;
            of_blocks.block = ratio;
            known[ratio] = p.add_rope(of_blocks);
        }
        ropes.blocks.push_back(known[ratio]);
    }
    return ropes;
}

// The streams that the first layer reads: all are the token's embedding; where it predicts, each is a product
// with the norms of this and of the stream that the host gives.
static Slot qwen_streams(const Qwen4& c, const WeightSet& w, PlanBuilder& p) {
    const Slot token = p.embed(w["token_embd"]);
    if (!c.predicts()) return p.parts_of(token, c.streams, c.dim, 0, 0);
    const LayerWeights& l = w.layers()[c.first_layer];
    const Slot normed = p.rms_norm(token, c.norm(l["nextn.enorm.weight"])), x = p.slot(c.hidden_dim()),
               given = normed_streams(c, p.input(c.hidden_dim()), l["nextn.hnorm.weight"], p);
    for (uint32_t i = 0; i < c.streams; ++i) {
        const Slot one = p.parts_of(given, 1, c.dim, i * c.dim, c.dim),
                   y = p.linear(side_by_side(normed, one, p), l["nextn.eh_proj.weight"]);
        p.append(CopyParts{y, x, 1, c.dim, 0, c.dim, i * c.dim, c.dim});
    }
    return x;
}

static void build(const Qwen4& c, const WeightSet& w, PlanBuilder& p) {
    const QwenRopes ropes = add_ropes(c, p);
    const Slot x = qwen_streams(c, w, p);
    for (uint32_t i = c.first_layer; i < c.layers; ++i) {
        const LayerWeights& l = w.layers()[i];
        if (c.ngrams && i == c.ngram_layer) add_ngrams(c, l, x, p);
        const QwenMixed read = mix(c, l, "hc_attn", x, true, p);
        const Slot y = c.is_recurrent(i) ? delta(c, l, read.y, p) : attention(c, l, i, read.y, ropes, p);
        p.append(StreamProduct{StreamKind::add, y, read.weights, x, c.streams, 2.0f});
        const QwenMixed next = mix(c, l, "hc_ffn", x, true, p);
        p.append(StreamProduct{StreamKind::add, ffn(c, l, next.y, p), next.weights, x, c.streams, 2.0f});
        p.next_layer();
    }
    if (p.wants_hidden()) p.leave_hidden(x);
    const Slot wanted = p.slot(c.streams * c.dim, true);
    p.append(SelectRows{x, wanted});
    p.output(p.linear(mix(c, w, "output_hc", wanted, false, p).y, w["output"]));
}

extern const Arch qwen4exp = make_arch<config, weights, build>({"qwen4exp"});

}  // namespace redline::archs
