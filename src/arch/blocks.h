// Verbs for what many architectures record alike: attention, FFNs and experts, by the names that the weights
// have in GGUF files. A block reads x and adds to it.
#pragma once

#include "arch/weight_list.h"

#include <array>

namespace redline {

// The rows that the first layer reads: embeddings of tokens; where it predicts, the product of eh_proj with
// the norms of these and of the hidden rows that the host gives.
Slot first_rows(const Config& c, const WeightSet& w, PlanBuilder& p);

// A slot with the rows of both.
Slot side_by_side(Slot first, Slot second, PlanBuilder& p);

// norm(x) times the matrices of queries, keys and values, with their biases where they are listed.
std::array<Slot, 3> qkv(PlanBuilder& p, Slot x, const LayerWeights& l, Norm norm = {});

// Properties of a layer's attention beside its weights.
struct AttentionWay {
    uint32_t rope = kNoRope;  // index of the plan's rope
    uint64_t window = 0;      // tokens that it looks back over; 0: all
    float softcap = 0.0f;     // of the scores; 0: none
};
// Attention of norm(x) on a new cache. Norms of heads (attn_q_norm, attn_k_norm) and sinks (attn_sinks) take
// part where they are listed.
Slot attend(const Config& c, const LayerWeights& l, Slot x, Norm norm, const AttentionWay& way,
            PlanBuilder& p);
// The same with a norm of whole rows of queries and keys.
Slot attend_with_row_norms(const Config& c, const LayerWeights& l, Slot x, Norm norm, const AttentionWay& way,
                           PlanBuilder& p);
// x += the output's product with what attention saw.
void add_attention(const LayerWeights& l, Slot x, Slot seen, PlanBuilder& p);
// x += norm(w * y): a block with a norm behind it.
void add_normed(Slot x, Slot y, Weight w, Norm norm, PlanBuilder& p);

// act(gate * norm(x)) * (up * norm(x)).
Slot gated(const LayerWeights& l, Slot x, Norm norm, PlanBuilder& p, Act act = Act::silu);
// x += down * gated(norm(x)).
void add_gated_ffn(const LayerWeights& l, Slot x, Norm norm, PlanBuilder& p, Act act = Act::silu);
// x += down * function(up * norm(x)), with biases where they are listed.
void add_plain_ffn(const LayerWeights& l, Slot x, Slot in, Norm norm, Function function, PlanBuilder& p);

// The matrices of gated experts.
PlanBuilder::Experts gated_experts(const LayerWeights& l);
// Experts for h by the configuration's gating, groups and scale, and by the router's bias where it is listed.
PlanBuilder::Routing route(const Config& c, const LayerWeights& l, Slot h, PlanBuilder& p);
// down * gated(h) of the shared expert.
Slot shared_hidden(const LayerWeights& l, Slot h, PlanBuilder& p);
// x += the shared expert of h.
void add_shared_expert(const LayerWeights& l, Slot x, Slot h, PlanBuilder& p);
// x += the experts of norm(x), and the shared one where it is listed, weighted by the sigmoid of its router
// where it has one.
void add_experts(const Config& c, const LayerWeights& l, Slot x, Norm norm, PlanBuilder& p);
// A slot like the first `width` elements of h, but zero: experts are added to it.
Slot zeros_like(Slot h, uint32_t width, PlanBuilder& p);

// Layer norm, by a gain and the bias that is named after it.
Slot layer_norm(const Config& c, const auto& weights, Slot x, const std::string& gain, PlanBuilder& p) {
    return p.layer_norm(x, c.norm(weights[gain]), weights[gain + ".bias"]);
}
// The logits of norm(x), and the hidden rows where the plan is to leave them.
void add_logits(const Config& c, const WeightSet& w, Slot x, PlanBuilder& p);

}  // namespace redline
