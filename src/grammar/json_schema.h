// A grammar for the JSON texts that a JSON schema describes. What it cannot express is refused by name, with
// a JSON pointer to where it stands; nothing is left out in silence but what only describes (title,
// examples).
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>

namespace redline {

// The grammar's text, in GBNF. As in llama.cpp: properties come in the order in which they are written, the
// optional ones may be left out; others are allowed only with additionalProperties; oneOf is read as anyOf;
// there is little white space; {} is any object.
Result<std::string> grammar_of_schema(std::string_view schema);

}  // namespace redline
