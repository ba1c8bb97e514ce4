// A grammar for the JSON texts that a JSON schema describes. What it cannot express is refused by name, with
// a JSON pointer to where it stands; nothing is left out in silence but what only describes (title,
// examples).
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace redline {

// The grammar's text, in GBNF. As in llama.cpp: properties come in the order in which they are written, the
// optional ones may be left out; others are allowed only with additionalProperties; there is little white
// space; {} is any object. oneOf is anyOf where its branches exclude each other; where that cannot be told it
// is read so all the same, with a note.
Result<std::string> grammar_of_schema(std::string_view schema, std::vector<std::string>* notes = nullptr);

}  // namespace redline
