// DeepSeek V4: a residual of several streams (hyper-connections whose mixing is doubly stochastic). Attention
// sees the last tokens and, behind the first layers, entries that are made of blocks of tokens: in layers
// with small blocks those that an indexer chooses, in layers with large ones all. A token's row is key and
// value of all heads. Each layer has experts beside a shared one; in the first layers a table has them by
// token. A layer that predicts has all streams as its hidden rows, and attention without entries.
#include "arch/arch.h"
#include "arch/blocks.h"
#include "indexer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace redline::archs {

constexpr uint32_t kIndexedRatio = 4;  // tokens of the blocks that overlap and are chosen from

struct DeepSeek4 : Config {
    uint32_t streams = 1;        // of the residual
    uint32_t stream_rounds = 0;  // that make the weights of the streams doubly stochastic
    float stream_eps = 0.0f;     // in these rounds
    uint32_t query_rank = 0;     // of the latent that queries are made of
    uint32_t output_groups = 0;  // of heads
    uint32_t output_rank = 0;    // of the latent that each group is made to before the output
    uint32_t hashed_layers = 0;  // the first, whose experts a table has by token
    bool parts_apart = false;    // a layer that predicts has a matrix for tokens and one for hidden rows
    IndexShape index = {};
    // By layer: the largest value of gates and ups, of experts and of shared ones; 0 or empty: there is none.
    std::vector<float> expert_limits = {}, shared_limits = {};
};

// There may be further ratios, of layers that are not run.
static Status read_ratios(const ModelFile& file, DeepSeek4& c) {
    const std::string key = file.key("attention.compress_ratios");
    const std::vector<int64_t>* ratios = file.meta().integers(key);
    if (!ratios || ratios->size() < (c.predicts() ? c.first_layer : c.layers))
        return error("{}: {} is not a list of {} numbers", file.gguf.path(), key, c.layers);
    for (uint32_t i = 0; i < c.layers; ++i) {
        const int64_t ratio = i < ratios->size() ? (*ratios)[i] : 0;
        if (c.predicts() && i >= c.first_layer && ratio != 0)
            return error("{}: layer {} predicts further tokens with entries of {}, which is not supported",
                         file.gguf.path(), i, ratio);
        if (ratio < 0 || ratio > int64_t(kPageRows) || (ratio > 0 && kPageRows % uint64_t(ratio) != 0))
            return error("{}: {} holds {}; 0 and divisors of {} are supported", file.gguf.path(), key, ratio,
                         kPageRows);
        c.index.ratios.push_back(uint32_t(ratio));
    }
    return {};
}

static Status read_index(const ModelFile& file, DeepSeek4& c) {
    if (std::ranges::count(c.index.ratios, kIndexedRatio) == 0) return {};
    return read_index_heads(file, c, c.index);
}

static Status read_attention(const ModelFile& file, DeepSeek4& c) {
    c.query_rank = RL_TRY(count(file, "attention.q_lora_rank", {}, 1, 65536));
    c.window = RL_TRY(count(file, "attention.sliding_window", {}, 1, 1u << 24));
    c.output_groups = RL_TRY(count(file, "attention.output_group_count", {}, 1, c.heads.heads));
    c.output_rank = RL_TRY(count(file, "attention.output_lora_rank", {}, 1, 65536));
    if (c.heads.kv_heads != 1 || c.heads.heads % c.output_groups != 0)
        return error("{}: {} heads in {} groups on {} kv heads; whole groups on one are supported",
                     file.gguf.path(), c.heads.heads, c.output_groups, c.heads.kv_heads);
    // Layers with entries have another base, and yarn that leaves magnitudes; the others have no scaling.
    c.rope = RL_TRY(common_rope(file, c, false, {}, true, "attention.compress_rope_freq_base"));
    c.rope.magnitude = 1.0;
    c.local_rope = RL_TRY(local_rope(file, c, "rope.freq_base"));
    RL_TRY(read_ratios(file, c));
    return read_index(file, c);
}

// Checks the experts in the tables by token. Other faults of these tensors are found with those of all
// others.
static Status check_tables(const ModelFile& file, const DeepSeek4& c) {
    for (uint32_t i = 0; i < c.hashed_layers; ++i) {
        const std::string name = fmt::format("blk.{}.ffn_gate_tid2eid.weight", i);
        const GgufTensor* found = file.gguf.find(name);
        if (!found) found = file.gguf.find(name.substr(0, name.rfind('.')));
        if (!found || found->tensor.shape.elements() != uint64_t(c.vocab) * c.experts_used ||
            found->bytes != uint64_t(c.vocab) * c.experts_used * sizeof(int32_t))
            continue;
        std::vector<int32_t> experts(size_t(c.vocab) * c.experts_used);
        RL_TRY(file.gguf.read(*found, 0, std::as_writable_bytes(std::span(experts))));
        for (const int32_t expert : experts)
            if (expert < 0 || uint32_t(expert) >= c.experts)
                return error("{}: tensor {} holds expert {}; there are {}", file.gguf.path(),
                             found->tensor.name, expert, c.experts);
    }
    return {};
}

static Status read_experts(const ModelFile& file, DeepSeek4& c) {
    // These lists have the layers, too, that are not run.
    c.expert_limits = RL_TRY(file.limits("swiglu_clamp_exp", c.layers));
    c.shared_limits = RL_TRY(file.limits("swiglu_clamp_shexp", c.layers));
    RL_TRY(choose_layers(file, c));
    RL_TRY(read_shared_experts(file, c, 1));
    c.expert_norm = RL_TRY(file.meta().boolean(file.key("expert_weights_norm"), true));
    const uint64_t gating = RL_TRY(file.meta().integer(file.key("expert_gating_func"), 4));
    if (gating != 4 || c.dense_layers > 0 || c.shared_ffn_dim == 0)
        return error(
            "{}: {} {}, {} leading dense layers, shared experts of {}; 4 (the root of softplus), none and "
            "some are supported",
            file.gguf.path(), file.key("expert_gating_func"), gating, c.dense_layers, c.shared_ffn_dim);
    c.hashed_layers = RL_TRY(count(file, "hash_layer_count", 0, 0, c.layers));
    return c.predicts() ? Status() : check_tables(file, c);
}

static Result<DeepSeek4> config(const ModelFile& file) {
    RL_TRY(count(file, "expert_count", {}, 1, 1u << 16));  // it has no dense layers
    DeepSeek4 c{RL_TRY(common_config(file))};
    c.streams = RL_TRY(count(file, "hyper_connection.count", {}, 1, kMostStreams));
    c.stream_rounds = RL_TRY(count(file, "hyper_connection.sinkhorn_iterations", {}, 1, 1000));
    c.stream_eps = RL_TRY(factor(file, "hyper_connection.epsilon", 1e-6f));
    c.hidden_streams = c.streams;
    RL_TRY(read_experts(file, c));
    RL_TRY(read_attention(file, c));
    c.parts_apart =
        c.predicts() && file.gguf.find(fmt::format("blk.{}.nextn.e_proj.weight", c.first_layer)) != nullptr;
    return c;
}

// `at`: "attn_compressor", "indexer_compressor".
static void entry_weights(const DeepSeek4& c, const std::string& at, uint64_t width, uint32_t ratio,
                          WeightList& w) {
    const uint64_t wide = width * (ratio == kIndexedRatio ? 2 : 1);
    w.matrix(at + "_kv", wide, c.dim);
    w.matrix(at + "_gate", wide, c.dim);
    w.vector(at + "_ape", wide * ratio);
    w.vector(at + "_norm", width);
}

static void attention_weights(const DeepSeek4& c, uint32_t ratio, WeightList& w) {
    const uint64_t d = c.heads.head_dim, rank = c.query_rank, groups = c.output_groups;
    w.vector("attn_norm", c.dim);
    w.matrix("attn_q_a", rank, c.dim);
    w.vector("attn_q_a_norm", rank);
    w.matrix("attn_q_b", c.q_dim(), rank);
    w.matrix("attn_kv", d, c.dim);
    w.vector("attn_kv_a_norm", d);
    w.vector("attn_sinks", c.heads.heads);
    w.head_rows_of("attn_output_a", "attn_output_a", groups, c.output_rank, 0, c.output_rank,
                   c.q_dim() / groups, false);
    w.matrix("attn_output_b", c.dim, groups * c.output_rank);
    if (ratio > 0) entry_weights(c, "attn_compressor", d, ratio, w);
    if (ratio != kIndexedRatio) return;
    entry_weights(c, "indexer_compressor", c.index.head_dim, ratio, w);
    w.matrix("indexer.attn_q_b.weight", uint64_t(c.index.heads) * c.index.head_dim, rank);
    w.matrix("indexer.proj.weight", c.index.heads, c.dim);
}

// A layer that predicts may have the last weights of the streams for itself.
static void end_weights(const DeepSeek4& c, WeightList& w) {
    const auto may_have = [&](const char* part) {
        if (c.predicts())
            w.or_of_prediction(fmt::format("blk.{}.nextn.hc_head_{}.weight", c.first_layer, part));
    };
    w.global_matrix("output_hc_fn", c.streams, uint64_t(c.streams) * c.dim);
    may_have("fn");
    w.global_vector("output_hc_base", c.streams);
    may_have("base");
    w.global_vector("output_hc_scale", 1);
    may_have("scale");
    if (!c.predicts()) return w.embedding_and_output();
    w.prediction_ends();
    if (c.parts_apart) {
        w.matrix("nextn.e_proj.weight", c.dim, c.dim);
        w.matrix("nextn.h_proj.weight", c.dim, c.dim);
    } else {
        w.matrix("nextn.eh_proj.weight", c.dim, 2 * uint64_t(c.dim));
    }
    w.vector("nextn.enorm.weight", c.dim);
    w.vector("nextn.hnorm.weight", c.dim);
}

static void weights(const DeepSeek4& c, WeightList& w) {
    const uint64_t wide = uint64_t(c.streams) * c.dim, mixed = (2 + uint64_t(c.streams)) * c.streams;
    end_weights(c, w);
    for (const std::string at : {"hc_attn", "hc_ffn"}) {
        w.matrix(at + "_fn", mixed, wide);
        w.vector(at + "_base", mixed);
        w.vector(at + "_scale", 3);
    }
    w.vector("ffn_norm", c.dim);
    w.routed_experts();
    w.shared_expert();
    for (uint32_t i = c.first_layer; i < c.layers; ++i) {
        w.in_layers(i, i + 1);
        attention_weights(c, c.index.ratios[i], w);
        if (i < c.hashed_layers)
            w.integers("ffn_gate_tid2eid", uint64_t(c.experts_used) * c.vocab);
        else
            w.optional_vector("exp_probs_b.bias", c.experts);
    }
    w.ignore_unused_layers();
}

// The row that a block reads of the streams, and the weights by which its result is added to them and by
// which they are mixed.
struct DeepSeekMixed {
    Slot y, add, mix;
};

static DeepSeekMixed read_streams(const DeepSeek4& c, const auto& w, const std::string& at, Slot x,
                                  bool mixes, PlanBuilder& p) {
    const bool of_outputs = p.plan().slot(x).of_outputs;
    const Slot made = p.linear(p.rms_norm(x, {{}, c.eps}), w[at + "_fn"]);
    const Slot read = p.slot(c.streams, of_outputs);
    DeepSeekMixed mixed{p.slot(c.dim, of_outputs), {}, {}};
    if (mixes) mixed.add = p.slot(c.streams);
    if (mixes) mixed.mix = p.slot(c.streams * c.streams);
    p.append(StreamWeights{made, w[at + "_scale"], w[at + "_base"], read, mixed.add, mixed.mix,
                           c.stream_rounds, c.stream_eps});
    p.append(StreamProduct{StreamKind::mix, x, read, mixed.y, c.streams});
    return mixed;
}

// Ropes of layers whose blocks have so many tokens: of tokens, back again, and of blocks.
struct DeepSeekRopes {
    uint32_t there, back, blocks;
};

static DeepSeekRopes add_ropes(const DeepSeek4& c, uint32_t ratio, PlanBuilder& p) {
    RopeSpec there = ratio == 0 ? c.local_rope : c.rope, back = there;
    for (double& frequency : back.inverse_frequency) frequency = -frequency;
    DeepSeekRopes ropes{p.add_rope(there), p.add_rope(back), kNoRope};
    there.block = ratio;
    if (ratio > 0) ropes.blocks = p.add_rope(there);
    return ropes;
}

// Rotates the last dimensions of each head.
static void rotate(const DeepSeek4& c, Slot x, uint32_t heads, uint32_t width, uint32_t rope,
                   PlanBuilder& p) {
    p.append(Rope{x, heads, width, rope, width - uint32_t(2 * c.rope.inverse_frequency.size())});
}

// The cache of entries of blocks.
static Cache entries(const DeepSeek4& c, const LayerWeights& l, const std::string& at, uint32_t width, Slot h,
                     uint32_t ratio, uint32_t rope, PlanBuilder& p) {
    const bool overlaps = ratio == kIndexedRatio;
    const Slot y = p.slot(width);
    p.append(BlockPool{p.linear(h, l[at + "_kv"]), p.linear(h, l[at + "_gate"]), l[at + "_ape"], y,
                       p.state(BlockPool::state_floats(width, overlaps)), ratio, overlaps});
    p.append(RmsNorm{y, {l[at + "_norm"], c.eps}, width, y});
    rotate(c, y, 1, width, rope, p);
    const Cache cache = p.entries(width, ratio);
    p.append(LatentStore{y, {}, cache});
    return cache;
}

// The entries that each token sees. Scores are compared only: a factor of all is left out.
static Slot chosen_entries(const DeepSeek4& c, const LayerWeights& l, Slot h, Slot low, uint32_t ratio,
                           const DeepSeekRopes& ropes, PlanBuilder& p) {
    const uint32_t heads = c.index.heads, d = c.index.head_dim;
    const Cache keys = entries(c, l, "indexer_compressor", d, h, ratio, ropes.blocks, p);
    const Slot q = p.linear(low, l["indexer.attn_q_b.weight"]);
    rotate(c, q, heads, d, ropes.there, p);
    const uint32_t blocks = uint32_t(std::max<uint64_t>(1, p.plan().sizing.context / ratio));
    const Slot scores = p.slot(blocks), chosen = p.slot(std::min(blocks, c.index.tokens));
    p.append(BlockScores{q, scores, keys, heads, ratio, p.linear(h, l["indexer.proj.weight"])});
    p.append(ChooseBlocks{scores, chosen, ratio});
    return chosen;
}

static Slot attention(const DeepSeek4& c, const LayerWeights& l, uint32_t ratio, Slot h,
                      const DeepSeekRopes& ropes, PlanBuilder& p) {
    const uint32_t heads = c.heads.heads, d = c.heads.head_dim;
    const Slot low = p.rms_norm(p.linear(h, l["attn_q_a"]), c.norm(l["attn_q_a_norm"]));
    const Slot q = p.linear(low, l["attn_q_b"]), row = p.linear(h, l["attn_kv"]), seen = p.slot(heads * d);
    p.append(RmsNorm{q, {{}, c.eps}, d, q});
    p.append(RmsNorm{row, c.norm(l["attn_kv_a_norm"]), d, row});
    rotate(c, q, heads, d, ropes.there, p);
    rotate(c, row, 1, d, ropes.there, p);
    Attention see{.q = q,
                  .y = seen,
                  .cache = p.latents(d, d, c.window),
                  .shape = {heads, 1, d},
                  .scale = c.attention_scale(),
                  .window = uint32_t(c.window),
                  .sinks = l["attn_sinks"],
                  .keys = {Keys::entries}};
    p.append(LatentStore{row, {}, see.cache});
    if (ratio > 0) see.keys.entries = entries(c, l, "attn_compressor", d, h, ratio, ropes.blocks, p);
    if (ratio == kIndexedRatio) see.keys.chosen = chosen_entries(c, l, h, low, ratio, ropes, p);
    p.append(see);
    rotate(c, seen, heads, d, ropes.back, p);
    const Slot grouped = p.head_linear(seen, l["attn_output_a"], heads * d / c.output_groups, c.output_rank);
    return p.linear(grouped, l["attn_output_b"]);
}

// silu(min(gate, limit)) * clamp(up, -limit, limit), in place of gate.
static void gate(Slot gate, Slot up, const std::vector<float>& limits, size_t layer, PlanBuilder& p) {
    if (const float limit = limits.empty() ? 0.0f : limits[layer]; limit > 0.0f) {
        p.append(each::clamp(gate, std::numeric_limits<float>::lowest(), limit));
        p.append(each::clamp(up, -limit, limit));
    }
    p.append(each::silu_times(gate, gate, up));
}

static Slot ffn(const DeepSeek4& c, const LayerWeights& l, size_t layer, Slot h, PlanBuilder& p) {
    const Slot shared = p.linear(h, l["ffn_gate_shexp"]);
    gate(shared, p.linear(h, l["ffn_up_shexp"]), c.shared_limits, layer, p);
    const Slot y = p.linear(shared, l["ffn_down_shexp"]);
    const bool hashed = layer < c.hashed_layers;
    const auto routing = p.route(h, l["ffn_gate_inp"], c.experts_used, Gating::sqrt_softplus, c.expert_norm,
                                 c.expert_scale, hashed ? Weight{} : l["exp_probs_b.bias"], BiasOf::choice,
                                 {}, hashed ? l["ffn_gate_tid2eid"] : Weight{});
    const Slot gates = p.experts(h, l["ffn_gate_exps"], routing),
               ups = p.experts(h, l["ffn_up_exps"], routing);
    gate(gates, ups, c.expert_limits, layer, p);
    p.add_experts(y, gates, l["ffn_down_exps"], routing);
    return y;
}

// The streams that the first layer reads: all are the token's embedding; where it predicts, each is a product
// with the norms of this and of the stream that the host gives.
static Slot first_streams(const DeepSeek4& c, const WeightSet& w, PlanBuilder& p) {
    const Slot token = p.embed(w["token_embd"]);
    if (!c.predicts()) return p.parts_of(token, c.streams, c.dim, 0, 0);
    const LayerWeights& l = w.layers()[c.first_layer];
    const Slot given = p.input(c.hidden_dim()), x = p.slot(c.hidden_dim()),
               normed = p.rms_norm(token, c.norm(l["nextn.enorm.weight"]));
    for (uint32_t i = 0; i < c.streams; ++i) {
        const Slot one = p.parts_of(given, 1, c.dim, i * c.dim, c.dim),
                   hidden = p.rms_norm(one, c.norm(l["nextn.hnorm.weight"]));
        const Slot y = c.parts_apart ? p.linear(hidden, l["nextn.h_proj.weight"])
                                     : p.linear(side_by_side(normed, hidden, p), l["nextn.eh_proj.weight"]);
        if (c.parts_apart) p.linear_add(y, normed, l["nextn.e_proj.weight"]);
        p.append(CopyParts{y, x, 1, c.dim, 0, c.dim, i * c.dim, c.dim});
    }
    return x;
}

static void build(const DeepSeek4& c, const WeightSet& w, PlanBuilder& p) {
    std::map<uint32_t, DeepSeekRopes> ropes;
    for (uint32_t i = c.first_layer; i < c.layers; ++i)
        if (const uint32_t ratio = c.index.ratios[i]; !ropes.contains(ratio))
            ropes[ratio] = add_ropes(c, ratio, p);
    Slot x = first_streams(c, w, p), other = p.slot(c.streams * c.dim);
    const auto blend = [&](Slot y, const DeepSeekMixed& mixed) {
        p.append(StreamBlend{y, mixed.add, mixed.mix, x, other, c.streams});
        std::swap(x, other);
    };
    for (uint32_t i = c.first_layer; i < c.layers; ++i) {
        const LayerWeights& l = w.layers()[i];
        const uint32_t ratio = c.index.ratios[i];
        const DeepSeekMixed read = read_streams(c, l, "hc_attn", x, true, p);
        blend(attention(c, l, ratio, p.rms_norm(read.y, c.norm(l["attn_norm"])), ropes[ratio], p), read);
        const DeepSeekMixed next = read_streams(c, l, "hc_ffn", x, true, p);
        blend(ffn(c, l, i, p.rms_norm(next.y, c.norm(l["ffn_norm"])), p), next);
        p.next_layer();
    }
    if (p.wants_hidden()) p.leave_hidden(x);
    const Slot wanted = p.slot(c.streams * c.dim, true);
    p.append(SelectRows{x, wanted});
    const DeepSeekMixed last = read_streams(c, w, "output_hc", wanted, false, p);
    p.output(p.linear(last.y, w["output"], c.norm(w["output_norm"])));
}

extern const Arch deepseek4 = make_arch<config, weights, build>({"deepseek4"});

}  // namespace redline::archs
