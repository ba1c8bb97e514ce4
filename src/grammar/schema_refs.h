// References of JSON schemas; a document can name the same place in many ways.
#pragma once

#include "json/json.h"

namespace redline {

// Rewrites each $ref into the document as a plain JSON pointer from its root (#/a/b), without percent signs:
// pointers, anchors, and addresses relative to an $id. A $dynamicRef with only one possible target becomes a
// $ref. Others stay unchanged.
void resolve_references(Json& root);

}  // namespace redline
