// Filling in the middle (FIM): where a user has the text that stands before a gap and the text behind it.
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

// An error where this is no FILE:LINE[:COLUMN], whatever the file holds.
Status check_fim_place(const std::string& text);
// `escapes`: backslash escapes in texts of the command line are taken.
Result<FimTexts> read_fim(const FimSource& source, bool escapes, std::vector<StrayBytes>* stray);

}  // namespace redline::cli
