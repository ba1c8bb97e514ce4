// The keywords of JSON schemas: those that a grammar holds, those that only describe, and the rest.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace redline {

// Keywords that only the converter writes, between its steps: strings and patterns of strings that are
// excluded, and why nothing is left that a schema allows.
constexpr const char* kNotTexts = "\x01texts";
constexpr const char* kNotPatterns = "\x01patterns";
constexpr const char* kWhyNothing = "\x01nothing";

// Keywords whose meaning goes into the grammar.
bool is_held(std::string_view keyword);
// Why a keyword that is not held may forbid something all the same; nothing: it only describes.
std::optional<std::string> constrains(std::string_view keyword);

}  // namespace redline
