#include "cli/commands/run_fim.h"

#include "cli/options/options.h"
#include "cli/options/sampling_options.h"
#include "text/tokens/unicode.h"

#include <algorithm>

namespace redline::cli {

namespace {

struct Place {
    std::string file;
    uint64_t line = 0;
    uint64_t column = 0;  // 0: the end of the line
};

// The number behind the last colon, which is cut off; nothing where no number stands there.
std::optional<uint64_t> take_number(std::string& text) {
    const size_t colon = text.rfind(':');
    if (colon == std::string::npos || colon == 0) return {};
    const Result<int64_t> number =
        parse_integer(std::string_view(text).substr(colon + 1), 1, std::numeric_limits<int32_t>::max());
    if (!number) return {};
    text.resize(colon);
    return uint64_t(number.value());
}

Result<Place> parse_place(const std::string& text) {
    Place place{text, 0, 0};
    const std::optional<uint64_t> last = take_number(place.file);
    if (!last) return error("--fim-file takes FILE:LINE or FILE:LINE:COLUMN, not \"{}\"", text);
    place.line = *last;
    if (const std::optional<uint64_t> line = take_number(place.file)) {
        place.line = *line;
        place.column = *last;
    }
    return place;
}

// Where so many characters of a line end; nothing where it has fewer.
std::optional<size_t> behind_characters(std::string_view line, uint64_t count) {
    size_t at = 0;
    for (; count > 0 && at < line.size(); --count) at += utf8_step(line, at).bytes;
    return count > 0 ? std::nullopt : std::optional<size_t>(at);
}

Result<FimTexts> split_at(const Place& place, const std::string& text) {
    size_t begin = 0;
    for (uint64_t line = 1; line < place.line; ++line) {
        const size_t end = text.find('\n', begin);
        if (end == std::string::npos) return error("{} has {} lines, not {}", place.file, line, place.line);
        begin = end + 1;
    }
    size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin && end < text.size() && text[end - 1] == '\r') --end;
    size_t at = end;
    if (place.column > 0) {
        const auto column =
            behind_characters(std::string_view(text).substr(begin, end - begin), place.column - 1);
        if (!column)
            return error("line {} of {} is too short for column {}", place.line, place.file, place.column);
        at = begin + *column;
    }
    return FimTexts{text.substr(0, at), text.substr(at)};
}

std::string name_of(const Tokenizer& tokenizer, Token token, std::string_view marker) {
    return token == kNoToken ? fmt::format("no {} marker", marker)
                             : fmt::format("{} {}", marker, printable(tokenizer.raw_text(token)));
}

}  // namespace

Status check_fim_place(const std::string& text) {
    RL_TRY(parse_place(text));
    return {};
}

Result<FimTexts> read_fim(const FimSource& source, bool escapes, std::vector<StrayBytes>* stray) {
    FimTexts texts;
    if (!source.texts.empty()) {
        texts = {source.texts[0], source.texts[1]};
        if (escapes) texts = {unescape(texts.prefix), unescape(texts.suffix)};
    } else if (!source.files.empty()) {
        texts = {RL_TRY(read_prompt_file(source.files[0])), RL_TRY(read_prompt_file(source.files[1]))};
    } else {
        const Place place = RL_TRY(parse_place(source.place));
        const std::string text = RL_TRY(read_prompt_file(place.file));
        texts = RL_TRY(split_at(place, text));
    }
    if (stray) {
        find_stray_bytes(texts.prefix, "the text before the gap", *stray);
        find_stray_bytes(texts.suffix, "the text behind the gap", *stray);
    }
    return texts;
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
            name_of(tokenizer, markers.prefix, "prefix"), name_of(tokenizer, markers.suffix, "suffix"),
            name_of(tokenizer, markers.middle, "middle"));
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

}  // namespace redline::cli
