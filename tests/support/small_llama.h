// A llama model of one layer with two heads, complete and loadable.
#pragma once

#include "measure/random_weights.h"
#include "support/gguf_builder.h"

namespace redline::test {

constexpr uint64_t kDim = 16, kVocab = 24, kFfn = 24;

inline std::vector<float> ramp(size_t count) {
    std::vector<float> values(count);
    for (size_t i = 0; i < count; ++i) values[i] = 0.01f * float(int(i * 7919 % 41) - 20);
    return values;
}

inline GgufBuilder small_llama(uint64_t dim = kDim, uint64_t ffn = kFfn) {
    GgufBuilder b;
    b.add("general.architecture", std::string("llama"));
    b.add("llama.block_count", uint32_t(1));
    b.add("llama.context_length", uint32_t(32));
    b.add("llama.embedding_length", uint32_t(dim));
    b.add("llama.feed_forward_length", uint32_t(ffn));
    b.add("llama.attention.head_count", uint32_t(2));
    b.add("llama.attention.head_count_kv", uint32_t(1));
    b.add("llama.attention.layer_norm_rms_epsilon", 1e-5f);
    b.add("tokenizer.ggml.model", std::string("llama"));
    std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
    std::vector<float> scores(kVocab, 0.0f);
    std::vector<int32_t> types = {2, 3, 3};
    for (uint64_t i = tokens.size(); i < kVocab; ++i) {
        tokens.push_back(std::string(1, char('a' + i - 3)));
        types.push_back(1);
    }
    b.add("tokenizer.ggml.tokens", tokens);
    b.add("tokenizer.ggml.scores", scores);
    b.add("tokenizer.ggml.token_type", types);
    const auto tensor = [&](const std::string& name, std::vector<uint64_t> dims) {
        uint64_t count = 1;
        for (const uint64_t d : dims) count *= d;
        b.tensor(name, dims, 0, bytes_of(ramp(count)));
    };
    tensor("token_embd.weight", {dim, kVocab});
    tensor("output_norm.weight", {dim});
    tensor("blk.0.attn_norm.weight", {dim});
    tensor("blk.0.attn_q.weight", {dim, dim});
    tensor("blk.0.attn_k.weight", {dim, dim / 2});
    tensor("blk.0.attn_v.weight", {dim, dim / 2});
    tensor("blk.0.attn_output.weight", {dim, dim});
    tensor("blk.0.ffn_norm.weight", {dim});
    tensor("blk.0.ffn_gate.weight", {dim, ffn});
    tensor("blk.0.ffn_up.weight", {dim, ffn});
    tensor("blk.0.ffn_down.weight", {ffn, dim});
    return b;
}

// The same with random matrices in one format, whose blocks have 256 elements at most.
inline GgufBuilder small_llama_in(const Format& format) {
    GgufBuilder b = small_llama(256, 256);
    std::mt19937 random(1);
    for (auto& t : b.tensors) {
        if (t.dims.size() == 1) continue;
        t.type = format.gguf_id;
        t.data = random_weights(format, t.dims[0] * t.dims[1], random);
    }
    return b;
}

}  // namespace redline::test
