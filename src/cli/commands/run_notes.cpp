#include "cli/commands/run_notes.h"

#include "text/tokens/unicode.h"

#include <algorithm>

namespace redline::cli {

// Byte-level BPE replaces such bytes; tokenizers with a token for every byte keep them.
static bool keeps_byte(const Tokenizer& tokenizer, uint8_t byte) {
    const std::string text(1, char(byte));
    return tokenizer.decode(tokenizer.encode(text, {.add_special = false})).ends_with(text);
}

std::string explain_stray(const StrayBytes& stray, const Tokenizer& tokenizer) {
    const std::string count =
        stray.count == 1
            ? fmt::format("1 byte that is no UTF-8 (0x{:02X}", stray.first)
            : fmt::format("{} bytes that are no UTF-8 (the first is 0x{:02X}", stray.count, stray.first);
    return fmt::format("{} has {}, at offset {}): the model reads {}", printable(stray.where), count,
                       stray.offset,
                       keeps_byte(tokenizer, stray.first) ? "them as they are" : "U+FFFD in their place");
}

static bool is_special(const Tokenizer& tokenizer, Token token) {
    const TokenType type = tokenizer.type(token);
    return type == TokenType::control || type == TokenType::unknown;
}

std::vector<std::string> raw_prompt_notes(const Tokenizer& tokenizer, const std::string& text,
                                          std::span<const Token> tokens, bool parse_special) {
    std::vector<std::string> notes;
    const auto shown = [&](Token token) { return printable(tokenizer.raw_text(token)); };
    if (!parse_special) {
        const std::vector<Token> parsed =
            tokenizer.encode(text, {.add_special = false, .parse_special = true});
        const auto first = std::find_if(parsed.begin(), parsed.end(),
                                        [&](Token token) { return is_special(tokenizer, token); });
        if (first != parsed.end() && text.find(tokenizer.raw_text(*first)) != std::string::npos)
            notes.push_back(fmt::format(
                "{} in the prompt is read as text; --parse-special makes it a control token", shown(*first)));
    }
    const Token bos = tokenizer.bos();
    if (bos != kNoToken && tokens.size() > 1 && tokens[0] == bos && tokens[1] == bos)
        notes.push_back(
            fmt::format("the prompt begins with two BOS tokens, {} of its text behind the one that is added; "
                        "--no-bos leaves "
                        "that out",
                        shown(bos)));
    return notes;
}

bool is_cut(const Generation& generation, const Constraint* constraint) {
    const bool early =
        generation.reason == StopReason::max_tokens || generation.reason == StopReason::context_full;
    return constraint && early && !constraint->complete();
}

std::string explain_hastened(const Generation& generation, const GenerateOptions& options,
                             uint64_t prompt_tokens, uint64_t context) {
    if (!generation.hastened) return "";
    const int64_t most = options.max_tokens;
    const bool has_room =
        options.when_full == WhenFull::shift || (most >= 0 && prompt_tokens + uint64_t(most) <= context + 1);
    return fmt::format(
        "the answer was brought to its end, as its grammar or schema wants it, to fit into {}",
        has_room ? fmt::format("-n {}", most) : fmt::format("the context of {} tokens (-c N)", context));
}

}  // namespace redline::cli
