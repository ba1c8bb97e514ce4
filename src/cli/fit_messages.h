// Conversations in the form that a chat template takes: what its messages hold is a text, a list of parts or
// null.
#pragma once

#include "cli/template_probe.h"

namespace redline::cli {

// The text of a content; the texts of parts become lines.
std::string content_text(const Json& content);

// Texts and lists of parts, each as the template takes it; null stays.
void fit_contents(Json& messages, const TemplateReads& reads);

// Where the template refuses or spells out a content that is null, it is an empty text; where it refuses the
// ids of calls, they have nine letters, which is all that Mistral's take.
Result<std::vector<TextPart>> render_fitted(const ChatTemplate& parsed, const Tokenizer& tokenizer,
                                            TemplateInput input);

}  // namespace redline::cli
