// Small files in which a kernel tells about itself. What is missing or unreadable is told apart from zero.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redline {

// Without white space at its ends; empty when there is no such file. Reads 64 KiB at most.
std::string text_of(const std::string& path);
// A decimal number that stands alone.
std::optional<uint64_t> number_of(const std::string& path);
// Of the line that begins with `key`, what follows, without white space at its ends.
std::string value_behind(const std::string& path, std::string_view key);
std::optional<uint64_t> number_behind(const std::string& path, std::string_view key);
// What is in a folder, sorted; nothing when it cannot be read.
std::vector<std::string> folder_names(const std::string& path);

}  // namespace redline
