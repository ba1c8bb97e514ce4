#include "gguf/split.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace redline {

std::string split_path(std::string_view prefix, uint64_t index, uint64_t count) {
    return fmt::format("{}-{:05}-of-{:05}.gguf", prefix, index + 1, count);
}

std::optional<std::string> split_prefix(std::string_view path, uint64_t index, uint64_t count) {
    const std::string ending = split_path("", index, count);
    if (!path.ends_with(ending)) return std::nullopt;
    return std::string(path.substr(0, path.size() - ending.size()));
}

std::optional<SplitName> split_name(std::string_view path) {
    constexpr size_t kEnding = 20;  // "-00001-of-00003.gguf"
    if (path.size() < kEnding) return std::nullopt;
    const std::string_view ending = path.substr(path.size() - kEnding);
    const auto number = [&](size_t at) {
        uint64_t value = 0;
        for (const char digit : ending.substr(at, 5)) {
            if (digit < '0' || digit > '9') return uint64_t(0);
            value = value * 10 + uint64_t(digit - '0');
        }
        return value;
    };
    std::string extension(ending.substr(15));
    for (char& letter : extension) letter = char(std::tolower(uint8_t(letter)));
    const uint64_t index = number(1), count = number(10);
    if (ending[0] != '-' || ending.substr(6, 4) != "-of-" || extension != ".gguf") return std::nullopt;
    if (index == 0 || index > count) return std::nullopt;
    return SplitName{std::string(path.substr(0, path.size() - kEnding)), index - 1, count};
}

// Removes digits from the end; false when there are none.
static bool drop_digits(std::string_view& text) {
    const size_t before = text.size();
    while (!text.empty() && text.back() >= '0' && text.back() <= '9') text.remove_suffix(1);
    return text.size() < before;
}

bool is_byte_piece(std::string_view path) {
    if (path.size() > 8 && path.substr(0, path.size() - 1).ends_with("-split-")) return true;
    if (!drop_digits(path) || !path.ends_with("of")) return false;
    path.remove_suffix(2);
    return drop_digits(path) && (path.ends_with(".part") || path.ends_with("-part"));
}

}  // namespace redline
