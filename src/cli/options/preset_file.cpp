#include "cli/options/preset_file.h"

#include "base/file.h"

#include <algorithm>

namespace redline::cli {

namespace {

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view kBlanks = " \t\r";
    const size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
    return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

Status add_section(std::string_view line, size_t number, std::vector<Preset>& presets) {
    if (!line.ends_with(']')) return error("a section is [NAME]: its ] is missing");
    const std::string name(trimmed(line.substr(1, line.size() - 2)));
    if (name.empty()) return error("a section has the name of a model, or *");
    for (const Preset& other : presets)
        if (other.name == name) return error("the section [{}] is in line {} already", name, other.number);
    presets.push_back({name, number, {}});
    return {};
}

Status add_line(std::string_view line, size_t number, std::vector<Preset>& presets) {
    const size_t equals = line.find('=');
    const std::string key(trimmed(line.substr(0, equals)));
    if (equals == line.npos || key.empty())
        return error("\"{}\" is neither a section, [NAME], nor an option, KEY = VALUE", line);
    const std::string value(trimmed(line.substr(equals + 1)));
    if (presets.empty()) {
        if (key != "version") return error("{} stands before the first section, [NAME] or [*]", key);
        if (value != "1") return error("version {} is not known; presets of version 1 are", value);
        return {};
    }
    for (const PresetLine& other : presets.back().lines)
        if (other.key == key) return error("{} is in line {} already", key, other.number);
    presets.back().lines.push_back({key, value, number});
    return {};
}

}  // namespace

Result<std::vector<Preset>> parse_presets(std::string_view text, const std::string& name) {
    constexpr std::string_view kMark = "\xef\xbb\xbf";  // of UTF-8, that some editors write
    if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
    std::vector<Preset> presets;
    for (size_t number = 1; !text.empty(); ++number) {
        const size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = trimmed(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.empty() || line[0] == ';' || line[0] == '#') continue;
        const Status taken =
            line[0] == '[' ? add_section(line, number, presets) : add_line(line, number, presets);
        if (!taken) return error("{}:{}: {}", name, number, taken.error().message);
    }
    return presets;
}

Result<std::vector<Preset>> read_presets(const std::string& path) {
    return parse_presets(RL_TRY(read_text_file(path, uint64_t(1) << 20)), path);
}

Result<bool> parse_switch(std::string_view text) {
    constexpr std::string_view kOn[] = {"true", "on", "yes", "1"}, kOff[] = {"false", "off", "no", "0"};
    if (std::ranges::find(kOn, text) != std::end(kOn)) return true;
    if (std::ranges::find(kOff, text) != std::end(kOff)) return false;
    return error("takes true or false, not \"{}\"", text);
}

}  // namespace redline::cli
