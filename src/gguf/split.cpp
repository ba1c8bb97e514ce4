#include "gguf/split.h"

#include <fmt/format.h>

#include <algorithm>

namespace redline {

std::string split_path(std::string_view prefix, uint64_t index, uint64_t count) {
    return fmt::format("{}-{:05}-of-{:05}.gguf", prefix, index + 1, count);
}

std::optional<std::string> split_prefix(std::string_view path, uint64_t index, uint64_t count) {
    const std::string ending = split_path("", index, count);
    if (!path.ends_with(ending)) return std::nullopt;
    return std::string(path.substr(0, path.size() - ending.size()));
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
