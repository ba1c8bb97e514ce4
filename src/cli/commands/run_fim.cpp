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

}  // namespace redline::cli
