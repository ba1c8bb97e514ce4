// The sizes and numbers of a model that the loader, the engine, `info` or several architectures read. An
// architecture that reads further keys keeps them in a struct that it derives from Config, in its file in
// models/.
#pragma once

#include "plan/plan.h"

#include <string>
#include <vector>

namespace redline {

struct Config {
    std::string arch;                 // general.architecture of the file
    uint32_t vocab = 0;               // rows of the embedding
    uint32_t dim = 0;                 // width of the residual
    uint32_t layers = 0;              // that are run, or one behind the last of them
    uint32_t first_layer = 0;         // that is run; above 0: it predicts further tokens, and is run alone
    uint32_t unused_layers = 0;       // of the file, behind those: they predict further tokens
    bool hidden_before_norm = false;  // layers that predict read hidden rows as they come, without a norm
    uint32_t hidden_streams = 1;      // of these rows, each of the residual's width
    uint64_t train_context = 0;       // tokens that the model was trained for
    uint32_t positions = 0;           // that have an embedding, in place of rope; 0: none has
    float eps = 0.0f;                 // added to the mean square in norms

    HeadShape heads;
    std::vector<uint32_t> heads_of, kv_heads_of;  // by layer, where layers may differ; else empty
    uint64_t window = 0;          // tokens that attention looks back over, with the present one; 0: all
    std::vector<bool> windowed;   // by layer: attention has the window; empty: in every layer
    std::vector<bool> recurrent;  // by layer: it keeps a state, not keys and values; empty: no layer does
    std::vector<bool> roped;      // by layer: queries and keys have rope; empty: in every layer
    uint32_t shared_caches = 0;   // the last layers, which see the keys and values of earlier ones
    RopeSpec rope;
    RopeSpec local_rope;  // of layers with a window, where it differs
    RopeSpec query_rope;  // of queries, where it differs from that of keys
    float scale = 0.0f;   // of attention's scores; 0: 1 / sqrt(head_dim)

    uint32_t ffn_dim = 0;
    std::vector<uint32_t> ffn_dims;  // by layer, where layers may differ; else empty
    uint32_t experts = 0;            // 0: every layer is dense
    uint32_t experts_used = 0;
    uint32_t expert_ffn_dim = 0;
    uint32_t shared_ffn_dim = 0;  // width of the experts that all tokens share, together; 0: there are none
    Gating gating = Gating::softmax;
    ExpertGroups expert_groups;
    bool expert_norm = false;   // the weights of the chosen experts add up to one
    float expert_scale = 1.0f;  // multiplies these weights
    uint32_t dense_layers = 0;  // the first layers, which have an FFN where the others have experts
    uint32_t expert_step = 1;   // of those others every n-th has experts

    uint32_t layer_input = 0;  // width of the token's input to each layer beside x; 0: there is none
    float embedding_scale = 1.0f;
    float residual_scale = 1.0f;  // multiplies the sum that a block adds to the residual
    float logit_scale = 1.0f;
    float logit_softcap = 0.0f;  // 0: none

    uint32_t q_dim() const { return heads.heads * heads.head_dim; }
    uint32_t kv_dim() const { return heads.kv_heads * heads.head_dim; }
    uint32_t hidden_dim() const { return hidden_streams * dim; }
    bool predicts() const { return first_layer > 0; }
    float attention_scale() const;
    Norm norm(Weight gain) const { return {gain, eps}; }
    bool has_experts(size_t layer) const {
        return experts > 0 && layer >= dense_layers && (layer + 1) % expert_step == 0;
    }
    bool is_windowed(size_t layer) const { return window > 0 && (windowed.empty() || windowed[layer]); }
    bool is_recurrent(size_t layer) const { return !recurrent.empty() && recurrent[layer]; }
    bool has_rope(size_t layer) const { return roped.empty() || roped[layer]; }
    uint64_t window_of(size_t layer) const { return is_windowed(layer) ? window : 0; }
};

}  // namespace redline
