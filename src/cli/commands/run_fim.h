// Filling in the middle (FIM): the text that stands before a gap, the text that stands behind it, and the
// prompt by which a model that was trained for it writes what belongs there.
#pragma once

#include "cli/prompt.h"
#include "text/tokens/infill.h"

namespace redline::cli {

// How the user names the two texts: one of these.
struct FimSource {
    std::vector<std::string> texts;  // --fim PREFIX SUFFIX
    std::vector<std::string> files;  // --fim-parts FILE FILE
    std::string place;               // --fim-file FILE:LINE[:COLUMN]
    bool given() const { return !texts.empty() || !files.empty() || !place.empty(); }
};

struct FimTexts {
    std::string prefix;
    std::string suffix;
};

// An error where this is no FILE:LINE[:COLUMN], whatever the file holds.
Status check_fim_place(const std::string& text);
// `escapes`: backslash escapes in texts of the command line are taken.
Result<FimTexts> read_fim(const FimSource& source, bool escapes, std::vector<StrayBytes>* stray);

struct FimPrompt {
    std::vector<Token> tokens;
    std::string cut;  // a sentence, where not all of both texts has room
};

// Prefix and suffix between the tokenizer's markers, in the order that llama.cpp writes: prefix, suffix,
// middle. Both are cut at their far ends to leave `room` tokens of the context to the answer. An error where
// the model has no such markers.
Result<FimPrompt> write_fim(const Tokenizer& tokenizer, const InfillTokens& markers, const FimTexts& texts,
                            bool add_bos, uint64_t context, uint64_t room);
// The tokens that an answer is left: what was asked for, or an eighth of the context.
uint64_t fim_room(uint64_t context, int64_t max_tokens);

}  // namespace redline::cli
