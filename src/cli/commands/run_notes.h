// Notes of redline run: what becomes of an unusual prompt, and what an answer lacks.
#pragma once

#include "cli/prompt.h"
#include "engine/generate.h"
#include "grammar/constraint.h"
#include "text/tokens/tokenizer.h"

namespace redline::cli {

// Which bytes are no UTF-8, and what the model reads in their place.
std::string explain_stray(const StrayBytes& stray, const Tokenizer& tokenizer);

// On a prompt without a chat template: control tokens that are written in it and taken as text, unless
// `parse_special`, and a second BOS.
std::vector<std::string> raw_prompt_notes(const Tokenizer& tokenizer, const std::string& text,
                                          std::span<const Token> tokens, bool parse_special);

// True where the answer ended, at -n or with the context, before its grammar or schema was complete.
bool is_cut(const Generation& generation, const Constraint* constraint);
// Says that the answer was brought to its end by these limits; empty where it was not.
std::string explain_hastened(const Generation& generation, const GenerateOptions& options,
                             uint64_t prompt_tokens, uint64_t context);
constexpr const char* kCutNote =
    "the answer ends before its grammar or schema is complete: a larger -n, or a larger context (-c N), lets "
    "it end";

}  // namespace redline::cli
