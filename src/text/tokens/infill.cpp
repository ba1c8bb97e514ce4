#include "text/tokens/infill.h"

#include "text/tokens/unicode.h"

#include <algorithm>
#include <span>

namespace redline {

// Converters write an id out of range for "none".
static Token by_key(const Metadata& metadata, const Tokenizer& tokenizer, std::string_view name) {
    const MetadataValue* stored = metadata.find(fmt::format("tokenizer.ggml.{}_token_id", name));
    const auto* id = stored ? std::get_if<int64_t>(&stored->value) : nullptr;
    return id && *id >= 0 && uint64_t(*id) < tokenizer.size() ? Token(*id) : kNoToken;
}

// A text that is an ordinary word of the vocabulary is not a marker.
static Token by_text(const Tokenizer& tokenizer, std::span<const std::string_view> texts) {
    for (const std::string_view text : texts) {
        const Token token = tokenizer.find(text);
        if (token != kNoToken && tokenizer.type(token) == TokenType::control) return token;
    }
    return kNoToken;
}

InfillTokens infill_tokens(const Metadata& metadata, const Tokenizer& tokenizer) {
    const auto marker = [&](std::string_view key, std::string_view older_key,
                            std::span<const std::string_view> texts) {
        for (const std::string_view each : {key, older_key})
            if (const Token token = by_key(metadata, tokenizer, each); token != kNoToken) return token;
        return by_text(tokenizer, texts);
    };
    return {marker("fim_pre", "prefix", kInfillPrefix), marker("fim_suf", "suffix", kInfillSuffix),
            marker("fim_mid", "middle", kInfillMiddle)};
}

static std::string marker_name(const Tokenizer& tokenizer, Token token, std::string_view marker) {
    return token == kNoToken ? fmt::format("no {} marker", marker)
                             : fmt::format("{} {}", marker, printable(tokenizer.raw_text(token)));
}

uint64_t fim_room(uint64_t context, int64_t max_tokens) {
    return max_tokens < 0 ? context / 8 : std::min(uint64_t(max_tokens), context / 2);
}

Result<FimPrompt> write_fim(const Tokenizer& tokenizer, const InfillTokens& markers, const FimTexts& texts,
                            bool add_bos, uint64_t context, uint64_t room) {
    if (!markers.whole())
        return error(
            "the model cannot fill in the middle: its tokenizer has {}, {} and {}; models for code such as "
            "Qwen2.5-Coder can",
            marker_name(tokenizer, markers.prefix, "prefix"),
            marker_name(tokenizer, markers.suffix, "suffix"),
            marker_name(tokenizer, markers.middle, "middle"));
    std::vector<Token> prefix = tokenizer.encode(texts.prefix, {.add_special = false});
    std::vector<Token> suffix = tokenizer.encode(texts.suffix, {.add_special = false});
    const bool bos = add_bos && tokenizer.adds_bos();
    const uint64_t fixed = room + 3 + (bos ? 1 : 0);
    const uint64_t budget = context > fixed ? context - fixed : 0;
    FimPrompt out;
    if (prefix.size() + suffix.size() > budget) {
        // A quarter for the suffix, and what one of them does not need for the other.
        const uint64_t behind =
            std::min<uint64_t>(suffix.size(), std::max(budget / 4, budget - std::min(budget, prefix.size())));
        const uint64_t before = budget - behind;
        out.cut = fmt::format(
            "the text before the gap is cut to its last {} of {} tokens, the text behind it to its first {} "
            "of "
            "{}: the context of {} has no room for more; -c N makes it larger",
            before, prefix.size(), behind, suffix.size(), context);
        prefix.erase(prefix.begin(), prefix.end() - ptrdiff_t(before));
        suffix.resize(behind);
    }
    if (bos) out.tokens.push_back(tokenizer.bos());
    out.tokens.push_back(markers.prefix);
    out.tokens.insert(out.tokens.end(), prefix.begin(), prefix.end());
    out.tokens.push_back(markers.suffix);
    out.tokens.insert(out.tokens.end(), suffix.begin(), suffix.end());
    out.tokens.push_back(markers.middle);
    return out;
}

}  // namespace redline
