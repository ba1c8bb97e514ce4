#include "text/tokens/vocabulary.h"

#include "text/tokens/unicode.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace redline {
namespace {

// Hashes eight bytes at a time by multiplying and folding. It is good enough for tokens, and not secure: an
// adversary could only slow down a file of theirs.
uint64_t hash_of(std::string_view text) {
    constexpr uint64_t kFactor = 0x9E3779B97F4A7C15u;
    uint64_t hash = text.size() * kFactor;
    for (size_t at = 0; at < text.size(); at += 8) {
        uint64_t word = 0;
        std::memcpy(&word, text.data() + at, std::min<size_t>(8, text.size() - at));
        hash = (hash ^ word) * kFactor;
        hash ^= hash >> 32;
    }
    hash *= kFactor;
    return hash ^ hash >> 32;
}

}  // namespace

Result<Vocabulary> Vocabulary::read(const Metadata& metadata, size_t rows,
                                    std::vector<std::string>& warnings) {
    const std::vector<std::string>* tokens = metadata.strings("tokenizer.ggml.tokens");
    if (!tokens || tokens->empty())
        return error("tokenizer.ggml.tokens is {}, a list of token texts is expected",
                     !metadata.has("tokenizer.ggml.tokens") ? "missing"
                     : tokens                               ? "empty"
                                                            : "no list of texts");
    if (tokens->size() > size_t(std::numeric_limits<Token>::max()))
        return error("tokenizer.ggml.tokens has {} entries, {} at most are supported", tokens->size(),
                     std::numeric_limits<Token>::max());
    Vocabulary vocabulary;
    RL_TRY(vocabulary.read_types(metadata, tokens->size(), warnings));
    RL_TRY(vocabulary.read_scores(metadata, tokens->size()));
    const size_t count = std::min(rows, tokens->size());
    if (count < tokens->size())
        warnings.push_back(
            fmt::format("the vocabulary has {} tokens and the model rows for {}: the rest is left out",
                        tokens->size(), count));
    vocabulary.texts_.assign(tokens->begin(), tokens->begin() + std::ptrdiff_t(count));
    vocabulary.types_.resize(count);
    vocabulary.scores_.resize(std::min(count, vocabulary.scores_.size()));
    vocabulary.index(warnings);
    return vocabulary;
}

Status Vocabulary::read_types(const Metadata& metadata, size_t count, std::vector<std::string>& warnings) {
    constexpr const char* kKey = "tokenizer.ggml.token_type";
    types_.assign(count, TokenType::normal);
    has_types_ = metadata.has(kKey);
    if (!has_types_) return {};
    const std::vector<int64_t>* types = metadata.integers(kKey);
    if (!types) return error("{} is no list of integers", kKey);
    if (types->size() != count) return error("{} has {} entries for {} tokens", kKey, types->size(), count);
    size_t odd = 0;
    for (size_t i = 0; i < count; ++i) {
        const int64_t type = (*types)[i];
        if (type >= 1 && type <= int64_t(TokenType::byte))
            types_[i] = TokenType(type);
        else
            ++odd;
    }
    if (odd > 0)
        warnings.push_back(
            fmt::format("{} tokens have a type outside 1 to 6 and are taken as normal text", odd));
    return {};
}

Status Vocabulary::read_scores(const Metadata& metadata, size_t count) {
    constexpr const char* kKey = "tokenizer.ggml.scores";
    if (!metadata.has(kKey)) return {};
    const std::vector<float>* scores = metadata.floats(kKey);
    if (!scores) return error("{} is no list of real numbers", kKey);
    if (scores->size() != count) return error("{} has {} entries for {} tokens", kKey, scores->size(), count);
    for (size_t i = 0; i < count; ++i)
        if (std::isnan((*scores)[i])) return error("{}: the score of token {} is not a number", kKey, i);
    scores_ = *scores;
    return {};
}

void Vocabulary::index(std::vector<std::string>& warnings) {
    slots_.assign(std::bit_ceil(2 * size() + 2), 0);
    size_t repeated = 0;
    size_t empty = 0;
    for (size_t i = 0; i < size(); ++i) {
        longest_ = std::max(longest_, texts_[i].size());
        if (texts_[i].empty()) {
            ++empty;
            continue;
        }
        uint64_t& entry = slots_[slot(texts_[i])];
        if (entry != 0) ++repeated;
        entry = (hash_of(texts_[i]) >> 32 << 32) | (i + 1);
    }
    if (empty > 0) warnings.push_back(fmt::format("{} tokens have an empty text and match nothing", empty));
    if (repeated > 0)
        warnings.push_back(
            fmt::format("{} token texts occur more than once: the last of each is used", repeated));
}

// The slot of this text, or the empty slot where it would be.
size_t Vocabulary::slot(std::string_view text) const {
    const uint64_t hash = hash_of(text);
    const size_t mask = slots_.size() - 1;
    size_t at = size_t(hash) & mask;
    for (; slots_[at] != 0; at = (at + 1) & mask)
        if (slots_[at] >> 32 == hash >> 32 && texts_[(slots_[at] & UINT32_MAX) - 1] == text) break;
    return at;
}

Token Vocabulary::find(std::string_view text) const {
    if (text.empty() || text.size() > longest_) return kNoToken;
    return Token((slots_[slot(text)] & UINT32_MAX)) - 1;  // 0, an empty slot, is kNoToken
}

Token Vocabulary::find_in_text(std::string_view text) const {
    const Token token = find(text);
    if (token == kNoToken) return kNoToken;
    const TokenType kind = type(token);
    const bool hidden = kind == TokenType::control || kind == TokenType::unknown || kind == TokenType::byte;
    return hidden ? kNoToken : token;
}

int byte_of_text(std::string_view text) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
    const size_t high = kDigits.find(text[3]);
    const size_t low = kDigits.find(text[4]);
    return high == kDigits.npos || low == kDigits.npos ? -1 : int(high * 16 + low);
}

}  // namespace redline
