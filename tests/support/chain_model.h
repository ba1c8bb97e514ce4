// A tiny llama whose next token is known: each token is followed by its successor, whatever stands before.
// The attention and the feed-forward part add nothing, the embedding is one-hot, and row j of the output has
// a one where the embedding of the token before j has it.
#pragma once

#include "support/gguf_builder.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>

namespace redline::test {

struct ChainModel {
    // The chain: letters a to z, then the three bytes of the euro sign, then "!", then the end of the text,
    // then a.
    static constexpr int32_t kUnknown = 0, kBos = 1, kEos = 2, kLetterA = 3, kBang = 29, kSpace = 30,
                             kNewline = 31, kStart = 32, kEnd = 33, kByte0 = 34, kVocab = 34 + 256;
    static constexpr uint32_t kDim = 320, kHeadDim = 32, kHeads = kDim / kHeadDim, kKvHeads = 2, kFfn = 32,
                              kLayers = 2, kTrainContext = 256;
    static constexpr const char* kWholeText = "bcdefghijklmnopqrstuvwxyz\xE2\x82\xAC!";  // after "a"

    std::map<int32_t, int32_t> next;
    float gain = 1.0f;           // of the last norm; logits are 0, and gain * sqrt(kDim) for the successor
    uint32_t rows = kVocab;      // of the embedding
    int32_t broken = -1;         // what is computed from this token is not finite
    std::string chat_template =  // with `chat`
        "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
        "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
        "{% endif %}";
    uint64_t experts = 0;  // of each layer, of which a token uses two; 0: the layers are dense
    bool chat = false;     // <|im_start|> and <|im_end|> are control tokens, with a template that says so
    std::string name = "chain";
    GgufBuilder extra;  // its keys are added

    ChainModel() {
        for (int32_t id = 0; id < kVocab; ++id) next[id] = kLetterA;  // what is in no chain begins one
        for (int32_t id = kLetterA; id < kLetterA + 25; ++id) next[id] = id + 1;
        next[kLetterA + 25] = kByte0 + 0xE2;
        next[kByte0 + 0xE2] = kByte0 + 0x82;
        next[kByte0 + 0x82] = kByte0 + 0xAC;
        next[kByte0 + 0xAC] = kBang;
        next[kBang] = kEos;
    }

    std::vector<std::string> tokens() const {
        std::vector<std::string> all = {"<unk>", "<s>", "</s>"};
        for (char letter = 'a'; letter <= 'z'; ++letter) all.emplace_back(1, letter);
        all.insert(all.end(),
                   {"!", "\xE2\x96\x81", "\n", chat ? "<|im_start|>" : "#", chat ? "<|im_end|>" : "$"});
        for (int byte = 0; byte < 256; ++byte) all.push_back(fmt::format("<0x{:02X}>", byte));
        return all;
    }

    GgufBuilder build() const {
        GgufBuilder b;
        b.add("general.architecture", std::string("llama"));
        b.add("general.name", name);
        b.add("llama.context_length", kTrainContext);
        b.add("llama.embedding_length", kDim);
        b.add("llama.block_count", kLayers);
        b.add("llama.feed_forward_length", kFfn);
        b.add("llama.attention.head_count", kHeads);
        b.add("llama.attention.head_count_kv", kKvHeads);
        b.add("llama.attention.layer_norm_rms_epsilon", 1e-6f);
        b.add("llama.rope.dimension_count", kHeadDim);
        if (experts > 0) {
            b.add("llama.expert_count", uint32_t(experts));
            b.add("llama.expert_used_count", uint32_t(2));
        }
        add_tokenizer(b);
        for (const GgufBuilder::Key& key : extra.keys) b.keys.push_back(key);
        add_tensors(b);
        return b;
    }

private:
    void add_tokenizer(GgufBuilder& b) const {
        std::vector<int32_t> types(kVocab, 1);
        types[kUnknown] = 2;
        types[kBos] = types[kEos] = 3;
        if (chat) types[kStart] = types[kEnd] = 3;
        for (int32_t id = kByte0; id < kVocab; ++id) types[size_t(id)] = 6;
        b.add("tokenizer.ggml.model", std::string("llama"));
        b.add("tokenizer.ggml.tokens", tokens());
        b.add("tokenizer.ggml.scores", std::vector<float>(kVocab, 0.0f));
        b.add("tokenizer.ggml.token_type", types);
        b.add("tokenizer.ggml.bos_token_id", uint32_t(kBos));
        b.add("tokenizer.ggml.eos_token_id", uint32_t(chat ? kEnd : kEos));
        b.add("tokenizer.ggml.unknown_token_id", uint32_t(kUnknown));
        b.add("tokenizer.ggml.add_bos_token", true);
        b.add("tokenizer.ggml.add_space_prefix", false);
        if (chat) b.add("tokenizer.chat_template", chat_template);
    }

    void add_tensors(GgufBuilder& b) const {
        const uint64_t dim = kDim, kv = kKvHeads * kHeadDim, ffn = kFfn;
        std::vector<float> table(size_t(rows) * kDim), output(size_t(rows) * kDim);
        for (int32_t id = 0; id < kVocab; ++id) table[size_t(id) * kDim + size_t(id)] = 1.0f;
        if (broken >= 0) table[size_t(broken) * kDim] = std::numeric_limits<float>::quiet_NaN();
        for (const auto& [from, to] : next) {
            const int32_t follower = chat && to == kEos ? int32_t(kEnd) : to;
            output[size_t(follower) * kDim + size_t(from)] = 1.0f;
        }
        b.tensor_f32("token_embd.weight", {dim, rows}, table);
        b.tensor_f32("output_norm.weight", {dim}, std::vector<float>(kDim, gain));
        b.tensor_f32("output.weight", {dim, rows}, output);
        const auto zeros = [&](const std::string& tensor, uint64_t cols, uint64_t count) {
            b.tensor_f32(tensor, {cols, count}, std::vector<float>(size_t(cols * count)));
        };
        for (uint32_t layer = 0; layer < kLayers; ++layer) {
            const std::string block = fmt::format("blk.{}.", layer);
            b.tensor_f32(block + "attn_norm.weight", {dim}, std::vector<float>(kDim, 1.0f));
            b.tensor_f32(block + "ffn_norm.weight", {dim}, std::vector<float>(kDim, 1.0f));
            zeros(block + "attn_q.weight", dim, dim);
            zeros(block + "attn_k.weight", dim, kv);
            zeros(block + "attn_v.weight", dim, kv);
            zeros(block + "attn_output.weight", dim, dim);
            if (experts > 0) {
                zeros(block + "ffn_gate_inp.weight", dim, experts);
                for (const char* matrix : {"ffn_gate_exps.weight", "ffn_up_exps.weight"})
                    b.tensor_f32(block + matrix, {dim, ffn, experts},
                                 std::vector<float>(dim * ffn * experts));
                b.tensor_f32(block + "ffn_down_exps.weight", {ffn, dim, experts},
                             std::vector<float>(dim * ffn * experts));
                continue;
            }
            zeros(block + "ffn_gate.weight", dim, ffn);
            zeros(block + "ffn_up.weight", dim, ffn);
            zeros(block + "ffn_down.weight", ffn, dim);
        }
    }
};

}  // namespace redline::test
