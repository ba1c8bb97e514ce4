// Small files in which a kernel reports its state. A value that is missing or unreadable is not reported as
// zero.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redline {

// The text of a file without white space at its ends; empty when there is no such file. Reads 64 KiB at most.
std::string text_of(const std::string& path);
// A file that consists of one decimal number.
std::optional<uint64_t> number_of(const std::string& path);
// The rest of the line that begins with `key`, without white space at its ends.
std::string value_behind(const std::string& path, std::string_view key);
std::optional<uint64_t> number_behind(const std::string& path, std::string_view key);
// The sorted names in a folder; empty when it cannot be read.
std::vector<std::string> folder_names(const std::string& path);

}  // namespace redline
