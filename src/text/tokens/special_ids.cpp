#include "text/tokens/special_ids.h"

#include "text/tokens/infill.h"
#include "text/tokens/unicode.h"

#include <algorithm>
#include <array>
#include <set>
#include <span>

namespace redline {
namespace {

// By preference, for files that name no end of turn.
constexpr std::string_view kEndOfTurn[] = {
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>",         "<|end_of_text|>",    "<EOT>",
    "_<EOT>",     "▁<EOT>",     "[EOT]",   "<｜end▁of▁sentence｜>", "<end_of_utterance>", "<|endoftext|>"};

constexpr std::string_view kEndOfMessage[] = {"<|eom_id|>"};

constexpr std::string_view kEndOfGeneration[] = {"<|eot_id|>",
                                                 "<|im_end|>",
                                                 "<|end|>",
                                                 "<|return|>",
                                                 "<|call|>",
                                                 "<|flush|>",
                                                 "<|calls|>",
                                                 "<end_of_turn>",
                                                 "<|endoftext|>",
                                                 "</s>",
                                                 "<|eom_id|>",
                                                 "<EOT>",
                                                 "_<EOT>",
                                                 "▁<EOT>",
                                                 "[EOT]",
                                                 "[EOS]",
                                                 "<|end_of_text|>",
                                                 "<end_of_utterance>",
                                                 "<eos>",
                                                 "<turn|>",
                                                 "<|tool_response>",
                                                 "<｜end▁of▁sentence｜>"};

// Tokens that end an infill.
constexpr std::string_view kInfillPad[] = {"<|fim_pad|>", "<fim_pad>", "<PAD>", "[PAD]"};
constexpr std::string_view kInfillRepository[] = {"<|fim_repo|>", "<|repo_name|>", "<reponame>"};
constexpr std::string_view kInfillSeparator[] = {"<|file_sep|>"};

// Channel markers of the harmony format: control tokens that belong to the visible output.
constexpr std::string_view kPrinted[] = {"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"};

class Reader {
public:
    Reader(const Metadata& metadata, Vocabulary& vocabulary, const std::function<bool(Token)>& is_text,
           std::vector<std::string>& warnings)
        : metadata_(metadata), vocabulary_(vocabulary), is_text_(is_text), warnings_(warnings) {}

    // The id under `tokenizer.ggml.<name>_token_id`; `fallback` when absent or out of range.
    Result<Token> id(std::string_view name, Token fallback) {
        const std::string key = fmt::format("tokenizer.ggml.{}_token_id", name);
        const MetadataValue* stored = metadata_.find(key);
        if (!stored) return fallback;
        if (const auto* value = std::get_if<int64_t>(&stored->value)) {
            if (*value >= 0 && uint64_t(*value) < vocabulary_.size()) return Token(*value);
            // Converters write 2^32 - 1 or -1 for "none".
            if (*value != -1 && *value != int64_t(UINT32_MAX)) warn_range(key, fmt::to_string(*value));
            return fallback;
        }
        if (const auto* value = std::get_if<uint64_t>(&stored->value)) {
            warn_range(key, fmt::to_string(*value));
            return fallback;
        }
        return error("{} is no integer", key);
    }

    // A default id is used only if the token there is a special one.
    Token default_id(Token token) const {
        if (!vocabulary_.contains(token)) return kNoToken;
        const TokenType type = vocabulary_.type(token);
        const bool special = type == TokenType::control || type == TokenType::unknown;
        return special || (!vocabulary_.has_types() && vocabulary_.has_scores()) ? token : kNoToken;
    }

    // The token with a special text, made a control token if the file has it as text; kNoToken if there is
    // none.
    Token special(std::string_view text) {
        const Token token = vocabulary_.find(text);
        if (token == kNoToken || is_text_(token)) return kNoToken;
        const TokenType type = vocabulary_.type(token);
        if (type == TokenType::normal || type == TokenType::user_defined) {
            vocabulary_.set_type(token, TokenType::control);
            if (type == TokenType::normal)
                warnings_.push_back(fmt::format(
                    "token {} \"{}\" is typed as text and taken as a control token", token, printable(text)));
        }
        return token;
    }

    Token first(std::span<const std::string_view> texts) {
        for (const std::string_view text : texts)
            if (const Token token = special(text); token != kNoToken) return token;
        return kNoToken;
    }

    void warn_range(const std::string& key, const std::string& value) {
        warnings_.push_back(
            fmt::format("{} is {}, outside the {} tokens: ignored", key, value, vocabulary_.size()));
    }

private:
    const Metadata& metadata_;
    Vocabulary& vocabulary_;
    const std::function<bool(Token)>& is_text_;
    std::vector<std::string>& warnings_;
};

Status add_listed_eos(const Metadata& metadata, const Vocabulary& vocabulary, Reader& reader,
                      std::set<Token>& ends) {
    const std::string key = "tokenizer.ggml.eos_token_ids";
    if (!metadata.has(key)) return {};
    const std::vector<int64_t>* ids = metadata.integers(key);
    if (!ids) return error("{} is no list of integers", key);
    for (const int64_t id : *ids) {
        if (id >= 0 && uint64_t(id) < vocabulary.size())
            ends.insert(Token(id));
        else
            reader.warn_range(key, fmt::to_string(id));
    }
    return {};
}

bool has(Reader& reader, std::string_view text) {
    return reader.special(text) != kNoToken;
}

// True for vocabularies of the harmony format, where <|end|> ends a message and not the turn.
bool is_harmony(Reader& reader) {
    return (has(reader, "<|return|>") && has(reader, "<|call|>")) ||
           (has(reader, "<|calls|>") && has(reader, "<|flush|>"));
}

}  // namespace

Result<SpecialIds> read_special_ids(const Metadata& metadata, Vocabulary& vocabulary,
                                    const SpecialDefaults& defaults,
                                    const std::function<bool(Token)>& is_text,
                                    std::vector<std::string>& warnings) {
    Reader reader(metadata, vocabulary, is_text, warnings);
    SpecialIds ids;
    ids.bos = RL_TRY(reader.id("bos", reader.default_id(defaults.bos)));
    ids.eos = RL_TRY(reader.id("eos", reader.default_id(defaults.eos)));
    ids.unknown = RL_TRY(reader.id("unknown", reader.default_id(defaults.unknown)));
    ids.eot = RL_TRY(reader.id("eot", kNoToken));
    ids.eom = RL_TRY(reader.id("eom", kNoToken));
    ids.add_bos = RL_TRY(metadata.boolean("tokenizer.ggml.add_bos_token", defaults.add_bos));
    ids.add_eos = RL_TRY(metadata.boolean("tokenizer.ggml.add_eos_token", false));
    if (ids.eot == kNoToken) ids.eot = reader.first(kEndOfTurn);
    if (ids.eom == kNoToken) ids.eom = reader.first(kEndOfMessage);
    using Texts = std::span<const std::string_view>;
    for (const Texts markers : {Texts(kInfillPrefix), Texts(kInfillSuffix), Texts(kInfillMiddle)})
        for (const std::string_view text : markers) reader.special(text);

    std::set<Token> ends = {ids.eos, ids.eot, ids.eom};
    ends.insert(RL_TRY(reader.id("fim_pad", reader.first(kInfillPad))));
    ends.insert(RL_TRY(reader.id("fim_rep", reader.first(kInfillRepository))));
    ends.insert(RL_TRY(reader.id("fim_sep", reader.first(kInfillSeparator))));
    for (const std::string_view text : kEndOfGeneration) ends.insert(reader.special(text));
    RL_TRY(add_listed_eos(metadata, vocabulary, reader, ends));
    if (is_harmony(reader)) {
        ends.erase(reader.special("<|end|>"));
        for (const std::string_view text : kPrinted) ids.printed.push_back(reader.special(text));
    }
    if (has(reader, "<|tool_response>")) ends.erase(reader.special("</s>"));  // gemma 4
    ends.erase(kNoToken);
    ids.end_of_generation.assign(ends.begin(), ends.end());

    if (ids.end_of_generation.empty())
        warnings.push_back("no token ends a generation: it stops at the given length only");
    return ids;
}

}  // namespace redline
