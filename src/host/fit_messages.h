// Brings conversations into the form that a chat template takes. The content of a message is a text, a list
// of parts or null.
#pragma once

#include "host/template_probe.h"

namespace redline {

// The content as text, in which each part is a line.
std::string content_text(const Json& content);

// Turns contents into texts or lists of parts, as the template takes them; null stays.
void fit_contents(Json& messages, const TemplateReads& reads);

// Renders a conversation, again with empty texts in place of null where the template refuses null or spells
// it out, and again with ids of nine letters where it refuses the ids of calls, as Mistral's templates do.
Result<std::vector<TextPart>> render_fitted(const ChatTemplate& parsed, const Tokenizer& tokenizer,
                                            TemplateInput input);

}  // namespace redline
