#include "text/tokens/infill.h"

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

}  // namespace redline
