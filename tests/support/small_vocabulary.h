// Small complete vocabularies for tests: SPM, Unigram and byte-level BPE, with the special tokens a test asks
// for.
#pragma once

#include "gguf/metadata.h"
#include "text/tokens/unicode.h"

#include <string>
#include <vector>

namespace redline::test {

struct SmallVocabulary {
    std::string model = "gpt2";
    std::string pre = "llama-bpe";
    std::vector<std::string> tokens;
    std::vector<int64_t> types;
    std::vector<float> scores;
    std::vector<std::string> merges;
    std::vector<std::pair<std::string, MetadataValue>> more;  // further keys

    int32_t add(std::string text, int64_t type = 1, float score = 0) {
        tokens.push_back(std::move(text));
        types.push_back(type);
        scores.push_back(score);
        return int32_t(tokens.size() - 1);
    }

    // Adds the token "leftright" and the merge that makes it.
    void add_merge(const std::string& left, const std::string& right) {
        add(left + right);
        merges.push_back(left + " " + right);
    }

    void set(std::string key, MetadataValue value) { more.emplace_back(std::move(key), std::move(value)); }
    void set_id(const std::string& name, int64_t id) {
        set("tokenizer.ggml." + name + "_token_id", {id, 4, 0});
    }
    void set_flag(const std::string& name, bool value) { set("tokenizer.ggml." + name, {value, 7, 0}); }
    void set_text(const std::string& key, const std::string& value) { set(key, {value, 8, 0}); }

    Metadata metadata() const {
        Metadata all;
        const auto put = [&](const std::string& key, MetadataValue value) {
            const Status added = all.add(key, std::move(value));
            RL_CHECK(added.ok(), "{}", added.error().message);
        };
        put("tokenizer.ggml.model", {model, 8, 0});
        if (!pre.empty()) put("tokenizer.ggml.pre", {pre, 8, 0});
        put("tokenizer.ggml.tokens", {tokens, 9, 8});
        if (!types.empty()) put("tokenizer.ggml.token_type", {types, 9, 5});
        const bool scored = model == "llama" || model == "t5";
        if (scored) put("tokenizer.ggml.scores", {scores, 9, 6});
        if (!scored) put("tokenizer.ggml.merges", {merges, 9, 8});
        for (const auto& [key, value] : more) put(key, value);
        return all;
    }
};

// The 256 bytes, then words made by merges: "the", " the", " a", "ing", "11", "  ".
inline SmallVocabulary small_bpe() {
    SmallVocabulary vocabulary;
    for (int byte = 0; byte < 256; ++byte) {
        std::string text;
        append_utf8(text, byte_alphabet().character[size_t(byte)]);
        vocabulary.add(text);
    }
    const std::string space = "\xC4\xA0";  // U+0120
    vocabulary.add_merge("t", "h");
    vocabulary.add_merge("th", "e");
    vocabulary.add_merge(space, "the");
    vocabulary.add_merge(space, "a");
    vocabulary.add_merge("i", "n");
    vocabulary.add_merge("in", "g");
    vocabulary.add_merge("1", "1");
    vocabulary.add_merge(space, space);
    vocabulary.add_merge("a", "a");
    vocabulary.add_merge("aa", "aa");
    return vocabulary;
}

// <unk>, <s>, </s>, the 256 byte tokens, ASCII letters and words with scores.
inline SmallVocabulary small_spm() {
    SmallVocabulary vocabulary;
    vocabulary.model = "llama";
    vocabulary.pre.clear();
    vocabulary.add("<unk>", 2);
    vocabulary.add("<s>", 3);
    vocabulary.add("</s>", 3);
    constexpr const char* kDigits = "0123456789ABCDEF";
    for (int byte = 0; byte < 256; ++byte)
        vocabulary.add(std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">", 6);
    float score = 0;
    const std::string space(kSpaceSymbol);
    for (const std::string& word :
         {std::string("th"), std::string("in"), space + "t", space + "th", std::string("he"), space + "the",
          std::string("ing"), std::string("aa"), space + space, std::string("aaaa"), space})
        vocabulary.add(word, 1, --score);
    for (char letter = 'a'; letter <= 'z'; ++letter) vocabulary.add(std::string(1, letter), 1, --score);
    return vocabulary;
}

// <unk>, <s>, </s>, the 256 byte tokens and words with the logarithms of probabilities. A space goes before a
// text.
inline SmallVocabulary small_unigram() {
    SmallVocabulary vocabulary = small_spm();
    vocabulary.model = "t5";
    for (size_t i = 259; i < vocabulary.tokens.size(); ++i)
        vocabulary.scores[i] = -2 - 0.37f * float(i - 259);
    vocabulary.set_flag("add_space_prefix", true);
    vocabulary.set_id("unknown", 0);
    return vocabulary;
}

}  // namespace redline::test
