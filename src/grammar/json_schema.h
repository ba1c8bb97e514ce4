// A grammar for the JSON texts that a JSON schema describes, as the standard's drafts and OpenAPI have them.
// Whatever cannot be held exactly is named, with a JSON pointer to where it stands; only keywords that
// describe (title, examples) are left out in silence.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace redline {

struct SchemaOptions {
    std::vector<std::string>* notes = nullptr;  // takes what is not held; may be null
    bool strict = false;                        // that is an error
};

// The grammar's text, in GBNF. As in llama.cpp: properties come in the order in which they are written, the
// optional ones may be left out; others are allowed only with additionalProperties or patternProperties;
// there is little white space; {} is any object. oneOf is anyOf where its branches exclude each other; where
// that cannot be told it is read so all the same, with a note.
Result<std::string> grammar_of_schema(std::string_view schema, SchemaOptions options = {});

}  // namespace redline
