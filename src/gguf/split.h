// Names of split files: PREFIX-00001-of-00003.gguf for models split by tensor, NAME.part1of2 for pieces of
// bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace redline {

// The prefix of `path` when it is the name of part `index` (from 0) of `count`.
std::optional<std::string> split_prefix(std::string_view path, uint64_t index, uint64_t count);
std::string split_path(std::string_view prefix, uint64_t index, uint64_t count);

// The parts of a split file's name, "PREFIX-00001-of-00003.gguf" with the ending in any case of letters.
struct SplitName {
    std::string prefix;
    uint64_t index = 0;  // from 0
    uint64_t count = 1;
};
std::optional<SplitName> split_name(std::string_view path);

// True for the names that people gave to the pieces of a file cut at arbitrary bytes.
bool is_byte_piece(std::string_view path);

}  // namespace redline
