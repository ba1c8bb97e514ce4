// Converts a JSON schema, of the standard's drafts or OpenAPI, to a grammar for the JSON texts that it
// describes. Keywords that cannot be enforced exactly are reported with a JSON pointer to their place; only
// keywords that merely describe (title, examples) are skipped silently.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace redline {

struct SchemaOptions {
    std::vector<std::string>* notes =
        nullptr;          // receives notes about keywords that are not enforced; may be null
    bool strict = false;  // a keyword that is not enforced is an error
};

// Returns the grammar in GBNF. As in llama.cpp, properties come in the order in which they are written, and
// optional ones may be missing; others are allowed only with additionalProperties or patternProperties; there
// is little white space; {} is any object. oneOf is treated as anyOf; where its branches may not exclude each
// other, with a note.
Result<std::string> grammar_of_schema(std::string_view schema, SchemaOptions options = {});

}  // namespace redline
