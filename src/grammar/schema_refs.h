// References of JSON schemas, of which a document can name the same place in many ways.
#pragma once

#include "json/json.h"

namespace redline {

// Writes each $ref that leads into the document as a plain JSON pointer from its root (#/a/b), without
// percent signs: pointers, anchors, and addresses relative to an $id; and $dynamicRef, where one place only
// can be meant, as a $ref. Others stay as they are.
void resolve_references(Json& root);

}  // namespace redline
