#include "base/system_files.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>

namespace redline {

static std::string_view trimmed(std::string_view text) {
    constexpr std::string_view kWhite = " \t\r\n";
    const size_t first = text.find_first_not_of(kWhite);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(kWhite) - first + 1);
}

static std::optional<uint64_t> as_number(std::string_view text) {
    uint64_t value = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc() || end != text.data() + text.size()) return {};
    return value;
}

std::string text_of(const std::string& path) {
    constexpr size_t kMost = 65536;
    std::string text(kMost, '\0');
    std::ifstream in(path, std::ios::binary);
    in.read(text.data(), std::streamsize(text.size()));
    text.resize(size_t(std::max<std::streamsize>(in.gcount(), 0)));
    return std::string(trimmed(text));
}

std::optional<uint64_t> number_of(const std::string& path) {
    return as_number(text_of(path));
}

std::string value_behind(const std::string& path, std::string_view key) {
    const std::string text = text_of(path);
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find('\n', at), text.size());
        const std::string_view line = std::string_view(text).substr(at, end - at);
        if (line.starts_with(key)) return std::string(trimmed(line.substr(key.size())));
        at = end + 1;
    }
    return "";
}

std::optional<uint64_t> number_behind(const std::string& path, std::string_view key) {
    const std::string value = value_behind(path, key);
    return as_number(std::string_view(value).substr(0, value.find_first_of(" \t")));
}

std::vector<std::string> folder_names(const std::string& path) {
    std::vector<std::string> names;
    std::error_code problem;
    for (std::filesystem::directory_iterator it(path, problem), end; !problem && it != end;
         it.increment(problem))
        names.push_back(it->path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
}

}  // namespace redline
