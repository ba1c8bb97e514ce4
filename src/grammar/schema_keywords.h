// The keywords of JSON schemas: those that a grammar enforces, those that only describe, and the rest.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace redline {

// Internal keywords that only the converter writes, between its steps: excluded strings, excluded patterns of
// strings, and the reason why a schema allows nothing.
constexpr const char* kNotTexts = "\x01texts";
constexpr const char* kNotPatterns = "\x01patterns";
constexpr const char* kWhyNothing = "\x01nothing";

// True for keywords that the grammar enforces.
bool is_held(std::string_view keyword);
// The reason why ignoring this keyword may allow too much; empty: it only describes.
std::optional<std::string> constrains(std::string_view keyword);

}  // namespace redline
