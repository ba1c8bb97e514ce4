// Byte pair encoding: the pieces of a text are merged by rank. There are two alphabets: bytes in their
// printable form (GPT-2 and nearly all later models), or UTF-8 characters with "<0xHH>" tokens for missing
// ones (gemma 4).
#pragma once

#include "text/tokens/merge.h"
#include "text/tokens/pretokenize.h"
#include "text/tokens/vocabulary.h"

#include <array>
#include <optional>
#include <span>
#include <unordered_map>

namespace redline {

// A hash table with open addressing from (left, right) to rank and merged symbol, for some 10^5 entries.
class MergeTable {
public:
    struct Entry {
        uint64_t pair = kEmpty;
        uint32_t rank = 0;
        int32_t merged = -1;
    };

    explicit MergeTable(size_t count);
    void add(int32_t left, int32_t right, uint32_t rank, int32_t merged);  // the first of equal pairs is kept
    const Entry* find(int32_t left, int32_t right) const;

private:
    static constexpr uint64_t kEmpty = ~uint64_t(0);
    size_t place(uint64_t pair) const;

    std::vector<Entry> entries_;  // a power of two, at most half full
};

class Bpe {
public:
    enum class Alphabet : uint8_t { bytes, characters };

    // `merges[i]` is "left right" and has rank i. Without a pre-tokenizer (alphabet of characters) a text is
    // cut into line ends and the rest, as gemma 4 does.
    static Result<Bpe> create(const Vocabulary& vocabulary, std::span<const std::string> merges,
                              Alphabet alphabet, std::optional<Pretokenizer> pretokenizer,
                              std::vector<std::string>& warnings);

    // Appends the tokens of `text`, which has no special tokens. Invalid UTF-8 counts as U+FFFD.
    void encode(const Vocabulary& vocabulary, std::string_view text, std::vector<Token>& out) const;
    // True when merges produce the token: then it is ordinary text, whatever it looks like.
    bool is_merged(Token token) const { return merged_[size_t(token)]; }

private:
    Bpe(const Vocabulary& vocabulary, size_t merges, Alphabet alphabet)
        : alphabet_(alphabet),
          tokens_(vocabulary.size()),
          table_(merges),
          merged_(vocabulary.size(), false) {}
    int32_t symbol_of(const Vocabulary& vocabulary, std::string_view text) const;
    int32_t new_symbol(const Vocabulary& vocabulary, std::string_view text);
    void add_merges(const Vocabulary& vocabulary, std::span<const std::string> merges,
                    std::vector<std::string>& warnings);
    void find_byte_tokens(const Vocabulary& vocabulary, std::vector<std::string>& warnings);
    void encode_piece(const Vocabulary& vocabulary, std::string_view piece, Merger<uint32_t>& merger,
                      std::vector<Token>& out) const;

    // A symbol below `tokens_` is the token with that id; symbols above occur in merges only.
    Alphabet alphabet_;
    size_t tokens_;
    std::optional<Pretokenizer> pretokenizer_;
    MergeTable table_;
    std::vector<bool> merged_;                                // by token
    std::unordered_map<std::string, int32_t> extra_symbols_;  // texts without a token
    std::array<int32_t, 256> byte_symbols_ = {};
    std::array<Token, 256> byte_tokens_ = {};  // the token of a byte whose symbol has none
};

}  // namespace redline
